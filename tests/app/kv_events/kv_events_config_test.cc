#include "app/kv_events/kv_events_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace quire::app {
namespace {

using ::testing::HasSubstr;

KvEventsConfig read(const std::string& text) {
  const Result<KvEventsConfig> config = parse_kv_events_config(text);
  EXPECT_TRUE(config.ok()) << text << ": " << (config ? "" : config.error().message);
  return config ? *config : KvEventsConfig{};
}

std::string refusal(const std::string& text) {
  const Result<KvEventsConfig> config = parse_kv_events_config(text);
  EXPECT_FALSE(config.ok()) << text;
  return config ? "" : config.error().message;
}

TEST(KvEventsConfig, PublishesNothingByDefault) {
  EXPECT_FALSE(read("").enabled);
  EXPECT_FALSE(read("{}").enabled);
  EXPECT_FALSE(read(R"({"publisher":"zmq","endpoint":"tcp://*:1"})").enabled);
  EXPECT_FALSE(read(R"({"enable_kv_cache_events":true,"publisher":"null"})").enabled);
  EXPECT_TRUE(read(R"({"enable_kv_cache_events":true})").enabled);
}

TEST(KvEventsConfig, HasTheDefaultsOfVllm) {
  const KvEventsConfig config = read(R"({"enable_kv_cache_events":true,"replay_endpoint":null})");
  EXPECT_EQ(config.endpoint, "tcp://*:5557");
  EXPECT_EQ(config.replay_endpoint, "");
  EXPECT_EQ(config.buffer_steps, 10000u);
  EXPECT_EQ(config.hwm, 100000u);
  EXPECT_EQ(config.max_queue_size, 100000u);
  EXPECT_FALSE(config.topic.has_value());
  EXPECT_EQ(config.format, KvEventsConfig::Format::kMap);
}

TEST(KvEventsConfig, TakesEveryKey) {
  const KvEventsConfig config = read(R"({"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"ipc:///tmp/a",
      "replay_endpoint":"tcp://*:2","buffer_steps":3,"hwm":4,"max_queue_size":5,"topic":"","format":"array"})");
  EXPECT_EQ(config.endpoint, "ipc:///tmp/a");
  EXPECT_EQ(config.replay_endpoint, "tcp://*:2");
  EXPECT_EQ(config.buffer_steps, 3u);
  EXPECT_EQ(config.hwm, 4u);
  EXPECT_EQ(config.max_queue_size, 5u);
  EXPECT_EQ(config.topic, "");
  EXPECT_EQ(config.format, KvEventsConfig::Format::kArray);
}

TEST(KvEventsConfig, CountsAreFromOneToTenMillion) {
  for (const std::string key : {"buffer_steps", "hwm", "max_queue_size"}) {
    const auto with = [&key](const std::string& value) { return R"({")" + key + R"(":)" + value + "}"; };
    const std::string wrong = key + " must be a whole number from 1 to 10000000";
    for (const char* value : {"1", "2", "9999999", "10000000"}) read(with(value));
    for (const char* value : {"0", "-1", "10000001", "18446744073709551615", "1.5", "\"3\"", "null", "true"}) {
      EXPECT_EQ(refusal(with(value)), wrong) << value;
    }
  }
}

TEST(KvEventsConfig, ATopicHasAtMost255Bytes) {
  const auto of = [](std::size_t size) { return R"({"topic":")" + std::string(size, 'x') + R"("})"; };
  for (const std::size_t size : {0u, 254u, 255u}) EXPECT_EQ(read(of(size)).topic->size(), size);
  EXPECT_EQ(refusal(of(256)), "topic must be a text of at most 255 bytes");
  EXPECT_EQ(refusal(R"({"topic":1})"), "topic must be a text of at most 255 bytes");
}

TEST(KvEventsConfig, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal(R"({"enable":true})"), HasSubstr("unknown key enable; the keys are enable_kv_cache_events"));
  EXPECT_THAT(refusal("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal("tcp://*:5557"), HasSubstr("expected a JSON object"));
  EXPECT_EQ(refusal(R"({"enable_kv_cache_events":"yes"})"), "enable_kv_cache_events must be true or false");
  EXPECT_EQ(refusal(R"({"publisher":"kafka"})"), R"(publisher must be "null" or "zmq")");
  EXPECT_EQ(refusal(R"({"format":"json"})"), R"(format must be "map" or "array")");
  for (const std::string key : {"endpoint", "replay_endpoint"}) {
    for (const char* value : {R"("*:5557")", R"("udp://*:5557")", "5557", R"("")", R"("tcp://*")", R"("tcp://*:0")",
                              R"("tcp://*:65536")", R"("tcp://*:80 ")", R"("tcp://*:")"}) {
      EXPECT_EQ(refusal(R"({")" + key + R"(":)" + value + "}"),
                key + " must be an address such as tcp://*:5557, with a port from 1 to 65535, or ipc:///path");
    }
    for (const char* value : {"tcp://*:1", "tcp://10.0.0.1:65535", "tcp://[::]:65534", "tcp://127.0.0.1:*"}) {
      read(R"({")" + key + R"(":")" + value + R"("})");
    }
  }
}

}  // namespace
}  // namespace quire::app
