#include "core/bridge/load_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace quire::bridge {
namespace {

using namespace std::chrono_literals;

TEST(LoadEstimate, WhatWasNeverMeasuredTakesNoTime) {
  const LoadEstimate pace;
  const Outlook none = outlook(pace.rates(), {1000, 1u << 20, 0}, {100, 1u << 20, 1u << 20});
  EXPECT_EQ(none.first_token_s, 0.0);
  EXPECT_EQ(none.last_token_s, 0.0);
}

TEST(LoadEstimate, FirstSamplesAreTakenAsTheyAreAndLaterOnesInPart) {
  LoadEstimate pace;
  pace.note_end(8s, 4);
  EXPECT_DOUBLE_EQ(pace.rates().start_s, 2.0);
  pace.note_end(40s, 4);
  EXPECT_DOUBLE_EQ(pace.rates().start_s, 3.0) << "an eighth of what is new";
  pace.note_gap(0.5);
  pace.note_answer(100);
  pace.note_row(0.25);
  EXPECT_DOUBLE_EQ(pace.rates().token_s, 0.5);
  EXPECT_DOUBLE_EQ(pace.rates().answer_tokens, 100.0);
  EXPECT_DOUBLE_EQ(pace.rates().row_s, 0.25);
}

TEST(LoadEstimate, TokensThatAreCachedAreNotExpectedToBeComputed) {
  LoadEstimate pace;
  EXPECT_EQ(pace.rates().computed, 1.0);
  for (int i = 0; i < 100; ++i) pace.note_prompt(100, 75);
  EXPECT_NEAR(pace.rates().computed, 0.25, 1e-9);
  pace.note_prompt(0, 5);
  EXPECT_LE(pace.rates().computed, 1.0);
}

TEST(LoadEstimate, AFreePlaceIsNotWaitedForAndOneFewerIsWaitedForOneEnd) {
  Rates rates;
  rates.start_s = 2.0;
  const auto first = [&](std::uint32_t waiting, std::uint32_t places, std::uint32_t sequences) {
    return outlook(rates, {waiting, 0, places}, {sequences, 0, 1}).first_token_s;
  };
  EXPECT_EQ(first(0, 1, 1), 0.0);
  EXPECT_EQ(first(0, 0, 1), 2.0);
  EXPECT_EQ(first(3, 4, 1), 0.0);
  EXPECT_EQ(first(4, 4, 1), 2.0);
  EXPECT_EQ(first(3, 4, 5), 8.0);
}

TEST(LoadEstimate, AnAnswerTakesItsPromptAndItsTokens) {
  Rates rates;
  rates.row_s = 0.01;
  rates.computed = 0.5;
  rates.token_s = 0.1;
  const Outlook alone = outlook(rates, {0, 0, 1}, {1, 400, 11});
  EXPECT_DOUBLE_EQ(alone.first_token_s, 2.0);
  EXPECT_DOUBLE_EQ(alone.last_token_s, 3.0);
  EXPECT_DOUBLE_EQ(outlook(rates, {0, 0, 1}, {1, 4, 0}).last_token_s, 0.1) << "a step at least";
  EXPECT_DOUBLE_EQ(outlook(rates, {1, 1000, 2}, {1, 400, 1}).first_token_s, 7.0) << "the prompt before it, too";
}

// ---- a server in numbers: it runs up to `places` requests, everybody a token a step, prompts before them, in order

struct Order {
  double at = 0.0;
  std::uint32_t prompt = 0;
  std::uint32_t answer = 0;
  double deadline_s = 0.0;
  // What became of it.
  double expected_s = -1.0;  // as asked when it came
  bool refused = false;
  double took_s = -1.0;
};

struct Server {
  std::uint32_t places = 8;
  double step_s = 0.02;
  double row_s = 0.0005;
  bool refuses = false;

  void run(std::vector<Order>& orders) {
    struct Running {
      Order* order;
      std::uint32_t left;
      double begun;
    };
    LoadEstimate pace;
    std::deque<Order*> line;
    std::vector<Running> running;
    std::size_t next = 0;
    double now = 0.0;
    while (next < orders.size() || !line.empty() || !running.empty()) {
      if (line.empty() && running.empty()) now = std::max(now, orders[next].at);
      for (; next < orders.size() && orders[next].at <= now; ++next) {
        Order& one = orders[next];
        Line ahead{static_cast<std::uint32_t>(line.size()), 0, places - static_cast<std::uint32_t>(running.size())};
        for (const Order* waiting : line) ahead.tokens += waiting->prompt;
        const double passed = now - one.at;
        one.expected_s = passed + outlook(pace.rates(), ahead, {1, one.prompt, one.answer}).last_token_s;
        one.refused = refuses && one.expected_s > one.deadline_s;
        if (!one.refused) line.push_back(&one);
      }
      double rows = 0.0;
      const double begun = now;
      for (; running.size() < places && !line.empty(); line.pop_front()) {
        rows += line.front()->prompt;
        running.push_back({line.front(), line.front()->answer, begun});
        pace.note_prompt(line.front()->prompt, 0);
      }
      rows += static_cast<double>(running.size());
      const double step = step_s + rows * row_s;
      now += step;
      if (rows >= 16) pace.note_row(step / rows);
      pace.note_gap(step);
      const auto beside = static_cast<std::uint32_t>(running.size());
      std::erase_if(running, [&](Running& one) {
        if (--one.left > 0) return false;
        one.order->took_s = now - one.order->at;
        pace.note_end(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(now - one.begun)), beside);
        return true;
      });
    }
  }
};

std::vector<Order> random_orders(unsigned seed, double rate, std::size_t count) {
  std::mt19937 random(seed);
  std::exponential_distribution<double> gap(rate);
  std::vector<Order> orders(count);
  double now = 0.0;
  for (Order& one : orders) {
    now += gap(random);
    one = {.at = now,
           .prompt = 10 + static_cast<std::uint32_t>(random() % 100),
           .answer = 10 + static_cast<std::uint32_t>(random() % 60),
           .deadline_s = 1.0 + 0.001 * (random() % 6000)};
  }
  return orders;
}

// The server does about 7 of these a second.
constexpr double kCapacity = 7.0;

TEST(PaceOfAServer, SaysAboutHowLongARequestTakes) {
  for (const double load : {0.5, 1.0, 2.0}) {
    std::vector<Order> orders = random_orders(1, load * kCapacity, 600);
    Server().run(orders);
    double off = 0.0;
    double took = 0.0;
    for (std::size_t i = 100; i < orders.size(); ++i) {
      off += std::abs(orders[i].expected_s - orders[i].took_s);
      took += orders[i].took_s;
    }
    EXPECT_LE(off, 0.2 * took) << "at load " << load;
  }
}

// Refusing whom it expects to be late, it serves about as many in time as there are places for, at any load; taking
// everybody, it serves hardly anybody.
TEST(PaceOfAServer, RefusingAtOnceKeepsGoodputUnderOverload) {
  const auto in_time = [](double load, bool refuses) {
    std::vector<Order> orders = random_orders(2, load * kCapacity, 2000);
    Server server;
    server.refuses = refuses;
    server.run(orders);
    double tokens = 0.0;
    for (const Order& one : orders) {
      if (!one.refused && one.took_s <= one.deadline_s) tokens += one.answer;
    }
    return tokens / orders.back().at;
  };
  const double at_capacity = in_time(1.0, true);
  for (const double load : {2.0, 4.0}) {
    EXPECT_GE(in_time(load, true), 0.9 * at_capacity) << "at load " << load;
    EXPECT_LE(in_time(load, false), 0.2 * at_capacity) << "at load " << load;
  }
}

TEST(PaceOfAServer, WhoIsLetInIsSeldomLate) {
  std::vector<Order> orders = random_orders(3, 1.3 * kCapacity, 2000);
  Server refusing;
  refusing.refuses = true;
  refusing.run(orders);
  std::size_t let_in = 0;
  std::size_t late = 0;
  for (const Order& one : orders) {
    let_in += one.refused ? 0 : 1;
    late += !one.refused && one.took_s > one.deadline_s ? 1 : 0;
  }
  EXPECT_GT(let_in, orders.size() / 2);
  EXPECT_LE(static_cast<double>(late), 0.05 * static_cast<double>(let_in));
}

TEST(PaceOfAServer, RefusesNobodyWhoHasTimeEnough) {
  for (const unsigned seed : {4u, 5u, 6u}) {
    std::vector<Order> orders = random_orders(seed, 0.5 * kCapacity, 1000);
    for (Order& one : orders) one.deadline_s = 60.0;
    Server server;
    server.refuses = true;
    server.run(orders);
    EXPECT_EQ(std::ranges::count(orders, true, &Order::refused), 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace quire::bridge
