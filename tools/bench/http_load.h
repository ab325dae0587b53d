// Load generator: streamed completions from a server on this machine, many at once, with one thread, so that the cores
// are left to the server. Bytes are recorded with their times and parsed after the measurement.
// Shape   closed loop: `streams` connections, each of which sends its next request after its answer. Open loop:
//         requests at random times (exponential gaps, the same for every server), each on its own connection.
// Owner   the caller.
// Thread  any one; blocks until all answers have ended.
// Fails   per answer. A connection that the server closed between two requests is opened again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/http/http_get.h"
#include "core/base/ids.h"
#include "tools/bench/load.h"

namespace quire::tools {

using app::Url;

struct HttpLoad {
  Url url;
  std::string model;  // as in /v1/models
  PromptShape prompts;
  std::uint32_t answer_tokens = 0;
  std::uint32_t num_requests = 0;
  std::uint32_t streams = 1;
  std::optional<double> rate;  // requests per second of the open loop; empty: closed loop
  Duration timeout{};          // per answer
};

// A greedy, streamed request, with usage at the end.
std::string completion_body(const std::string& model, const std::vector<TokenId>& prompt, std::uint32_t answer_tokens);

Measurement put_under_load(const HttpLoad& load, std::uint64_t round);

// Sends one request of a round again, without other requests, and returns its answer.
Answer ask_alone(const HttpLoad& load, std::uint64_t round, std::uint32_t index);

}  // namespace quire::tools
