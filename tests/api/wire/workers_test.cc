#include "api/wire/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace quire::api::workers_test {
namespace {

using namespace std::chrono_literals;

Workers::Work work_of(const std::string& caller, std::function<void(Allowance&)> run,
                      std::promise<bool>* end = nullptr) {
  return {.caller = caller, .bytes = 1, .run = std::move(run), .done = [end](bool failed) {
            if (end != nullptr) end->set_value(failed);
          }};
}

TEST(Workers, ALaneThatIsHeldUpHoldsUpNoOther) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  std::promise<bool> done;
  Workers workers(1, 100);
  const auto wait = [open](Allowance&) { open.wait(); };
  for (const char* caller : {"a", "b"}) ASSERT_TRUE(workers.post(Lane::kSlow, work_of(caller, wait)).ticket);
  ASSERT_TRUE(workers
                  .post(Lane::kQuick, work_of("a",
                                              [&](Allowance&) {
                                                workers.post(Lane::kWriting, work_of(
                                                                                 "a", [](Allowance&) {}, &done));
                                              }))
                  .ticket);
  EXPECT_FALSE(done.get_future().get());
  gate.set_value();
}

TEST(Workers, GiveEachLaneItsTime) {
  for (const auto& [lane, time] :
       {std::pair(Lane::kQuick, Workers::kQuickTime), std::pair(Lane::kSlow, Workers::kSlowTime)}) {
    Workers workers(1, 100);
    std::promise<bool> done;
    std::chrono::nanoseconds left{};
    workers.post(lane, work_of(
                           "a", [&](Allowance& allowance) { left = allowance.time_left(); }, &done));
    EXPECT_FALSE(done.get_future().get());
    EXPECT_LE(left, time);
    EXPECT_GT(left, time / 2);
  }
}

TEST(Workers, WhatThrowsInAnyLaneEndsAloneAndIsReportedAsFailed) {
  Workers workers(1, 100);
  for (const Lane lane : {Lane::kQuick, Lane::kSlow, Lane::kWriting}) {
    std::promise<bool> thrown, after;
    workers.post(lane, work_of(
                           "a", [](Allowance&) { throw std::bad_alloc(); }, &thrown));
    EXPECT_TRUE(thrown.get_future().get());
    workers.post(lane, work_of(
                           "a", [](Allowance&) {}, &after));
    EXPECT_FALSE(after.get_future().get());
  }
}

TEST(Workers, WorkThatIsDroppedWhileItRunsLearnsOfIt) {
  Workers workers(1, 100);
  std::promise<void> begun;
  std::promise<bool> done;
  const auto posted = workers.post(Lane::kSlow, work_of(
                                                    "a",
                                                    [&](Allowance& allowance) {
                                                      begun.set_value();
                                                      while (allowance.spend()) continue;
                                                      EXPECT_EQ(allowance.end(), Allowance::End::kDropped);
                                                    },
                                                    &done));
  begun.get_future().wait();
  EXPECT_FALSE(workers.drop(Lane::kSlow, posted.ticket));
  EXPECT_FALSE(done.get_future().get());
}

}  // namespace
}  // namespace quire::api::workers_test
