// Publisher of prefix-cache events over ZeroMQ: one thread, a PUB socket, and a ROUTER socket for replays.
//   PUB     [topic, sequence number, payload]: the number has 8 bytes, big endian, and counts the batches from 0
//   ROUTER  a request ["", number] is answered with ["", topic, number, payload] for each stored batch from that number
//           on, and then ["", "", -1, ""]
// A subscriber that does not read loses messages once `hwm` of them are queued for it; it blocks nothing, and the gap
// shows in the numbers.
// Owner   serve. Borrows the feed and the metrics, which outlive it.
// Thread  the constructor and destructor: main. All else: its own thread.
// Fails   StartError from the constructor: an address that cannot be bound.
// Source  vLLM's ZmqEventPublisher: frames, which addresses are bound and which are connected to, replays.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "app/kv_events/event_payload.h"
#include "app/kv_events/kv_events_config.h"
#include "core/bridge/cache_feed.h"
#include "core/observe/metrics.h"

namespace quire::app {

class KvEventPublisher {
 public:
  // `config` must have a topic.
  KvEventPublisher(const KvEventsConfig& config, PayloadFacts facts, bridge::CacheFeed& feed,
                   observe::Metrics& metrics);
  ~KvEventPublisher();
  KvEventPublisher(const KvEventPublisher&) = delete;
  KvEventPublisher& operator=(const KvEventPublisher&) = delete;

  // Addresses as bound, with the actual port. replay_endpoint() is empty if there are no replays.
  std::string endpoint() const { return endpoint_; }
  std::string replay_endpoint() const { return replay_endpoint_; }

 private:
  struct Sent {
    std::uint64_t number = 0;
    zmq::message_t payload;  // shares its bytes with copies that are being sent
  };

  void run();
  void publish_waiting();
  void answer_replays();
  void replay_from(zmq::message_t& client, std::uint64_t number);

  const KvEventsConfig config_;
  const PayloadFacts facts_;
  bridge::CacheFeed& feed_;
  observe::Metrics& metrics_;
  zmq::context_t context_;
  zmq::socket_t events_;
  zmq::socket_t replays_;
  std::string endpoint_;
  std::string replay_endpoint_;
  std::deque<Sent> sent_;              // the last buffer_steps batches, numbers ascending
  std::atomic<bool> stopping_{false};  // written by the destructor (release), read by the thread (acquire)
  std::thread thread_;
};

}  // namespace quire::app
