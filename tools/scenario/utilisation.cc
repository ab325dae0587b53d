// Blocks held in each step, against reservations of the longest length: a mix of four short requests, and one of
// sixteen.
// Source  ours; the comparison is that of PagedAttention (Kwon et al. 2023).
#include <algorithm>
#include <vector>

#include "core/kv/layout.h"
#include "tools/scenario/scenario.h"
#include "tools/scenario/step_rig.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kBlockTokens = 4;  // small, as the requests are short
constexpr std::uint32_t kMaxSequences = 8;

struct Mix {
  std::string_view name;
  std::vector<Job> jobs;
  std::uint32_t num_blocks;  // more than needed
};

Mix notebook_mix() {
  Random random(123);
  Mix mix{"notebook", {}, 64};
  constexpr struct {
    std::uint64_t arrival_step;
    std::uint32_t prompt;
    std::uint32_t answer;
  } kRequests[] = {{0, 3, 10}, {2, 6, 25}, {4, 4, 8}, {6, 5, 18}};
  for (const auto& one : kRequests) {
    mix.jobs.push_back({one.arrival_step, random.tokens(one.prompt, StepRig::kVocab), one.answer});
  }
  return mix;
}

Mix sixteen_mix() {
  Random random(16);
  Mix mix{"sixteen", {}, 128};
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t arrival = random.between(0, 60);
    const std::uint32_t prompt = random.between(2, 24);
    mix.jobs.push_back({arrival, random.tokens(prompt, StepRig::kVocab), random.between(4, 40)});
  }
  sort_by_arrival(mix.jobs);
  return mix;
}

void run(const Mix& mix, ScenarioReport& report) REQUIRES(engine_role) {
  const std::uint32_t each = kv::blocks_for(longest(mix.jobs), kBlockTokens);
  const auto batch = static_cast<std::uint32_t>(mix.jobs.size()) * each;
  std::uint32_t paged_peak = 0;
  std::uint32_t static_peak = 0;
  StepRig rig({mix.num_blocks, kBlockTokens, false, {.max_num_seqs = kMaxSequences, .max_num_batched_tokens = 512}});
  rig.run(mix.jobs, [&](const StepState& now) {
    report.table.row(mix.name, now.step, now.held_blocks, now.running * each, batch, now.running, now.done);
    paged_peak = std::max(paged_peak, now.held_blocks);
    static_peak = std::max(static_peak, now.running * each);
  });
  CHECK_EQ(rig.num_preemptions(), 0u);
  report.summary.push_back(
      fmt::format("{}: peak {} blocks; reserving the longest length, {} for those that run at once ({:.0f} %), {} for "
                  "all {} requests "
                  "({:.0f} %)",
                  mix.name, paged_peak, static_peak, 100.0 * paged_peak / static_peak, batch, mix.jobs.size(),
                  100.0 * paged_peak / batch));
}

}  // namespace

ScenarioReport utilisation_scenario(const ScenarioSetup&) {
  ScenarioReport report{
      Table({"mix", "step", "paged_blocks", "static_blocks", "static_batch_blocks", "running", "done"}), {}};
  run(notebook_mix(), report);
  run(sixteen_mix(), report);
  return report;
}

}  // namespace quire::tools
