#include "tools/bench/load.h"

#include <algorithm>

#include "core/base/check.h"
#include "tools/common/figures.h"
#include "tools/common/mix.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kLeastRequests = 4;

// The percentile, or 0 if there are no values: no good answers, or only single tokens.
double percentile_or_0(const std::vector<double>& values, std::size_t percent) {
  return values.empty() ? 0 : percentile(values, percent);
}

double median_of(const std::vector<LoadFigures>& all, double LoadFigures::*figure) {
  std::vector<double> values;
  for (const LoadFigures& one : all) values.push_back(one.*figure);
  return median(std::move(values));
}

}  // namespace

std::vector<TokenId> load_prompt(const PromptShape& shape, std::uint64_t round, std::uint32_t index) {
  CHECK_LE(shape.shared_tokens, shape.tokens);
  Random shared(round * 0x10001);
  std::vector<TokenId> prompt = shared.tokens(shape.shared_tokens, shape.vocab);
  Random own((round * 0x10001 + index + 1) * 0x9e3779b97f4a7c15u);
  const std::vector<TokenId> rest = own.tokens(shape.tokens - shape.shared_tokens, shape.vocab);
  prompt.insert(prompt.end(), rest.begin(), rest.end());
  return prompt;
}

std::uint32_t num_requests(const BenchOptions& options, std::uint32_t streams) {
  return options.requests.value_or(std::max(kLeastRequests, streams));
}

LoadFigures figures_of(const Measurement& measurement, bool first_is_apart) {
  LoadFigures out;
  out.requests = static_cast<std::uint32_t>(measurement.answers.size());
  std::vector<double> ttft, gaps;
  double tokens = 0;
  for (std::size_t i = 0; i < measurement.answers.size(); ++i) {
    const Answer& answer = measurement.answers[i];
    out.failed += answer.verdict == Answer::Verdict::kFailed ? 1 : 0;
    out.wrong += answer.verdict == Answer::Verdict::kWrong ? 1 : 0;
    if (answer.verdict != Answer::Verdict::kGood) continue;
    tokens += answer.tokens;
    if (i == 0) out.first_ttft_s = answer.ttft_s;
    if (i != 0 || !first_is_apart) ttft.push_back(answer.ttft_s);
    gaps.insert(gaps.end(), answer.gaps_s.begin(), answer.gaps_s.end());
  }
  out.tokens_per_s = measurement.wall_s > 0 ? tokens / measurement.wall_s : 0;
  out.client_cpu = measurement.wall_s > 0 ? measurement.client_cpu_s / measurement.wall_s : 0;
  out.ttft_p50_s = percentile_or_0(ttft, 50);
  out.ttft_p99_s = percentile_or_0(ttft, 99);
  out.gap_p50_s = percentile_or_0(gaps, 50);
  out.gap_p99_s = percentile_or_0(gaps, 99);
  return out;
}

LoadFigures median_of(const std::vector<LoadFigures>& all) {
  CHECK(!all.empty());
  LoadFigures out;
  for (double LoadFigures::*figure :
       {&LoadFigures::tokens_per_s, &LoadFigures::ttft_p50_s, &LoadFigures::ttft_p99_s, &LoadFigures::gap_p50_s,
        &LoadFigures::gap_p99_s, &LoadFigures::first_ttft_s, &LoadFigures::client_cpu}) {
    out.*figure = median_of(all, figure);
  }
  for (const LoadFigures& one : all) {
    out.requests += one.requests;
    out.failed += one.failed;
    out.wrong += one.wrong;
  }
  return out;
}

boost::json::object json_of(const LoadFigures& figures) {
  return {{"tokens_per_s", figures.tokens_per_s},
          {"ttft_p50_s", figures.ttft_p50_s},
          {"ttft_p99_s", figures.ttft_p99_s},
          {"gap_p50_s", figures.gap_p50_s},
          {"gap_p99_s", figures.gap_p99_s},
          {"first_ttft_s", figures.first_ttft_s},
          {"client_cpu", figures.client_cpu},
          {"requests", figures.requests},
          {"failed", figures.failed},
          {"wrong", figures.wrong}};
}

}  // namespace quire::tools
