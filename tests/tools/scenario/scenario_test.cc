#include "tools/scenario/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/base/start_error.h"
#include "tests/support/source_tree.h"
#include "tools/common/figures.h"
#include "tools/scenario/step_rig.h"
#include "tools/scenario/timed_model.h"

namespace quire::tools {
namespace {

using test::source_path;

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- figures

TEST(Figures, ThePercentileIsTheNearestRank) {
  const auto up_to = [](int last) {
    std::vector<double> values(last);
    for (int i = 0; i < last; ++i) values[i] = last - i;
    return values;
  };
  EXPECT_EQ(percentile(up_to(99), 99), 99);
  EXPECT_EQ(percentile(up_to(100), 99), 99);
  EXPECT_EQ(percentile(up_to(101), 99), 100);
  EXPECT_EQ(percentile(up_to(1), 1), 1);
  EXPECT_EQ(percentile(up_to(100), 100), 100);
  EXPECT_EQ(percentile(up_to(4), 50), 2);
}

TEST(Figures, TheMedianOfAnEvenNumberLiesBetweenTheMiddleTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(Table, WritesAHeaderAndPlainNumbers) {
  Table table({"name", "count", "share"});
  table.row("fcfs", 3u, 2.0 / 3);
  table.row("fair", std::uint64_t{10}, 1234567.0);
  EXPECT_EQ(table.csv(), "name,count,share\nfcfs,3,0.666667\nfair,10,1.23457e+06\n");
}

TEST(Table, DiesOfARowThatIsNotAsWideAsItsHeader) {
  Table table({"one", "two"});
  EXPECT_DEATH(table.row(1), "1 vs 2");
  EXPECT_DEATH(table.row(1, 2, 3), "3 vs 2");
}

TEST(Mix, ItsNumbersAreSplitMix64s) {
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(Mix, DrawsAsManyFromEachPartOfADistribution) {
  constexpr std::array<std::uint32_t, 11> kDeciles = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 1000};
  Random random(1);
  int below_fifty = 0, above_ninety = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::uint32_t value = random.from_deciles(kDeciles);
    ASSERT_LE(value, 1000u);
    below_fifty += value < 50;
    above_ninety += value > 90;
  }
  EXPECT_NEAR(below_fifty, 4900, 250);  // half, less one in eleven of the fifth part
  EXPECT_NEAR(above_ninety, 1000, 150);
}

// ---- the rig that counts steps

std::vector<Job> jobs_of(std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> prompt_and_answer) {
  Random random(1);
  std::vector<Job> jobs;
  for (const auto& [prompt, answer] : prompt_and_answer) {
    jobs.push_back({0, random.tokens(prompt, StepRig::kVocab), answer});
  }
  return jobs;
}

TEST(StepRig, CountsTheStepsRowsAndBlocksOfOneRequest) {
  const RoleScope role(engine_role);
  StepRig rig({.num_blocks = 8, .block_tokens = 4});
  std::vector<std::uint32_t> held;
  std::vector<std::uint64_t> stored;
  const auto outcomes = rig.run(jobs_of({{7, 4}}), [&](const StepState& now) {
    held.push_back(now.held_blocks);
    stored.push_back(now.stored_tokens);
    EXPECT_EQ(now.running, 1u);
    EXPECT_EQ(now.done, now.step == 3 ? 1u : 0u);
  });
  EXPECT_THAT(held, ElementsAre(2, 2, 3, 3));
  EXPECT_THAT(stored, ElementsAre(7, 8, 9, 10));
  EXPECT_EQ(outcomes[0].num_rows, 10u);
  EXPECT_EQ(outcomes[0].num_recomputed, 0u);
  EXPECT_EQ(outcomes[0].finish_steps(), 4u);
  EXPECT_EQ(rig.num_steps(), 4u);
}

TEST(StepRig, ARequestWaitsForTheOnePlaceThereIs) {
  const RoleScope role(engine_role);
  StepRig rig({.num_blocks = 8, .scheduler = {.max_num_seqs = 1}});
  std::vector<Job> jobs = jobs_of({{5, 10}, {5, 3}});
  jobs[1].arrival_step = 4;
  const auto outcomes = rig.run(jobs);
  EXPECT_EQ(outcomes[0].waited_steps(), 0u);
  EXPECT_EQ(outcomes[1].waited_steps(), 6u);
  EXPECT_EQ(outcomes[1].finish_steps(), 9u);
}

TEST(StepRig, NothingHappensUntilTheFirstArrival) {
  const RoleScope role(engine_role);
  StepRig rig({.num_blocks = 8});
  std::vector<Job> jobs = jobs_of({{5, 2}});
  jobs[0].arrival_step = 3;
  std::vector<std::uint32_t> held;
  const auto outcomes = rig.run(jobs, [&](const StepState& now) { held.push_back(now.held_blocks); });
  EXPECT_THAT(held, ElementsAre(0, 0, 0, 1, 1));
  EXPECT_EQ(outcomes[0].first_step, 3u);
}

TEST(StepRig, EveryRowIsRunOnceAndAgainAfterAPreemption) {
  const RoleScope role(engine_role);
  const std::vector<Job> jobs = jobs_of({{20, 60}, {20, 60}, {20, 60}, {20, 60}});
  StepRig roomy({.num_blocks = 20});
  for (const StepOutcome& one : roomy.run(jobs)) EXPECT_EQ(one.num_rows, 79u);
  EXPECT_EQ(roomy.num_preemptions(), 0u);

  StepRig tight({.num_blocks = 10});
  std::uint64_t recomputed = 0;
  for (const StepOutcome& one : tight.run(jobs)) {
    EXPECT_EQ(one.num_rows, 79u + one.num_recomputed);
    recomputed += one.num_recomputed;
  }
  EXPECT_GT(tight.num_preemptions(), 0u);
  EXPECT_GT(recomputed, 0u);
}

TEST(StepRig, ReportsHowMuchOfAPromptWasCached) {
  const RoleScope role(engine_role);
  StepRig rig({.num_blocks = 16, .prefix_caching = true});
  std::vector<Job> jobs = jobs_of({{40, 2}, {40, 2}});
  jobs[1].prompt = jobs[0].prompt;
  jobs[1].prompt.back() ^= 1;
  jobs[1].arrival_step = 10;
  const auto outcomes = rig.run(jobs);
  EXPECT_EQ(outcomes[0].cached_tokens, 0u);
  EXPECT_GE(outcomes[1].cached_tokens, 32u);  // its full blocks at least
  EXPECT_EQ(outcomes[1].num_rows, 41u - outcomes[1].cached_tokens);
}

// ---- the scenarios that count steps

Config defaults() {
  Problems problems;
  return app::resolve({}, problems);
}

ScenarioReport report_of(std::string_view name) {
  const Config config = defaults();
  const RoleScope role(engine_role);
  return find_scenario(name)->run({config, 5, "", [](const std::string&) {}});
}

// [rows] by column.
std::map<std::string, std::vector<std::string>> columns_of(const Table& table) {
  std::map<std::string, std::vector<std::string>> out;
  std::vector<std::string> names;
  std::istringstream lines(table.csv());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    if (names.empty()) {
      names = row;
      continue;
    }
    for (std::size_t i = 0; i < names.size(); ++i) out[names[i]].push_back(row.at(i));
  }
  return out;
}

std::vector<double> numbers(const std::vector<std::string>& cells) {
  std::vector<double> out;
  for (const std::string& cell : cells) out.push_back(std::stod(cell));
  return out;
}

TEST(Scenarios, ThoseThatCountStepsSayTheSameEveryTime) {
  for (const Scenario& one : scenarios()) {
    if (!one.counts_steps) continue;
    EXPECT_EQ(report_of(one.name).table.csv(), report_of(one.name).table.csv()) << one.name;
  }
}

TEST(Scenarios, PagesTakeLessThanAReservationAtEveryStep) {
  auto columns = columns_of(report_of("utilisation").table);
  const auto paged = numbers(columns["paged_blocks"]);
  const auto reserved = numbers(columns["static_blocks"]);
  for (std::size_t i = 0; i < paged.size(); ++i) EXPECT_LE(paged[i], reserved[i]) << "row " << i;
  EXPECT_EQ(columns["mix"].front(), "notebook");
  EXPECT_EQ(columns["done"].back(), "16");
  EXPECT_THAT(columns["static_batch_blocks"], ::testing::Contains("32"));  // the notebook's own figure
}

TEST(Scenarios, NoRoomHoldsMoreTokensThanItHas) {
  auto columns = columns_of(report_of("waste").table);
  const auto stored = numbers(columns["stored_tokens"]);
  for (const char* room : {"paged_16_tokens", "paged_64_tokens", "static_exact_tokens"}) {
    const auto has = numbers(columns[room]);
    for (std::size_t i = 0; i < stored.size(); ++i) EXPECT_LE(stored[i], has[i]) << room << ", row " << i;
  }
}

TEST(Scenarios, ATightPoolPreemptsWhoeverTheVictimIs) {
  auto columns = columns_of(report_of("preemption").table);
  EXPECT_EQ(columns["victim"].size(), 9u);
  EXPECT_THAT(numbers(columns["preemptions"]), Each(::testing::Gt(10)));
  std::map<std::string, double> again;
  const auto recomputed = numbers(columns["recomputed_rows"]);
  for (std::size_t i = 0; i < recomputed.size(); ++i) again[columns["way_back"][i]] += recomputed[i];
  EXPECT_LT(again["prefix-cache"], again["recompute"]);  // what was computed may still be kept
  EXPECT_LT(again["swap"], again["prefix-cache"]);
}

TEST(Scenarios, NobodyIsOvertakenMoreOftenThanThePoliciesPromise) {
  auto columns = columns_of(report_of("policies").table);
  const auto overtaken = numbers(columns["max_overtaken"]);
  for (std::size_t i = 0; i < overtaken.size(); ++i) {
    const std::string& policy = columns["policy"][i];
    if (policy == "fair") continue;  // its bound is in tokens
    EXPECT_LE(overtaken[i], policy == "fcfs" ? 0 : 64) << policy << ", " << columns["group"][i];
  }
}

// ---- the ones that take the time

TEST(Scenarios, AModelThatIsTooShortIsRefused) {
  Config config = defaults();
  config.model = source_path("models/stories").string();
  config.threads = 1;
  const ScenarioSetup setup{config, 5, "", [](const std::string&) {}};
  EXPECT_EQ(timed_model(setup, 511).vocab(), 4096u);
  EXPECT_EQ(timed_model(setup, 512).vocab(), 4096u);
  try {
    timed_model(setup, 513);
    FAIL() << "it was taken";
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is 512"));
  }
}

TEST(Scenarios, ATimedEngineAnswersEveryJob) {
  Config config = defaults();
  config.threads = 1;
  TimedModel model = timed_model({config, 5, "", [](const std::string&) {}}, 64);
  const RoleScope role(engine_role);
  TimedEngine engine(model, {.max_num_seqs = 2, .length = 64, .prefix_caching = true});
  Random random(1);
  std::vector<Job> jobs;
  for (int i = 0; i < 3; ++i) jobs.push_back({0, random.tokens(40, model.vocab()), 4});
  for (const Outcome& one : engine.run(jobs)) {
    EXPECT_EQ(one.num_tokens, 4u);
    EXPECT_EQ(one.cached_tokens, 0u);
    EXPECT_GT(one.ttft_s(), 0);
    EXPECT_GE(one.finish_s(), one.ttft_s());
  }
  EXPECT_GE(engine.run(std::span(jobs).first(1)).front().cached_tokens, 32u);  // the cache is the engine's, not a run's
}

}  // namespace
}  // namespace quire::tools
