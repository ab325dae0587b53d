// Order of admission: the five policies on one mix of tenants, priorities, deadlines and shared prefixes.
//   waiting: steps between a request's arrival and its first rows.
//   overtaken: number of later arrivals that ran first; the scheduler bounds it by max_overtakes.
#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "tools/common/figures.h"
#include "tools/scenario/scenario.h"
#include "tools/scenario/step_rig.h"

namespace quire::tools {
namespace {

using schedule::Policy;

constexpr std::uint32_t kMaxSequences = 8;
constexpr std::uint32_t kBlocks = 112;  // of 16 tokens: enough for the running sequences, not for all prefixes as well
constexpr std::uint32_t kMaxOvertakes = 64;
constexpr std::uint32_t kFlood = 96;     // requests of tenant 0, all in the first steps
constexpr std::uint32_t kPolite = 32;    // of tenants 1 and 2 each, spread over time
constexpr std::uint32_t kPrefixes = 12;  // system prompts that requests share
constexpr std::uint32_t kPrefixTokens = 128;
// Steps from arrival to deadline: of every fourth request on average, and of the others.
constexpr std::uint64_t kUrgentSteps = 150;
constexpr std::uint64_t kRelaxedSteps = 1500;

struct Mix {
  std::vector<Job> jobs;
  std::vector<bool> urgent;
};

Mix tenants_mix() {
  Random random(11);
  std::vector<std::vector<TokenId>> prefixes(kPrefixes);
  for (auto& prefix : prefixes) prefix = random.tokens(kPrefixTokens, StepRig::kVocab);
  Mix mix;
  const auto add = [&](std::uint32_t tenant, std::uint32_t first, std::uint32_t last) {
    Job job;
    job.tenant = tenant;
    job.arrival_step = random.between(first, last);
    job.prompt = prefixes[random.between(0, kPrefixes - 1)];
    const std::vector<TokenId> question = random.tokens(random.between(8, 48), StepRig::kVocab);
    job.prompt.insert(job.prompt.end(), question.begin(), question.end());
    job.max_tokens = random.between(16, 64);
    job.priority = static_cast<std::int32_t>(random.between(0, 2));
    job.deadline_step = job.arrival_step + (random.between(0, 3) == 0 ? kUrgentSteps : kRelaxedSteps);
    mix.jobs.push_back(std::move(job));
  };
  for (std::uint32_t i = 0; i < kFlood; ++i) add(0, 0, 100);
  for (std::uint32_t i = 0; i < kPolite; ++i) {
    for (const std::uint32_t tenant : {1u, 2u}) add(tenant, 24 * i, 24 * i + 23);
  }
  sort_by_arrival(mix.jobs);
  for (const Job& job : mix.jobs) mix.urgent.push_back(*job.deadline_step - job.arrival_step == kUrgentSteps);
  return mix;
}

struct Group {
  std::string_view name;
  std::function<bool(std::size_t job)> holds;
};

std::uint64_t overtaken(std::size_t job, const std::vector<StepOutcome>& outcomes) {
  return static_cast<std::uint64_t>(
      std::count_if(outcomes.begin() + static_cast<std::ptrdiff_t>(job) + 1, outcomes.end(),
                    [&](const StepOutcome& later) { return later.first_step < outcomes[job].first_step; }));
}

struct Figures {
  std::vector<double> waits;
  std::uint64_t max_overtaken = 0;
  std::uint64_t cached = 0;
  std::uint64_t prompt = 0;
  std::uint64_t in_time = 0;

  double cached_share() const { return static_cast<double>(cached) / static_cast<double>(prompt); }
  double in_time_share() const { return static_cast<double>(in_time) / static_cast<double>(waits.size()); }
};

Figures figures_of(const Mix& mix, const std::vector<StepOutcome>& outcomes, const Group& group) {
  Figures out;
  for (std::size_t i = 0; i < mix.jobs.size(); ++i) {
    if (!group.holds(i)) continue;
    out.waits.push_back(static_cast<double>(outcomes[i].waited_steps()));
    out.max_overtaken = std::max(out.max_overtaken, overtaken(i, outcomes));
    out.cached += outcomes[i].cached_tokens;
    out.prompt += mix.jobs[i].prompt.size();
    if (outcomes[i].finished_step < *mix.jobs[i].deadline_step) ++out.in_time;
  }
  return out;
}

void run(std::string_view name, Policy policy, const Mix& mix, ScenarioReport& report) REQUIRES(engine_role) {
  StepRig rig({kBlocks,
               16,
               true,
               {.max_num_seqs = kMaxSequences,
                .max_num_batched_tokens = 256,
                .policy = policy,
                .max_overtakes = kMaxOvertakes}});
  const std::vector<StepOutcome> outcomes = rig.run(mix.jobs);
  const auto tenant = [&](std::uint32_t one) {
    return [&mix, one](std::size_t i) { return mix.jobs[i].tenant == one; };
  };
  const auto priority = [&](std::int32_t one) {
    return [&mix, one](std::size_t i) { return mix.jobs[i].priority == one; };
  };
  const Group groups[] = {
      {"all", [](std::size_t) { return true; }},
      {"tenant-0-flood", tenant(0)},
      {"tenant-1", tenant(1)},
      {"tenant-2", tenant(2)},
      {"priority-0", priority(0)},
      {"priority-1", priority(1)},
      {"priority-2", priority(2)},
      {"urgent", [&](std::size_t i) -> bool { return mix.urgent[i]; }},
      {"relaxed", [&](std::size_t i) -> bool { return !mix.urgent[i]; }},
  };
  for (const Group& group : groups) {
    const Figures figures = figures_of(mix, outcomes, group);
    const double longest_wait = percentile(figures.waits, 100);
    report.table.row(name, group.name, figures.waits.size(), mean(figures.waits), percentile(figures.waits, 99),
                     longest_wait, figures.max_overtaken, figures.cached_share(), figures.in_time_share());
    if (group.name != "all") continue;
    report.summary.push_back(
        fmt::format("{:<9} waited {:.0f} steps, p99 {:.0f}, at most {:.0f}; overtaken at most {} times; {:.0f} % of "
                    "prompts cached; {:.0f} % in "
                    "time; {} steps",
                    name, mean(figures.waits), percentile(figures.waits, 99), longest_wait, figures.max_overtaken,
                    100 * figures.cached_share(), 100 * figures.in_time_share(), rig.num_steps()));
  }
}

}  // namespace

ScenarioReport policies_scenario(const ScenarioSetup&) {
  ScenarioReport report{Table({"policy", "group", "requests", "mean_wait_steps", "p99_wait_steps", "max_wait_steps",
                               "max_overtaken", "cached_share", "in_time_share"}),
                        {}};
  const Mix mix = tenants_mix();
  run("fcfs", Policy::kFcfs, mix, report);
  run("priority", Policy::kPriority, mix, report);
  run("deadline", Policy::kDeadline, mix, report);
  run("fair", Policy::kFair, mix, report);
  run("cache", Policy::kCache, mix, report);
  return report;
}

}  // namespace quire::tools
