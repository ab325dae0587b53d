// Throughput against latency: the same burst of requests with 1 to 32 of them running at once, in real time.
//   Every figure is the median of the runs. A round runs every size once, so that a slower machine slows all sizes; the
//   speedup is relative to one at a time in the same round.
// Source  ours.
#include <algorithm>
#include <chrono>
#include <vector>

#include "tools/common/figures.h"
#include "tools/scenario/scenario.h"
#include "tools/scenario/timed_model.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kSizes[] = {1, 2, 4, 8, 16, 32};
constexpr std::uint32_t kRequests = 64;
constexpr std::uint32_t kLength = 256;  // maximum length of a request

std::vector<Job> burst(std::uint32_t vocab) {
  Random random(32);
  std::vector<Job> jobs;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    const std::uint32_t prompt = random.between(32, 128);
    jobs.push_back({0, random.tokens(prompt, vocab), random.between(32, 128)});
  }
  return jobs;
}

struct Measured {
  std::vector<double> tokens_per_s, speedup, mean_finish, p50_finish, p99_finish, mean_ttft, p99_ttft;  // [runs]
};

// Measures one run and returns its tokens per second.
double measure(TimedModel& model, std::uint32_t size, const std::vector<Job>& jobs, Measured& out)
    REQUIRES(engine_role) {
  TimedEngine engine(model, {.max_num_seqs = size, .length = kLength});
  std::vector<double> finish, ttft;
  double tokens = 0;
  for (const Outcome& one : engine.run(jobs)) {
    finish.push_back(one.finish_s());
    ttft.push_back(one.ttft_s());
    tokens += one.num_tokens;
  }
  out.tokens_per_s.push_back(tokens / percentile(finish, 100));
  out.mean_finish.push_back(mean(finish));
  out.p50_finish.push_back(percentile(finish, 50));
  out.p99_finish.push_back(percentile(finish, 99));
  out.mean_ttft.push_back(mean(ttft));
  out.p99_ttft.push_back(percentile(ttft, 99));
  return out.tokens_per_s.back();
}

}  // namespace

ScenarioReport max_batch_scenario(const ScenarioSetup& setup) {
  TimedModel model = timed_model(setup, kLength);
  const std::vector<Job> jobs = burst(model.vocab());
  Measured warm;  // warm-up of pages and caches, not reported
  measure(model, kSizes[0], jobs, warm);

  std::vector<Measured> measured(std::size(kSizes));
  for (std::uint32_t run = 0; run < setup.runs; ++run) {
    double one_at_a_time = 0;
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      setup.progress(fmt::format("run {} of {}, {} at once", run + 1, setup.runs, kSizes[i]));
      const double tokens_per_s = measure(model, kSizes[i], jobs, measured[i]);
      if (i == 0) one_at_a_time = tokens_per_s;
      measured[i].speedup.push_back(tokens_per_s / one_at_a_time);
    }
  }

  ScenarioReport report{Table({"max_num_seqs", "runs", "tokens_per_s", "speedup", "mean_finish_s", "p50_finish_s",
                               "p99_finish_s", "mean_ttft_s", "p99_ttft_s"}),
                        {model_line(model.loaded)}};
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    const Measured& all = measured[i];
    report.table.row(kSizes[i], setup.runs, median(all.tokens_per_s), median(all.speedup), median(all.mean_finish),
                     median(all.p50_finish), median(all.p99_finish), median(all.mean_ttft), median(all.p99_ttft));
    report.summary.push_back(
        fmt::format("{:2} at once: {:8.0f} tokens/s ({:4.2f} times one), finished after {:.3f} s, p99 {:.3f} s; first "
                    "token after {:.3f} s",
                    kSizes[i], median(all.tokens_per_s), median(all.speedup), median(all.mean_finish),
                    median(all.p99_finish), median(all.mean_ttft)));
  }
  return report;
}

}  // namespace quire::tools
