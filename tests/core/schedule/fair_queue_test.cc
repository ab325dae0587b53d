// The choices of a fair line against those of the plain way to choose: walk over everybody, and take the best.
#include "core/schedule/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/schedule/waiting_queue.h"

namespace quire::schedule {
namespace {

// As the header of waiting_queue.h says it, one sentence after the other.
class PlainLine {
 public:
  explicit PlainLine(std::uint32_t max_overtakes) : max_overtakes_(max_overtakes) {}

  void add(Sequence& sequence) {
    const std::uint32_t tenant = sequence.request().tenant;
    const bool alone =
        std::ranges::none_of(line_, [&](const Sequence* one) { return one->request().tenant == tenant; });
    if (alone) served_[tenant] = std::max(served_[tenant], least_);
    line_.push_back(&sequence);
    std::ranges::sort(line_, [](const Sequence* a, const Sequence* b) { return a->queue.arrived_before(b->queue); });
  }
  void remove(Sequence& sequence) { std::erase(line_, &sequence); }
  Sequence* next() const {
    for (Sequence* one : line_) {
      if (one->queue.started && open(*one)) return one;
    }
    std::map<std::uint32_t, Sequence*> heads;
    for (Sequence* one : line_) {
      if (!open(*one)) continue;
      Sequence*& head = heads[one->request().tenant];
      if (head != nullptr && overtaken(*head) >= max_overtakes_) continue;
      const bool first = head == nullptr || overtaken(*one) >= max_overtakes_;
      if (first || one->request().priority < head->request().priority) head = one;
    }
    Sequence* best = nullptr;
    for (const auto& [tenant, head] : heads) {
      if (best == nullptr) {
        best = head;
        continue;
      }
      const double mine = served_.at(tenant);
      const double others = served_.at(best->request().tenant);
      if (mine < others || (mine == others && head->queue.arrived_before(best->queue))) best = head;
    }
    return best;
  }
  void admit(Sequence& sequence) {
    if (!sequence.queue.started) {
      const std::uint32_t tenant = sequence.request().tenant;
      for (Sequence* one : line_) {
        if (one == &sequence) break;
        if (one->request().tenant != tenant || !open(*one)) continue;
        ++overtaken_[one->id().value];
        ++num_overtakes;
      }
      least_ = std::max(least_, served_[tenant]);
      served_[tenant] += static_cast<double>(sequence.num_tokens()) / sequence.request().weight;
    }
    remove(sequence);
  }
  void say(const Sequence& sequence, std::uint32_t tokens) {
    served_[sequence.request().tenant] += static_cast<double>(tokens) / sequence.request().weight;
  }
  double served(std::uint32_t tenant) const {
    const auto at = served_.find(tenant);
    return at == served_.end() ? 0.0 : at->second;
  }

  std::uint64_t num_overtakes = 0;

 private:
  static bool open(const Sequence& one) { return !one.paused && !one.queue.skipped; }
  std::uint32_t overtaken(const Sequence& one) const {
    const auto at = overtaken_.find(one.id().value);
    return at == overtaken_.end() ? 0 : at->second;
  }

  const std::uint32_t max_overtakes_;
  std::vector<Sequence*> line_;
  std::map<std::uint32_t, double> served_;
  std::map<std::uint64_t, std::uint32_t> overtaken_;
  double least_ = 0.0;
};

class FairChoices : public ::testing::Test {
 protected:
  Sequence& make(std::uint32_t tenant, std::uint32_t weight, std::int32_t priority, std::uint32_t prompt)
      REQUIRES(engine_role) {
    flow::Request request;
    request.prompt.assign(prompt, 1);
    request.max_tokens = 1000;
    request.tenant = tenant;
    request.weight = weight;
    request.priority = priority;
    sequences_.push_back(std::make_unique<Sequence>(SeqId(sequences_.size() + 1), std::move(request), pool_));
    return *sequences_.back();
  }

  RoleScope role_{engine_role};
  kv::BlockPool pool_{64, 4};
  kv::PrefixIndex index_{pool_, {}};
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

TEST_F(FairChoices, AreThoseOfThePlainWayWhateverHappens) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&random](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
    const SchedulerOptions options{.policy = Policy::kFair, .max_overtakes = below(3) == 0 ? 0 : below(6)};
    const std::uint32_t num_tenants = 1 + below(6);
    const std::uint32_t num_priorities = 1 + below(4);
    sequences_.clear();
    WaitingQueue line(options, index_);
    PlainLine plain(options.max_overtakes);
    struct Running {
      Sequence* sequence;
      std::uint32_t charged;
    };
    std::vector<Running> running;
    std::vector<Sequence*> waiting;
    std::uint32_t num_passed = 0;
    for (int event = 0; event < 1500; ++event) {
      switch (below(9)) {
        case 0:
        case 1:
        case 2: {
          const std::uint32_t tenant = below(num_tenants);
          Sequence& sequence =
              make(tenant, 1 + tenant % 3, static_cast<std::int32_t>(below(num_priorities)), 1 + below(9));
          line.add(sequence);
          plain.add(sequence);
          waiting.push_back(&sequence);
          break;
        }
        case 3:
        case 4: {  // a plan: some come in, some are passed
          line.begin_plan();
          for (Sequence* one : waiting) one->queue.skipped = false;
          for (std::uint32_t i = below(5); i > 0; --i) {
            Sequence* const next = line.next();
            ASSERT_EQ(next, plain.next()) << "event " << event;
            if (next == nullptr) break;
            if (below(4) == 0) {
              line.pass(*next);
              ++num_passed;
              continue;
            }
            plain.admit(*next);
            line.admit(*next);
            running.push_back({next, next->queue.started ? next->queue.charged_tokens : next->num_tokens()});
            next->queue.note_admitted();
            std::erase(waiting, next);
          }
          break;
        }
        case 5:
        case 6: {  // somebody says something
          if (running.empty()) break;
          Running& one = running[below(static_cast<std::uint32_t>(running.size()))];
          const std::uint32_t tokens = 1 + below(7);
          plain.say(*one.sequence, tokens);
          one.charged += tokens;
          line.charge(*one.sequence, one.charged);
          break;
        }
        case 7: {  // somebody is sent back, perhaps because nobody reads what it said; or has ended
          if (running.empty()) break;
          const auto at = running.begin() + below(static_cast<std::uint32_t>(running.size()));
          if (below(2) == 0) {
            at->sequence->paused = below(2) == 0;
            line.add(*at->sequence);
            plain.add(*at->sequence);
            waiting.push_back(at->sequence);
          }
          running.erase(at);
          break;
        }
        default: {  // somebody leaves, or reads again
          if (waiting.empty()) break;
          Sequence& one = *waiting[below(static_cast<std::uint32_t>(waiting.size()))];
          if (one.paused) {
            one.paused = false;
            line.begin_plan();  // it is heard of between two plans
            for (Sequence* other : waiting) other->queue.skipped = false;
            break;
          }
          line.remove(one);
          plain.remove(one);
          std::erase(waiting, &one);
          break;
        }
      }
      ASSERT_EQ(line.size(), waiting.size());
      ASSERT_EQ(line.num_overtakes(), plain.num_overtakes) << "event " << event;
      for (std::uint32_t tenant = 0; tenant < num_tenants; ++tenant) {
        ASSERT_EQ(line.served(tenant), plain.served(tenant)) << "event " << event;
      }
    }
    EXPECT_GT(num_passed, 0u);
  }
}

// Of 16,384 that wait each is overtaken by all that came later and are more urgent, and is told so.
TEST_F(FairChoices, CountOvertakingForThousandsAtOnce) {
  constexpr std::uint32_t kWaiting = 16384;
  const SchedulerOptions options{.policy = Policy::kFair, .max_overtakes = kWaiting};
  WaitingQueue line(options, index_);
  for (std::uint32_t i = 0; i < kWaiting; ++i) {
    line.add(make(/*tenant=*/7, /*weight=*/1, -static_cast<std::int32_t>(i), /*prompt=*/1));  // the last one goes first
  }
  for (std::uint32_t i = kWaiting; i > 0; --i) {
    Sequence* const next = line.next();
    ASSERT_EQ(next, sequences_[i - 1].get());
    line.admit(*next);
    ASSERT_EQ(next->queue.overtaken, kWaiting - i);
  }
  EXPECT_EQ(line.num_overtakes(), std::uint64_t{kWaiting} * (kWaiting - 1) / 2);
}

TEST_F(FairChoices, WhoWasOvertakenAsOftenAsMayBeIsNextAndNotOneSooner) {
  for (const std::uint32_t bound : {0u, 1u, 2u, 5u}) {
    sequences_.clear();
    const SchedulerOptions options{.policy = Policy::kFair, .max_overtakes = bound};
    WaitingQueue line(options, index_);
    Sequence& patient = make(0, 1, /*priority=*/9, 1);
    line.add(patient);
    for (std::uint32_t i = 0; i < 8; ++i) line.add(make(0, 1, /*priority=*/0, 1));
    std::uint32_t before = 0;
    for (; line.next() != &patient; ++before) line.admit(*line.next());
    EXPECT_EQ(before, bound);
  }
}

}  // namespace
}  // namespace quire::schedule
