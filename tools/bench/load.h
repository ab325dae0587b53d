// Load on a server or an engine, and what came of it: which prompts, and figures of all answers.
// Shape   a measurement is `num_requests` requests; every figure of several measurements is a median.
// Thread  any; pure.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "tools/bench/options.h"

namespace quire::tools {

// The prompt of request `index` in measurement `round`: ids in [lowest, vocab), the same for every server. The first
// `shared_tokens` are the same for the whole measurement, and new in the next.
struct PromptShape {
  std::uint32_t tokens = 0;
  std::uint32_t shared_tokens = 0;
  std::uint32_t vocab = 0;
};
std::vector<TokenId> load_prompt(const PromptShape& shape, std::uint64_t round, std::uint32_t index);

// One a stream, and four at least; or as many as asked for.
std::uint32_t num_requests(const BenchOptions& options, std::uint32_t streams);

// What happened to one request, as its client saw it.
struct Answer {
  enum class Verdict : std::uint8_t {
    kGood,
    kFailed,  // no answer: refused, broken off, too late
    kWrong,   // an answer, but not of as many tokens as asked for, or without a proper end
  };
  Verdict verdict = Verdict::kFailed;
  std::string why;  // when not good
  std::uint32_t tokens = 0;
  double ttft_s = 0;           // from sending to the first token
  std::vector<double> gaps_s;  // between tokens
  std::string text;
};

struct Measurement {
  double wall_s = 0;
  double client_cpu_s = 0;  // of this process, where it is only the client; else 0
  std::vector<Answer> answers;
};

struct LoadFigures {
  double tokens_per_s = 0;  // of good answers, over the whole time: prompts included
  double ttft_p50_s = 0;
  double ttft_p99_s = 0;
  double gap_p50_s = 0;
  double gap_p99_s = 0;
  double first_ttft_s = 0;  // of request 0; with shared tokens it is not among the others
  double client_cpu = 0;    // CPUs that the client took
  std::uint32_t requests = 0;
  std::uint32_t failed = 0;
  std::uint32_t wrong = 0;
};

LoadFigures figures_of(const Measurement& measurement, bool first_is_apart);
// Of each figure the median; of the counts the sum.
LoadFigures median_of(const std::vector<LoadFigures>& all);
boost::json::object json_of(const LoadFigures& figures);

}  // namespace quire::tools
