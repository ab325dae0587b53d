// What comes out of the sockets, heard by ZeroMQ's own client.
#include "app/kv_events/publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/start_error.h"

namespace quire::app {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;
using Frames = std::vector<std::string>;

std::string number_bytes(std::uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

Frames next(zmq::socket_t& socket) {
  Frames frames;
  for (bool more = true; more;) {
    zmq::message_t frame;
    if (!socket.recv(frame)) return {"nothing came"};  // within the socket's time
    frames.push_back(frame.to_string());
    more = frame.more();
  }
  return frames;
}

class KvEventPublisherTest : public ::testing::Test {
 protected:
  KvEventPublisherTest() {
    const std::string place = "ipc:///tmp/quire-kv-events-" + std::to_string(getpid());
    config_.endpoint = place + ".events";
    config_.replay_endpoint = place + ".replays";
    config_.topic = "kv@h:1@m";
  }

  zmq::socket_t connected(zmq::socket_type type, const std::string& endpoint) {
    zmq::socket_t socket(context_, type);
    socket.set(zmq::sockopt::rcvtimeo, 10000);
    socket.set(zmq::sockopt::linger, 0);
    if (type == zmq::socket_type::sub) socket.set(zmq::sockopt::subscribe, "");
    socket.connect(endpoint);
    return socket;
  }
  std::unique_ptr<KvEventPublisher> publisher() {
    return std::make_unique<KvEventPublisher>(config_, PayloadFacts{.block_tokens = 2}, feed_, metrics_);
  }
  void put(std::uint64_t number) {
    auto batch = std::make_unique<flow::CacheChanges>();
    batch->number = number;
    batch->changes = {{}, {flow::CacheChange::Kind::kRemoved, 1, 0, {}}};
    feed_.put(std::move(batch));
  }
  // Batches until one is heard: a subscription takes its time.
  std::uint64_t put_until_drained(zmq::socket_t& subscriber) {
    for (std::uint64_t number = 0;; ++number) {
      put(number);
      zmq::pollitem_t wait{subscriber.handle(), 0, ZMQ_POLLIN, 0};
      if (zmq_poll(&wait, 1, 10) == 1) return number;
    }
  }
  std::vector<Frames> replay(const std::string& request) {
    zmq::socket_t socket = connected(zmq::socket_type::dealer, config_.replay_endpoint);
    socket.send(zmq::message_t(), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(request), zmq::send_flags::none);
    std::vector<Frames> all;
    do {
      all.push_back(next(socket));
    } while (all.back().size() == 4 && !all.back()[3].empty());
    return all;
  }
  // The numbers that a replay from `number` tells.
  std::vector<std::uint64_t> replayed(std::uint64_t number) {
    std::vector<std::uint64_t> numbers;
    const std::vector<Frames> all = replay(number_bytes(number));
    EXPECT_EQ(all.back(), (Frames{"", "", number_bytes(~std::uint64_t{0}), ""}));
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      EXPECT_EQ(all[i].size(), 4u);
      EXPECT_EQ(all[i][1], *config_.topic);
      numbers.push_back(static_cast<unsigned char>(all[i][2].back()));
    }
    return numbers;
  }
  void wait_for_batches(std::uint64_t num) {
    for (int i = 0; i < 10000 && metrics_.kv_event_batches.value() < num; ++i) wait_a_ms();
    EXPECT_EQ(metrics_.kv_event_batches.value(), num);
  }
  static void wait_a_ms() { poll(nullptr, 0, 1); }

  KvEventsConfig config_;
  bridge::CacheFeed feed_{1000};
  observe::Metrics metrics_{observe::MetricsInfo{}};
  zmq::context_t context_;
};

TEST_F(KvEventPublisherTest, ABatchIsItsTopicItsNumberAndItsPayload) {
  const auto publishing = publisher();
  zmq::socket_t subscriber = connected(zmq::socket_type::sub, config_.endpoint);
  const std::uint64_t first = put_until_drained(subscriber);
  const Frames frames = next(subscriber);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0], "kv@h:1@m");
  EXPECT_EQ(frames[1], number_bytes(first));
  EXPECT_EQ(frames[2].substr(0, 2), "\x93\xcb"s);
  put(0x0102030405060708);
  Frames last;
  do last = next(subscriber);
  while (last[1] != number_bytes(0x0102030405060708));
  EXPECT_EQ(last.size(), 3u);
  EXPECT_EQ(metrics_.kv_events_published.value(), 2 * metrics_.kv_event_batches.value());
}

TEST_F(KvEventPublisherTest, ReplaysWhatIsStillKeptFromTheNumberAskedFor) {
  for (const std::uint32_t kept : {1u, 4u, 5u, 6u}) {
    config_.buffer_steps = kept;
    bridge::CacheFeed& feed = feed_;
    const std::uint64_t before = metrics_.kv_event_batches.value();
    const auto publishing = publisher();
    for (std::uint64_t number = 0; number < 5; ++number) put(number);
    wait_for_batches(before + 5);
    EXPECT_EQ(feed.take(), nullptr);
    std::vector<std::uint64_t> expected;
    for (std::uint64_t number = kept >= 5 ? 0 : 5 - kept; number < 5; ++number) expected.push_back(number);
    EXPECT_EQ(replayed(0), expected) << kept << " are kept";
    EXPECT_EQ(replayed(4), std::vector<std::uint64_t>{4});
    EXPECT_EQ(replayed(5), std::vector<std::uint64_t>{});
  }
}

TEST_F(KvEventPublisherTest, WhatIsNoRequestIsPassedOver) {
  const auto publishing = publisher();
  put(0);
  wait_for_batches(1);
  zmq::socket_t socket = connected(zmq::socket_type::dealer, config_.replay_endpoint);
  const std::string zero = number_bytes(0);
  for (const Frames& wrong : {Frames{"", zero.substr(1)}, Frames{"", zero + "x"}, Frames{"x", zero}, Frames{zero},
                              Frames{"", zero, ""}, Frames{"", ""}}) {
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      socket.send(zmq::buffer(wrong[i]), i + 1 < wrong.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }
  EXPECT_EQ(replayed(0), std::vector<std::uint64_t>{0});
  socket.set(zmq::sockopt::rcvtimeo, 50);
  EXPECT_EQ(next(socket), Frames{"nothing came"});
  EXPECT_EQ(metrics_.kv_event_replays.value(), 1u);
}

TEST_F(KvEventPublisherTest, ASubscriberThatDoesNotReadLosesBatchesAndTheReplayHasThem) {
  config_.hwm = 2;
  const auto publishing = publisher();
  zmq::socket_t subscriber(context_, zmq::socket_type::sub);
  subscriber.set(zmq::sockopt::rcvhwm, 2);
  subscriber.set(zmq::sockopt::rcvbuf, 2048);
  subscriber.set(zmq::sockopt::rcvtimeo, 10000);
  subscriber.set(zmq::sockopt::subscribe, "");
  subscriber.connect(config_.endpoint);
  std::uint64_t number = put_until_drained(subscriber);
  // Large ones, until the system's own buffers are full, too; nobody waits for whoever does not read.
  for (int i = 0; i < 500; ++i) {
    auto batch = std::make_unique<flow::CacheChanges>();
    batch->number = ++number;
    batch->changes.assign(2000, {flow::CacheChange::Kind::kRemoved, 77, 0, {}});
    while (feed_.full()) wait_a_ms();
    feed_.put(std::move(batch));
  }
  wait_for_batches(number + 1);
  std::uint64_t num_received = 0;
  subscriber.set(zmq::sockopt::rcvtimeo, 200);
  while (next(subscriber).size() == 3) ++num_received;
  EXPECT_LT(num_received, number);
  EXPECT_EQ(replay(number_bytes(0)).size(), number + 2) << "each, and the end";
}

TEST_F(KvEventPublisherTest, AnAddressThatCannotBeBoundIsReportedWithItsKey) {
  const auto refusal = [this] {
    try {
      publisher();
      return "none"s;
    } catch (const StartError& error) {
      return std::string(error.what());
    }
  };
  config_.endpoint = "ipc:///nowhere/at/all";
  EXPECT_THAT(refusal(), HasSubstr("--kv-events-config: endpoint ipc:///nowhere/at/all: No such file or directory"));
  config_.endpoint = "tcp://127.0.0.1:*";
  config_.replay_endpoint = "tcp://nowhere";
  EXPECT_THAT(refusal(), HasSubstr("--kv-events-config: replay_endpoint tcp://nowhere: "));
}

TEST_F(KvEventPublisherTest, APortThatTheSystemChoseIsReportedAsBound) {
  config_.endpoint = config_.replay_endpoint = "tcp://127.0.0.1:*";
  const auto publishing = publisher();
  config_.endpoint = publishing->endpoint();
  config_.replay_endpoint = publishing->replay_endpoint();
  EXPECT_EQ(config_.endpoint.substr(0, 16), "tcp://127.0.0.1:");
  EXPECT_NE(config_.endpoint, config_.replay_endpoint);
  zmq::socket_t subscriber = connected(zmq::socket_type::sub, config_.endpoint);
  put_until_drained(subscriber);
  EXPECT_EQ(replay(number_bytes(0))[0][1], *config_.topic);
}

}  // namespace
}  // namespace quire::app
