#include "app/kv_events/publisher.h"

#include <fmt/format.h>
#include <pthread.h>

#include <array>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

using Number = std::array<unsigned char, 8>;

Number big_endian(std::uint64_t value) {
  Number bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(value >> (56 - 8 * i));
  return bytes;
}

std::uint64_t number_of(const zmq::message_t& frame) {
  const auto* bytes = static_cast<const unsigned char*>(frame.data());
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < frame.size(); ++i) value = value << 8 | bytes[i];
  return value;
}

// vLLM's rule: an address with a wildcard or a path is bound; one that names another host is connected to (a router
// that binds).
bool is_bound(std::string_view endpoint) {
  return endpoint.find('*') != endpoint.npos || endpoint.find("::") != endpoint.npos || endpoint.starts_with("ipc://");
}

void open(zmq::socket_t& socket, const std::string& endpoint, bool bind, std::string_view key) {
  try {
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::ipv6, endpoint.find('[') != endpoint.npos);
    if (bind) {
      socket.bind(endpoint);
    } else {
      socket.connect(endpoint);
    }
  } catch (const zmq::error_t& error) {
    throw StartError(fmt::format("--kv-events-config: {} {}: {}", key, endpoint, error.what()));
  }
}

double unix_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

KvEventPublisher::KvEventPublisher(const KvEventsConfig& config, PayloadFacts facts, bridge::CacheFeed& feed,
                                   observe::Metrics& metrics)
    : config_(config),
      facts_(std::move(facts)),
      feed_(feed),
      metrics_(metrics),
      context_(/*io_threads=*/1),
      events_(context_, zmq::socket_type::pub) {
  events_.set(zmq::sockopt::sndhwm, static_cast<int>(config.hwm));
  open(events_, config.endpoint, is_bound(config.endpoint), "endpoint");
  endpoint_ = events_.get(zmq::sockopt::last_endpoint);
  if (!config.replay_endpoint.empty()) {
    replays_ = zmq::socket_t(context_, zmq::socket_type::router);
    // Room for one whole replay and its end marker for one client that does not read.
    replays_.set(zmq::sockopt::sndhwm, static_cast<int>(config.buffer_steps + 1));
    open(replays_, config.replay_endpoint, /*bind=*/true, "replay_endpoint");
    replay_endpoint_ = replays_.get(zmq::sockopt::last_endpoint);
  }
  thread_ = std::thread([this] { run(); });
}

KvEventPublisher::~KvEventPublisher() {
  stopping_.store(true, std::memory_order_release);
  feed_.wake();
  thread_.join();
}

void KvEventPublisher::run() {
  pthread_setname_np(pthread_self(), "quire-kv-events");
  std::vector<zmq::pollitem_t> waits = {{nullptr, feed_.wake_fd(), ZMQ_POLLIN, 0}};
  if (replays_) waits.push_back({replays_.handle(), 0, ZMQ_POLLIN, 0});
  try {
    while (!stopping_.load(std::memory_order_acquire)) {
      zmq_poll(waits.data(), static_cast<int>(waits.size()), -1);  // a signal that interrupts it does not end the loop
      feed_.drain();
      publish_waiting();
      if (replays_) answer_replays();
    }
    publish_waiting();
  } catch (const zmq::error_t& error) {
    log_error("kv_events_failed", "{}: prefix-cache events are no longer published", error.what());
  }
}

void KvEventPublisher::publish_waiting() {
  while (const bridge::CacheFeed::Batch batch = feed_.take()) {
    const std::string payload = event_payload(*batch, unix_now(), facts_);
    Sent sent{batch->number, zmq::message_t(payload)};
    zmq::message_t going;
    going.copy(sent.payload);
    const Number number = big_endian(batch->number);
    // A PUB socket never blocks.
    events_.send(zmq::buffer(*config_.topic), zmq::send_flags::sndmore);
    events_.send(zmq::buffer(number), zmq::send_flags::sndmore);
    events_.send(going, zmq::send_flags::none);
    metrics_.kv_event_batches.add();
    metrics_.kv_events_published.add(batch->changes.size());
    if (!replays_) continue;
    sent_.push_back(std::move(sent));
    if (sent_.size() > config_.buffer_steps) sent_.pop_front();
  }
}

// Ignores messages that are not replay requests.
void KvEventPublisher::answer_replays() {
  for (;;) {
    std::vector<zmq::message_t> frames;
    do {
      frames.emplace_back();
      if (!replays_.recv(frames.back(), zmq::recv_flags::dontwait)) return;
    } while (frames.back().more());
    if (frames.size() != 3 || frames[1].size() != 0 || frames[2].size() != sizeof(Number)) continue;
    publish_waiting();  // so that a replay has all batches from before its request
    replay_from(frames[0], number_of(frames[2]));
    metrics_.kv_event_replays.add();
  }
}

void KvEventPublisher::replay_from(zmq::message_t& client, std::uint64_t number) {
  const auto send = [&](std::string_view topic, std::uint64_t its_number, zmq::message_t& payload) {
    zmq::message_t to;
    to.copy(client);
    const Number bytes = big_endian(its_number);
    // A ROUTER drops messages to a client that has disconnected or does not read.
    replays_.send(to, zmq::send_flags::sndmore);
    replays_.send(zmq::message_t(), zmq::send_flags::sndmore);
    replays_.send(zmq::buffer(topic), zmq::send_flags::sndmore);
    replays_.send(zmq::buffer(bytes), zmq::send_flags::sndmore);
    replays_.send(payload, zmq::send_flags::none);
  };
  for (Sent& sent : sent_) {
    if (sent.number < number) continue;
    zmq::message_t payload;
    payload.copy(sent.payload);
    send(*config_.topic, sent.number, payload);
  }
  zmq::message_t nothing;
  send("", ~std::uint64_t{0}, nothing);
}

}  // namespace quire::app
