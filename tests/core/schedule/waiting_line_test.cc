#include "core/schedule/waiting_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

namespace quire::schedule {
namespace {

struct Wish {
  std::uint32_t prompt = 4;
  std::uint32_t max_tokens = 4;
  std::uint32_t tenant = 0;
  std::int32_t priority = 0;
  std::optional<int> deadline_s{};
};

class WaitingLineTest : public ::testing::Test {
 protected:
  Sequence& arrive(WaitingLine& line, const Wish& wish = {}) REQUIRES(engine_role) {
    flow::Request request;
    request.prompt.assign(wish.prompt, 1);
    request.max_tokens = wish.max_tokens;
    request.tenant = wish.tenant;
    request.priority = wish.priority;
    if (wish.deadline_s) request.deadline = TimePoint{} + std::chrono::seconds(*wish.deadline_s);
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), pool_));
    line.add(*sequences_.back());
    return *sequences_.back();
  }
  // The order in which all that wait come in, by arrival (from 1).
  std::vector<std::uint64_t> drain(WaitingLine& line) REQUIRES(engine_role) {
    std::vector<std::uint64_t> order;
    while (Sequence* next = line.next()) {
      EXPECT_EQ(line.next(), next) << "asking changes nothing";
      order.push_back(next->id().value);
      line.admit(*next);
    }
    return order;
  }

  RoleScope role_{engine_role};
  kv::BlockPool pool_{64, 4};
  kv::PrefixIndex index_{pool_, {}};
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

using Order = std::vector<std::uint64_t>;

TEST_F(WaitingLineTest, FcfsGoesByArrivalAndWhoWasSentBackKeepsItsPlace) {
  const SchedulerOptions options;
  WaitingLine line(options, index_);
  for (int i = 0; i < 4; ++i) arrive(line);
  Sequence& first = *line.next();
  line.admit(first);
  first.begin_residency();
  EXPECT_EQ(line.next()->id(), SeqId(2));
  line.add(first);
  EXPECT_EQ(drain(line), (Order{1, 2, 3, 4}));
}

TEST_F(WaitingLineTest, PriorityGoesLowestFirstAndByArrivalAmongEquals) {
  const SchedulerOptions options{.policy = Policy::kPriority};
  WaitingLine line(options, index_);
  for (const std::int32_t priority : {5, -1, 5, 0, -1}) arrive(line, {.priority = priority});
  EXPECT_EQ(drain(line), (Order{2, 5, 4, 1, 3}));
}

TEST_F(WaitingLineTest, DeadlineGoesEarliestFirstAndNoneLast) {
  const SchedulerOptions options{.policy = Policy::kDeadline};
  WaitingLine line(options, index_);
  for (const std::optional<int> deadline : {std::optional<int>{}, {30}, {10}, {}, {20}}) {
    arrive(line, {.deadline_s = deadline});
  }
  EXPECT_EQ(drain(line), (Order{3, 5, 2, 1, 4}));
}

TEST_F(WaitingLineTest, WhoIsParkedOrPassedIsLookedOver) {
  const SchedulerOptions options;
  WaitingLine line(options, index_);
  for (int i = 0; i < 3; ++i) arrive(line);
  sequences_[0]->parked = true;
  sequences_[1]->passed = true;
  EXPECT_EQ(line.next()->id(), SeqId(3));
  sequences_[2]->parked = true;
  EXPECT_EQ(line.next(), nullptr);
}

TEST_F(WaitingLineTest, NobodyIsOvertakenMoreOftenThanTheBoundByAnEndlessStreamOfMoreUrgentOnes) {
  for (const Policy policy : {Policy::kPriority, Policy::kDeadline}) {
    for (const std::uint32_t bound : {0u, 1u, 7u}) {
      const SchedulerOptions options{.policy = policy, .max_overtakes = bound};
      WaitingLine line(options, index_);
      sequences_.clear();
      Sequence& patient = arrive(line, {.priority = 9});
      std::uint32_t before = 0;
      for (;; ++before) {
        arrive(line, {.priority = 0, .deadline_s = 1});
        Sequence& next = *line.next();
        line.admit(next);
        if (&next == &patient) break;
        ASSERT_LE(before, bound);
      }
      EXPECT_EQ(before, bound);
      EXPECT_EQ(line.num_overtakes(), bound);
    }
  }
}

TEST_F(WaitingLineTest, TheLongestCachedPrefixGoesFirst) {
  const SchedulerOptions options{.policy = Policy::kCache};
  WaitingLine line(options, index_);
  const std::vector<TokenId> known{7, 7, 7, 7};
  const BlockId block = *pool_.take();
  index_.insert(CacheRoot{0, 1}, kv::PrefixIndex::kRoot, known, block);
  const auto ask = [&](std::vector<TokenId> prompt) REQUIRES(engine_role) {
    flow::Request request;
    request.prompt = std::move(prompt);
    request.cache_root = CacheRoot{0, 1};
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), pool_));
    line.add(*sequences_.back());
  };
  ask({1, 2, 3});
  ask({7, 7, 3});
  ask({7, 7, 7, 7, 1});
  EXPECT_EQ(drain(line), (Order{3, 2, 1}));
  pool_.give_back(block);
}

TEST_F(WaitingLineTest, FairTenantsGetTheSameTokensHoweverManyRequestsOneOfThemSends) {
  const SchedulerOptions options{.policy = Policy::kFair, .fair_quantum_tokens = 50};
  WaitingLine line(options, index_);
  std::mt19937 generator(1);
  const auto random = [&generator] { return static_cast<std::uint32_t>(generator()); };
  for (int i = 0; i < 400; ++i)
    arrive(line, {.prompt = 1 + random() % 60, .max_tokens = 1 + random() % 40, .tenant = 1});
  for (int i = 0; i < 60; ++i)
    arrive(line, {.prompt = 1 + random() % 60, .max_tokens = 1 + random() % 40, .tenant = 2});
  for (int i = 0; i < 60; ++i) arrive(line, {.prompt = 1, .max_tokens = 1, .tenant = 3});
  std::map<std::uint32_t, std::uint64_t> tokens;
  constexpr std::uint64_t kLargest = 100;
  while (Sequence* next = line.next()) {
    const flow::Request& request = next->request();
    line.admit(*next);
    tokens[request.tenant] += request.prompt.size() + request.max_tokens;
    bool all_wait = true;
    for (std::uint32_t tenant = 1; tenant <= 2; ++tenant) {
      all_wait = all_wait && std::ranges::any_of(line.sequences(), [tenant](const Sequence* one) {
                   return one->request().tenant == tenant;
                 });
    }
    if (!all_wait) break;
    const std::uint64_t gap = std::max(tokens[1], tokens[2]) - std::min(tokens[1], tokens[2]);
    ASSERT_LE(gap, 2 * (options.fair_quantum_tokens + kLargest));
  }
}

TEST_F(WaitingLineTest, ATenantWithALargeRequestIsNotKeptWaitingByOneWhoseRequestsDripIn) {
  const SchedulerOptions options{.policy = Policy::kFair, .fair_quantum_tokens = 512};
  WaitingLine line(options, index_);
  Sequence& large = arrive(line, {.prompt = 2000, .max_tokens = 16, .tenant = 2});
  int before = 0;
  for (;; ++before) {
    arrive(line, {.tenant = 1});
    Sequence& next = *line.next();
    line.admit(next);
    if (&next == &large) break;
    ASSERT_LT(before, 10);
  }
}

TEST_F(WaitingLineTest, ATenantThatComesBackBringsNoCreditFromBefore) {
  const SchedulerOptions options{.policy = Policy::kFair, .fair_quantum_tokens = 10};
  WaitingLine line(options, index_);
  for (int round = 0; round < 5; ++round) {
    arrive(line, {.tenant = 1});
    line.admit(*line.next());
  }
  EXPECT_EQ(line.next(), nullptr);
  for (int i = 0; i < 4; ++i) arrive(line, {.tenant = 1});
  for (int i = 0; i < 4; ++i) arrive(line, {.tenant = 2});
  std::map<std::uint32_t, int> started;
  for (int i = 0; i < 4; ++i) {
    Sequence& next = *line.next();
    ++started[next.request().tenant];
    line.admit(next);
  }
  EXPECT_EQ(started[1], 2);
  EXPECT_EQ(started[2], 2);
}

TEST_F(WaitingLineTest, ASequenceLargerThanManyQuantaStillComesIn) {
  const SchedulerOptions options{.policy = Policy::kFair, .fair_quantum_tokens = 1};
  WaitingLine line(options, index_);
  arrive(line, {.prompt = 200, .max_tokens = 300, .tenant = 1});
  arrive(line, {.tenant = 2});
  EXPECT_EQ(drain(line), (Order{2, 1}));
}

TEST_F(WaitingLineTest, WhoLeavesTheLineUnservedLeavesTheOthersInOrder) {
  for (const Policy policy : {Policy::kFcfs, Policy::kPriority, Policy::kFair, Policy::kCache}) {
    const SchedulerOptions options{.policy = policy};
    WaitingLine line(options, index_);
    sequences_.clear();
    for (std::uint32_t i = 0; i < 6; ++i) arrive(line, {.tenant = i % 3});
    line.remove(*sequences_[0]);
    line.remove(*sequences_[3]);  // tenant 0 is gone
    line.remove(*sequences_[4]);
    EXPECT_EQ(line.size(), 3u);
    EXPECT_EQ(drain(line).size(), 3u);
  }
}

}  // namespace
}  // namespace quire::schedule
