// Streamed completions asked of a server on this machine, many at once, by one thread: it has to leave the cores to the
// server that it measures. Bytes are kept with their times; what they say is read when the clock has stopped.
// Shape   closed: `streams` connections, each of which asks again when it was answered. Open: requests at random times
//         (exponential gaps, the same for every server), each on a connection of its own.
// Owner   the caller.
// Thread  any one; blocks until all is answered.
// Fails   in the answers, one by one. A connection that the server has closed between two requests is made anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/http_get.h"
#include "core/base/ids.h"
#include "tools/bench/load.h"

namespace quire::tools {

using app::Url;

struct HttpLoad {
  Url url;
  std::string model;  // as /v1/models calls it
  PromptShape prompts;
  std::uint32_t answer_tokens = 0;
  std::uint32_t num_requests = 0;
  std::uint32_t streams = 1;
  std::optional<double> rate;  // requests a second: open
  Duration timeout{};          // of one answer
};

// Greedy, streamed, with the number of tokens told at the end.
std::string completion_body(const std::string& model, const std::vector<TokenId>& prompt, std::uint32_t answer_tokens);

Measurement put_under_load(const HttpLoad& load, std::uint64_t round);

// The answer to one request of a round, asked alone.
Answer ask_alone(const HttpLoad& load, std::uint64_t round, std::uint32_t index);

}  // namespace quire::tools
