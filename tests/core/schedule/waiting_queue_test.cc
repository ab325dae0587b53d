#include "core/schedule/waiting_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

namespace quire::schedule {
namespace {

struct Wish {
  std::uint32_t prompt = 4;
  std::uint32_t max_tokens = 4;
  std::uint32_t tenant = 0;
  std::uint32_t weight = 1;
  std::int32_t priority = 0;
  std::optional<int> deadline_s{};
};

class WaitingQueueTest : public ::testing::Test {
 protected:
  Sequence& arrive(WaitingQueue& line, const Wish& wish = {}) REQUIRES(engine_role) {
    flow::Request request;
    request.prompt.assign(wish.prompt, 1);
    request.max_tokens = wish.max_tokens;
    request.tenant = wish.tenant;
    request.weight = wish.weight;
    request.priority = wish.priority;
    if (wish.deadline_s) request.deadline = TimePoint{} + std::chrono::seconds(*wish.deadline_s);
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), pool_));
    line.add(*sequences_.back());
    return *sequences_.back();
  }
  // The order in which all that wait come in, by arrival (from 1).
  std::vector<std::uint64_t> drain(WaitingQueue& line) REQUIRES(engine_role) {
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

TEST_F(WaitingQueueTest, FcfsGoesByArrivalAndWhoWasSentBackKeepsItsPlace) {
  const SchedulerOptions options;
  WaitingQueue line(options, index_);
  for (int i = 0; i < 4; ++i) arrive(line);
  Sequence& first = *line.next();
  line.admit(first);
  first.queue.note_admitted();
  EXPECT_EQ(line.next()->id(), SeqId(2));
  line.add(first);
  EXPECT_EQ(drain(line), (Order{1, 2, 3, 4}));
}

TEST_F(WaitingQueueTest, PriorityGoesLowestFirstAndByArrivalAmongEquals) {
  const SchedulerOptions options{.policy = Policy::kPriority};
  WaitingQueue line(options, index_);
  for (const std::int32_t priority : {5, -1, 5, 0, -1}) arrive(line, {.priority = priority});
  EXPECT_EQ(drain(line), (Order{2, 5, 4, 1, 3}));
}

TEST_F(WaitingQueueTest, DeadlineGoesEarliestFirstAndNoneLast) {
  const SchedulerOptions options{.policy = Policy::kDeadline};
  WaitingQueue line(options, index_);
  for (const std::optional<int> deadline : {std::optional<int>{}, {30}, {10}, {}, {20}}) {
    arrive(line, {.deadline_s = deadline});
  }
  EXPECT_EQ(drain(line), (Order{3, 5, 2, 1, 4}));
}

TEST_F(WaitingQueueTest, WhoIsPausedOrPassedIsLookedOver) {
  const SchedulerOptions options;
  WaitingQueue line(options, index_);
  for (int i = 0; i < 3; ++i) arrive(line);
  sequences_[0]->paused = true;
  sequences_[1]->queue.skipped = true;
  EXPECT_EQ(line.next()->id(), SeqId(3));
  sequences_[2]->paused = true;
  EXPECT_EQ(line.next(), nullptr);
}

TEST_F(WaitingQueueTest, NobodyIsOvertakenMoreOftenThanTheBoundByAnEndlessStreamOfMoreUrgentOnes) {
  for (const Policy policy : {Policy::kPriority, Policy::kDeadline}) {
    for (const std::uint32_t bound : {0u, 1u, 7u}) {
      const SchedulerOptions options{.policy = policy, .max_overtakes = bound};
      WaitingQueue line(options, index_);
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

TEST_F(WaitingQueueTest, TheLongestCachedPrefixGoesFirst) {
  const SchedulerOptions options{.policy = Policy::kCache};
  WaitingQueue line(options, index_);
  const std::vector<TokenId> known{7, 7, 7, 7};
  std::vector<BlockId> blocks{*pool_.take()};
  index_.insert(CacheNamespace{0, 1}, kv::PrefixIndex::kRoot, known, blocks);
  const auto ask = [&](std::vector<TokenId> prompt) REQUIRES(engine_role) {
    flow::Request request;
    request.prompt = std::move(prompt);
    request.cache_namespace = CacheNamespace{0, 1};
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), pool_));
    line.add(*sequences_.back());
  };
  ask({1, 2, 3});
  ask({7, 7, 3});
  ask({7, 7, 7, 7, 1});
  EXPECT_EQ(drain(line), (Order{3, 2, 1}));
  pool_.give_back(blocks[0]);
}

// A machine of some places serves the line: a prompt when it begins, then a token of each at a time.
class FairQueueTest : public WaitingQueueTest {
 protected:
  struct Running {
    Sequence* sequence;
    std::uint32_t said = 0;
    std::uint32_t length = 0;  // of the answer that it gives, at most max_tokens
  };
  struct Machine {
    std::uint32_t places = 4;
    std::vector<Running> running{};
    std::map<std::uint32_t, double> served{};  // tokens, by tenant
  };

  void begin(WaitingQueue& line, Machine& machine, const std::function<std::uint32_t(Sequence&)>& length)
      REQUIRES(engine_role) {
    line.begin_plan();
    while (machine.running.size() < machine.places) {
      Sequence* const next = line.next();
      if (next == nullptr) return;
      line.admit(*next);
      next->queue.note_admitted();
      machine.served[next->request().tenant] += next->num_tokens();
      machine.running.push_back({next, 0, length(*next)});
    }
  }
  void step(WaitingQueue& line, Machine& machine) REQUIRES(engine_role) {
    for (Running& one : machine.running) {
      ++one.said;
      machine.served[one.sequence->request().tenant] += 1;
      line.charge(*one.sequence, one.sequence->num_tokens() + one.said);
    }
    std::erase_if(machine.running, [](const Running& one) { return one.said == one.length; });
  }
  // Nobody is sent back here: who has not begun waits.
  std::ptrdiff_t num_waiting(std::uint32_t tenant) const {
    return std::ranges::count_if(
        sequences_, [tenant](const auto& one) { return !one->queue.started && one->request().tenant == tenant; });
  }
  bool waits(std::uint32_t tenant) const { return num_waiting(tenant) > 0; }

  const SchedulerOptions options_{.policy = Policy::kFair};
};

// The bound that the header states, from any moment to any later one between which both wait.
TEST_F(FairQueueTest, TenantsThatWaitAreServedByTheirWeightsWhateverTheySendAndHoweverLongTheirAnswersAre) {
  constexpr std::uint32_t kLongestPrompt = 60;
  constexpr std::uint32_t kLongestAnswer = 40;
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 generator(seed);
    const auto random = [&generator](std::uint32_t most) { return 1 + static_cast<std::uint32_t>(generator() % most); };
    sequences_.clear();
    WaitingQueue line(options_, index_);
    Machine machine{.places = random(8)};
    std::map<std::uint32_t, std::uint32_t> weight;
    std::map<std::uint32_t, std::uint32_t> longest;
    for (std::uint32_t tenant = 1; tenant <= 3; ++tenant) {
      weight[tenant] = random(5);
      longest[tenant] = random(kLongestAnswer);  // one says little and another much, of the same max_tokens
    }
    const auto bound = [&](std::uint32_t tenant) {
      return (kLongestPrompt + double{kLongestAnswer} * machine.places) / weight[tenant];
    };
    std::map<std::uint32_t, double> least;  // of the difference between two tenants since both wait
    std::map<std::uint32_t, double> most;
    for (int turn = 0; turn < 2000; ++turn) {
      // Tenant 3 comes and goes; of the others one sends ten times as much as the other.
      for (std::uint32_t tenant = 1; tenant <= 3; ++tenant) {
        const bool sends = tenant == 1 ? generator() % 4 == 0 : tenant == 2 ? generator() % 20 == 0 : turn % 1000 > 800;
        const bool seldom = tenant == 2 && !waits(2);  // it always waits
        if (!sends && !seldom) continue;
        arrive(line, {.prompt = random(kLongestPrompt),
                      .max_tokens = kLongestAnswer,
                      .tenant = tenant,
                      .weight = weight[tenant]});
      }
      begin(line, machine, [&](Sequence& one) { return random(longest[one.request().tenant]); });
      step(line, machine);
      for (std::uint32_t a = 1; a <= 3; ++a) {
        const std::uint32_t b = a % 3 + 1;
        const double apart = machine.served[a] / weight[a] - machine.served[b] / weight[b];
        if (!waits(a) || !waits(b)) {
          least.erase(a);
          most.erase(a);
          continue;
        }
        least[a] = std::min(least.try_emplace(a, apart).first->second, apart);
        most[a] = std::max(most.try_emplace(a, apart).first->second, apart);
        ASSERT_LE(most[a] - least[a], bound(a) + bound(b)) << "turn " << turn;
      }
    }
    EXPECT_GT(machine.served[2], 0.0);
  }
}

TEST_F(FairQueueTest, AWeightOfThreeGetsThreeTimesTheTokens) {
  WaitingQueue line(options_, index_);
  Machine machine{.places = 2};
  for (int turn = 0; turn < 20000; ++turn) {
    for (const std::uint32_t tenant : {1u, 2u}) {
      while (num_waiting(tenant) < 4) {  // both want more than there is
        arrive(line, {.prompt = 20, .tenant = tenant, .weight = tenant == 1 ? 3u : 1u});
      }
    }
    begin(line, machine, [](Sequence&) { return 10u; });
    step(line, machine);
  }
  EXPECT_NEAR(machine.served[1] / machine.served[2], 3.0, 0.05);
}

TEST_F(FairQueueTest, WithinATenantPriorityHoldsAndThenArrival) {
  WaitingQueue line(options_, index_);
  for (const std::int32_t priority : {5, 0, -1, 0}) arrive(line, {.priority = priority});
  EXPECT_EQ(drain(line), (Order{3, 2, 4, 1}));
}

TEST_F(FairQueueTest, WhoWasSentBackGoesBeforeEverybodyAndIsNotPaidForAgain) {
  WaitingQueue line(options_, index_);
  Sequence& first = arrive(line, {.prompt = 100, .tenant = 1});
  arrive(line, {.tenant = 2});
  EXPECT_EQ(line.next(), &first);
  line.admit(first);
  first.queue.note_admitted();
  const double served = line.served(1);
  EXPECT_EQ(served, 100.0);
  line.add(first);
  EXPECT_EQ(line.next(), &first);
  line.admit(first);
  EXPECT_EQ(line.served(1), served);
}

TEST_F(FairQueueTest, ATenantWithALargeRequestIsNotKeptWaitingByOneWhoseRequestsDripIn) {
  WaitingQueue line(options_, index_);
  arrive(line, {.tenant = 1});
  Sequence& large = arrive(line, {.prompt = 200, .max_tokens = 16, .tenant = 2});
  for (int before = 0;; ++before) {
    Sequence& next = *line.next();
    line.admit(next);
    if (&next == &large) break;
    arrive(line, {.tenant = 1});
    ASSERT_LT(before, 3);
  }
}

TEST_F(FairQueueTest, ATenantThatComesBackBringsNothingSavedUp) {
  WaitingQueue line(options_, index_);
  arrive(line, {.tenant = 1});
  line.admit(*line.next());  // known from then on
  for (int i = 0; i < 100; ++i) {
    arrive(line, {.tenant = 2});
    line.admit(*line.next());
  }
  for (int i = 0; i < 4; ++i) arrive(line, {.tenant = 1});
  for (int i = 0; i < 4; ++i) arrive(line, {.tenant = 2});
  std::map<std::uint32_t, int> started;
  for (int i = 0; i < 4; ++i) {
    Sequence& next = *line.next();
    ++started[next.request().tenant];
    line.admit(next);
  }
  EXPECT_GE(started[2], 1) << "it was there alone, and owes nobody";
  EXPECT_GE(started[1], 2);
}

TEST_F(FairQueueTest, WithOneTenantItIsByArrival) {
  WaitingQueue line(options_, index_);
  for (std::uint32_t i = 0; i < 5; ++i) arrive(line, {.prompt = 1 + 7 * (i % 3)});
  EXPECT_EQ(drain(line), (Order{1, 2, 3, 4, 5}));
}

TEST_F(WaitingQueueTest, WhoLeavesTheLineUnservedLeavesTheOthersInOrder) {
  for (const Policy policy : {Policy::kFcfs, Policy::kPriority, Policy::kFair, Policy::kCache}) {
    const SchedulerOptions options{.policy = policy};
    WaitingQueue line(options, index_);
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
