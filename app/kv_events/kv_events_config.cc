#include "app/kv_events/kv_events_config.h"

#include <boost/json.hpp>
#include <charconv>
#include <system_error>

#include "core/base/log.h"

namespace quire::app {
namespace {

namespace json = boost::json;

constexpr std::uint32_t kMaxBatches = 10'000'000;
constexpr std::size_t kMaxTopicBytes = 255;

Error wrong(std::string_view key, const std::string& expected) {
  return invalid(std::string(key), std::string(key) + " must be " + expected);
}

Result<Done> store(std::string_view key, const json::value& value, bool& flag) {
  if (!value.is_bool()) return wrong(key, "true or false");
  flag = value.get_bool();
  return Done{};
}

Result<Done> store(std::string_view key, const json::value& value, std::uint32_t& count) {
  const bool fits = value.is_int64() && value.get_int64() >= 1 && value.get_int64() <= kMaxBatches;
  if (!fits) return wrong(key, "a whole number from 1 to " + std::to_string(kMaxBatches));
  count = value.to_number<std::uint32_t>();
  return Done{};
}

// A port, or "*": the system chooses one. Checked here, as ZeroMQ would take a larger number modulo 2^16.
bool is_port(std::string_view text) {
  std::uint32_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return text == "*" || (error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535);
}

// Checks the form of an address that ZeroMQ can open; ZeroMQ itself reports the rest.
Result<Done> store_endpoint(std::string_view key, const json::value& value, std::string& endpoint) {
  const std::string_view text = value.is_string() ? std::string_view(value.get_string()) : std::string_view();
  const bool is_tcp = text.starts_with("tcp://") && is_port(text.substr(text.rfind(':') + 1));
  if (!is_tcp && !text.starts_with("ipc://")) {
    return wrong(key, "an address such as tcp://*:5557, with a port from 1 to 65535, or ipc:///path");
  }
  endpoint = std::string(text);
  return Done{};
}

Result<Done> store_topic(const json::value& value, std::optional<std::string>& topic) {
  if (!value.is_string() || value.get_string().size() > kMaxTopicBytes) {
    return wrong("topic", "a text of at most " + std::to_string(kMaxTopicBytes) + " bytes");
  }
  topic = std::string(value.get_string());
  return Done{};
}

// True if the value is `second`, false if it is `first`; an error for anything else.
Result<bool> second_of(std::string_view key, const json::value& value, std::string_view first,
                       std::string_view second) {
  const std::string_view word = value.is_string() ? std::string_view(value.get_string()) : std::string_view();
  if (word == first || word == second) return word == second;
  return wrong(key, "\"" + std::string(first) + "\" or \"" + std::string(second) + "\"");
}

Result<Done> store_key(std::string_view key, const json::value& value, KvEventsConfig& config, bool& publishes) {
  if (key == "enable_kv_cache_events") return store(key, value, config.enabled);
  if (key == "endpoint") return store_endpoint(key, value, config.endpoint);
  if (key == "replay_endpoint") {
    if (value.is_null()) return Done{};
    return store_endpoint(key, value, config.replay_endpoint);
  }
  if (key == "buffer_steps") return store(key, value, config.buffer_steps);
  if (key == "hwm") return store(key, value, config.hwm);
  if (key == "max_queue_size") return store(key, value, config.max_queue_size);
  if (key == "topic") return store_topic(value, config.topic);
  if (key == "publisher") {
    const Result<bool> zmq = second_of(key, value, "null", "zmq");
    if (!zmq) return zmq.error();
    publishes = *zmq;
    return Done{};
  }
  if (key == "format") {
    const Result<bool> arrays = second_of(key, value, "map", "array");
    if (!arrays) return arrays.error();
    config.format = *arrays ? KvEventsConfig::Format::kArray : KvEventsConfig::Format::kMap;
    return Done{};
  }
  return invalid(std::string(key), "unknown key " + log_safe(key) +
                                       "; the keys are enable_kv_cache_events, publisher, endpoint, replay_endpoint, "
                                       "buffer_steps, hwm, max_queue_size, topic and format");
}

}  // namespace

Result<KvEventsConfig> parse_kv_events_config(std::string_view text) {
  KvEventsConfig config;
  if (text.empty()) return config;
  json::error_code error;
  const json::value read = json::parse(text, error);
  if (error || !read.is_object()) {
    return invalid("", "expected a JSON object such as {\"enable_kv_cache_events\": true}");
  }
  bool publishes = true;
  for (const auto& [key, value] : read.get_object()) {
    const Result<Done> stored = store_key(key, value, config, publishes);
    if (!stored) return stored.error();
  }
  config.enabled = config.enabled && publishes;
  return config;
}

}  // namespace quire::app
