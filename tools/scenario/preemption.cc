// Preemption in a pool that is too small for the mix: the three choices of victim, and three ways to resume: recompute;
// recompute what the prefix cache has lost; swap in from host memory.
// Source  ours.
#include <vector>

#include "tools/common/figures.h"
#include "tools/scenario/scenario.h"
#include "tools/scenario/step_rig.h"

namespace quire::tools {
namespace {

using schedule::Victim;

constexpr std::uint32_t kRequests = 96;
constexpr std::uint32_t kBlocks = 96;  // of 16 tokens; kMaxSequences of the mix would use about twice as many
constexpr std::uint32_t kMaxSequences = 16;
constexpr std::int32_t kImportant = 0;
constexpr std::int32_t kUnimportant = 2;

std::vector<Job> tight_mix() {
  Random random(7);
  std::vector<Job> jobs;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    Job job;
    job.arrival_step = 18 * i + random.between(0, 17);
    job.prompt = random.tokens(random.between(16, 160), StepRig::kVocab);
    job.max_tokens = random.between(16, 256);
    job.priority = static_cast<std::int32_t>(random.between(kImportant, kUnimportant));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

struct WayBack {
  std::string_view name;
  bool prefix_caching;
  std::uint32_t num_swap_blocks;
};
constexpr WayBack kWaysBack[] = {{"recompute", false, 0}, {"prefix-cache", true, 0}, {"swap", false, 2 * kBlocks}};

void run(std::string_view name, Victim victim, const WayBack& back, const std::vector<Job>& jobs,
         ScenarioReport& report) REQUIRES(engine_role) {
  StepRig rig({kBlocks,
               16,
               back.prefix_caching,
               {.max_num_seqs = kMaxSequences,
                .max_num_batched_tokens = 256,
                .victim = victim,
                .num_swap_blocks = back.num_swap_blocks}});
  const std::vector<StepOutcome> outcomes = rig.run(jobs);
  std::uint64_t rows = 0, recomputed = 0;
  std::vector<double> all, important, unimportant;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    rows += outcomes[i].num_rows;
    recomputed += outcomes[i].num_recomputed;
    const auto finish = static_cast<double>(outcomes[i].finish_steps());
    all.push_back(finish);
    if (jobs[i].priority == kImportant) important.push_back(finish);
    if (jobs[i].priority == kUnimportant) unimportant.push_back(finish);
  }
  report.table.row(name, back.name, rig.num_steps(), rig.num_preemptions(), rows, recomputed, mean(all),
                   percentile(all, 99), mean(important), mean(unimportant));
  report.summary.push_back(fmt::format(
      "{:<15} {:<12} {:5} steps, {:4} preemptions, {:6} rows, {:5} of them again; ended after {:.0f} steps, p99 "
      "{:.0f}; priority {}: {:.0f}, priority {}: {:.0f}",
      name, back.name, rig.num_steps(), rig.num_preemptions(), rows, recomputed, mean(all), percentile(all, 99),
      kImportant, mean(important), kUnimportant, mean(unimportant)));
}

}  // namespace

ScenarioReport preemption_scenario(const ScenarioSetup&) {
  ScenarioReport report{
      Table({"victim", "way_back", "steps", "preemptions", "rows", "recomputed_rows", "mean_finish_steps",
             "p99_finish_steps", "mean_finish_steps_priority_0", "mean_finish_steps_priority_2"}),
      {}};
  const std::vector<Job> jobs = tight_mix();
  for (const WayBack& back : kWaysBack) {
    run("newest", Victim::kNewest, back, jobs, report);
    run("longest", Victim::kLongest, back, jobs, report);
    run("lowest-priority", Victim::kLowestPriority, back, jobs, report);
  }
  return report;
}

}  // namespace quire::tools
