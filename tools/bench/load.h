// Load on a server or an engine, and its result: the prompts, and figures over all answers.
// Shape   a measurement is `num_requests` requests; a figure of several measurements is their median.
// Thread  any; pure.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "tools/common/options.h"

namespace quire::tools {

// Prompts of a measurement. The prompt of request `index` in measurement `round` has ids in [0, vocab), the same for
// every server. The first `shared_tokens` are equal within a measurement and differ between measurements.
struct PromptShape {
  std::uint32_t tokens = 0;
  std::uint32_t shared_tokens = 0;
  std::uint32_t vocab = 0;
};
std::vector<TokenId> load_prompt(const PromptShape& shape, std::uint64_t round, std::uint32_t index);

// --requests, or one per stream and at least four.
std::uint32_t num_requests(const BenchOptions& options, std::uint32_t streams);

// Result of one request, as its client saw it.
struct Answer {
  enum class Verdict : std::uint8_t {
    kGood,
    kFailed,  // no answer: rejected, interrupted or timed out
    kWrong,   // an answer with another number of tokens than asked for, or without a proper end
  };
  Verdict verdict = Verdict::kFailed;
  std::string why;  // the reason, if not good
  std::uint32_t tokens = 0;
  double ttft_s = 0;           // from sending to the first token
  std::vector<double> gaps_s;  // between tokens
  std::string text;
};

struct Measurement {
  double wall_s = 0;
  double client_cpu_s = 0;  // of this process if it is only the client; else 0
  std::vector<Answer> answers;
};

struct LoadFigures {
  double tokens_per_s = 0;  // of good answers, over the whole measurement with its prefills
  double ttft_p50_s = 0;
  double ttft_p99_s = 0;
  double gap_p50_s = 0;
  double gap_p99_s = 0;
  double first_ttft_s = 0;  // of request 0, which shared tokens exclude from ttft_*
  double client_cpu = 0;    // CPUs that the client used
  std::uint32_t requests = 0;
  std::uint32_t failed = 0;
  std::uint32_t wrong = 0;
};

LoadFigures figures_of(const Measurement& measurement, bool first_is_apart);
// The median of each figure; the sum of each count.
LoadFigures median_of(const std::vector<LoadFigures>& all);
boost::json::object json_of(const LoadFigures& figures);

}  // namespace quire::tools
