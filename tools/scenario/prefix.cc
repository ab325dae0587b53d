// Two requests, one after the other, that share their first 1,800 tokens: the time to first token of each, and the
// number of tokens of the second prompt that came from the prefix cache. Every run uses a new prefix.
#include <algorithm>
#include <vector>

#include "tools/common/figures.h"
#include "tools/scenario/scenario.h"
#include "tools/scenario/timed_model.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kShared = 1800;
constexpr std::uint32_t kOwn = 24;  // of each request, after the prefix
constexpr std::uint32_t kAnswer = 8;
constexpr std::uint32_t kLength = kShared + kOwn + kAnswer;

Job request(const std::vector<TokenId>& prefix, Random& random, std::uint32_t vocab) {
  Job job;
  job.prompt = prefix;
  const std::vector<TokenId> own = random.tokens(kOwn, vocab);
  job.prompt.insert(job.prompt.end(), own.begin(), own.end());
  job.max_tokens = kAnswer;
  return job;
}

}  // namespace

ScenarioReport prefix_scenario(const ScenarioSetup& setup) {
  TimedModel model = timed_model(setup, kLength);
  Random random(1800);
  TimedEngine engine(model, {.max_num_seqs = 2, .length = kLength, .prefix_caching = true});
  const auto serve = [&](const Job& job) REQUIRES(engine_role) { return engine.run(std::span(&job, 1)).front(); };
  serve(request(random.tokens(kShared, model.vocab()), random, model.vocab()));  // warm-up of pages and caches

  ScenarioReport report{Table({"run", "shared_tokens", "prompt_tokens", "full_block_tokens", "first_ttft_s",
                               "second_ttft_s", "ttft_ratio", "cached_tokens", "skipped_share"}),
                        {model_line(model.loaded)}};
  std::vector<double> first_s, second_s, ratios;
  std::uint32_t fewest_cached = kLength;
  for (std::uint32_t run = 0; run < setup.runs; ++run) {
    setup.progress(fmt::format("run {} of {}", run + 1, setup.runs));
    const std::vector<TokenId> prefix = random.tokens(kShared, model.vocab());
    const Outcome first = serve(request(prefix, random, model.vocab()));
    const Outcome second = serve(request(prefix, random, model.vocab()));
    CHECK_EQ(first.cached_tokens, 0u);
    first_s.push_back(first.ttft_s());
    second_s.push_back(second.ttft_s());
    ratios.push_back(first.ttft_s() / second.ttft_s());
    fewest_cached = std::min(fewest_cached, second.cached_tokens);
    report.table.row(run + 1, kShared, kShared + kOwn, kShared / model.block_tokens * model.block_tokens,
                     first.ttft_s(), second.ttft_s(), ratios.back(), second.cached_tokens,
                     static_cast<double>(second.cached_tokens) / (kShared + kOwn));
  }
  report.summary.push_back(
      fmt::format("first token of the first request after {:.4f} s, of the second after {:.4f} s: {:.1f} times sooner "
                  "(medians of {} runs)",
                  median(first_s), median(second_s), median(ratios), setup.runs));
  report.summary.push_back(
      fmt::format("{} of {} prompt tokens came from the cache ({:.1f} %); {} of the {} shared ones lie in full blocks",
                  fewest_cached, kShared + kOwn, 100.0 * fewest_cached / (kShared + kOwn),
                  kShared / model.block_tokens * model.block_tokens, kShared));
  return report;
}

}  // namespace quire::tools
