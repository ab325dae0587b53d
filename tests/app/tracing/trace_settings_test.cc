#include "app/tracing/trace_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quire::app {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class TraceSettingsTest : public ::testing::Test {
 protected:
  std::optional<TraceSettings> settings(const std::string& endpoint, const std::vector<std::string>& variables = {}) {
    std::vector<const char*> environment;
    for (const std::string& one : variables) environment.push_back(one.c_str());
    environment.push_back(nullptr);
    problems_.clear();
    notes_.clear();
    return trace_settings(endpoint, environment.data(), problems_, notes_);
  }
  std::string target(const std::string& endpoint, const std::vector<std::string>& variables = {}) {
    const auto read = settings(endpoint, variables);
    if (!read) return "nobody";
    return (read->url.https ? "https " : "") + read->url.host + " " + std::to_string(read->url.port) + " " +
           read->url.path;
  }

  Problems problems_;
  std::vector<std::string> notes_;
};

TEST_F(TraceSettingsTest, SendsNoTracesWithoutAnEndpoint) {
  EXPECT_EQ(target(""), "nobody");
  EXPECT_EQ(target("", {"OTEL_SERVICE_NAME=a", "OTEL_EXPORTER_OTLP_ENDPOINT="}), "nobody")
      << "set to nothing is not set";
}

TEST_F(TraceSettingsTest, TheFlagIsAUrlWithOrWithoutItsPath) {
  EXPECT_EQ(target("http://c:4318"), "c 4318 /v1/traces");
  EXPECT_EQ(target("http://c:4318/"), "c 4318 /v1/traces");
  EXPECT_EQ(target("http://c:4318/v1/traces"), "c 4318 /v1/traces");
  EXPECT_EQ(target("http://c/otlp/v1/traces"), "c 80 /otlp/v1/traces");
  EXPECT_EQ(target("https://c"), "https c 443 /v1/traces");
  EXPECT_EQ(target("http://[::1]:4318"), "::1 4318 /v1/traces");
  EXPECT_TRUE(problems_.empty());
}

TEST_F(TraceSettingsTest, AFlagThatIsNoUrlIsAProblem) {
  for (const std::string bad :
       {"collector:4318", "grpc://c:4317", "http://", "http://c:0", "http://u:p@c", "http://c?key=1"}) {
    EXPECT_EQ(target(bad), "nobody") << bad;
    ASSERT_EQ(problems_.size(), 1u) << bad;
    EXPECT_THAT(problems_[0], HasSubstr("--otlp-traces-endpoint"));
  }
}

TEST_F(TraceSettingsTest, TheFlagGoesBeforeTheVariableForTracesAndThatBeforeTheOneForAll) {
  const std::string all = "OTEL_EXPORTER_OTLP_ENDPOINT=http://all:1/base";
  const std::string traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://traces:2/there";
  EXPECT_EQ(target("", {all}), "all 1 /base/v1/traces");
  EXPECT_EQ(target("", {all, traces}), "traces 2 /there") << "as it is";
  EXPECT_EQ(target("", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://traces:2"}), "traces 2 /");
  EXPECT_EQ(target("http://flag:3", {all, traces}), "flag 3 /v1/traces");
}

TEST_F(TraceSettingsTest, AVariableThatIsWrongIsANoteAndItsValueIsNotRepeated) {
  EXPECT_EQ(target("", {"OTEL_EXPORTER_OTLP_ENDPOINT=grpc://secret:4317"}), "nobody");
  EXPECT_TRUE(problems_.empty());
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT"));
  EXPECT_THAT(notes_[0], ::testing::Not(HasSubstr("secret")));
  for (const std::string bad :
       {"OTEL_EXPORTER_OTLP_HEADERS=a=s3cret\nb", "OTEL_EXPORTER_OTLP_HEADERS=a b=s3cret",
        "OTEL_EXPORTER_OTLP_HEADERS=s3cret", "OTEL_EXPORTER_OTLP_HEADERS=a=s3cret%0d%0aX:y",
        "OTEL_RESOURCE_ATTRIBUTES=s3cret", "OTEL_TRACES_SAMPLER=s3cret", "OTEL_BSP_MAX_QUEUE_SIZE=0",
        "OTEL_BSP_MAX_QUEUE_SIZE=1048577", "OTEL_BSP_SCHEDULE_DELAY=s3cret", "OTEL_EXPORTER_OTLP_TIMEOUT=-1",
        "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}) {
    const auto read = settings("http://c", {bad});
    ASSERT_TRUE(read) << bad;
    ASSERT_EQ(notes_.size(), 1u) << bad;
    EXPECT_THAT(notes_[0], ::testing::Not(HasSubstr("s3cret")));
    EXPECT_TRUE(read->headers.empty());
    EXPECT_EQ(read->limits.max_queue, 2048u);
    EXPECT_EQ(read->limits.delay, 5s);
    EXPECT_EQ(read->limits.timeout, 10s);
    EXPECT_EQ(read->sampler.root_share, 1.0);
    EXPECT_TRUE(read->sampler.follows_parent);
  }
}

TEST_F(TraceSettingsTest, TheEnvironmentMaySayThatNothingIsTraced) {
  EXPECT_EQ(target("", {"OTEL_SDK_DISABLED=TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c"}), "nobody");
  EXPECT_TRUE(notes_.empty());
  EXPECT_EQ(target("http://c", {"OTEL_TRACES_EXPORTER=none"}), "nobody");
  EXPECT_EQ(notes_.size(), 1u);
  EXPECT_EQ(target("http://c", {"OTEL_SDK_DISABLED=false", "OTEL_TRACES_EXPORTER=otlp"}), "c 80 /v1/traces");
}

TEST_F(TraceSettingsTest, HeadersAreDecodedAndThoseForTracesTakeTheOthersPlace) {
  const auto read = settings("http://c", {"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Basic%20YQ==, x-scope = 1"});
  EXPECT_EQ(read->headers,
            (std::vector<std::pair<std::string, std::string>>{{"Authorization", "Basic YQ=="}, {"x-scope", "1"}}));
  const auto traces = settings("http://c", {"OTEL_EXPORTER_OTLP_HEADERS=a=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=b=2"});
  EXPECT_EQ(traces->headers, (std::vector<std::pair<std::string, std::string>>{{"b", "2"}}));
}

TEST_F(TraceSettingsTest, TheServicesNameIsTheVariablesOrTheAttributesOrOurs) {
  const auto name_of = [](const std::optional<TraceSettings>& read) {
    std::string found;
    for (const auto& [name, value] : read->resource) {
      if (name == "service.name") found += found.empty() ? value : " and " + value;
    }
    return found;
  };
  EXPECT_EQ(name_of(settings("http://c")), "quire");
  EXPECT_EQ(name_of(settings("http://c", {"OTEL_RESOURCE_ATTRIBUTES=service.name=a,k8s.pod.name=p%2C1"})), "a");
  EXPECT_EQ(name_of(settings("http://c", {"OTEL_RESOURCE_ATTRIBUTES=service.name=a", "OTEL_SERVICE_NAME=b"})), "b");
  const auto read = settings("http://c", {"OTEL_RESOURCE_ATTRIBUTES=k8s.pod.name=p%2C1"});
  EXPECT_THAT(read->resource, ::testing::Contains(std::pair<std::string, std::string>("k8s.pod.name", "p,1")));
}

TEST_F(TraceSettingsTest, SamplersHaveOpenTelemetrysNames) {
  struct Case {
    const char* name;
    const char* argument;
    double share;
    bool follows;
  };
  for (const Case& one :
       {Case{"", "0.5", 1.0, true}, Case{"always_on", "", 1.0, false}, Case{"always_off", "", 0.0, false},
        Case{"traceidratio", "0.25", 0.25, false}, Case{"parentbased_always_on", "", 1.0, true},
        Case{"parentbased_always_off", "", 0.0, true}, Case{"parentbased_traceidratio", "0", 0.0, true},
        Case{"parentbased_traceidratio", "1", 1.0, true}, Case{"parentbased_traceidratio", "", 1.0, true}}) {
    const auto read = settings("http://c", {std::string("OTEL_TRACES_SAMPLER=") + one.name,
                                            std::string("OTEL_TRACES_SAMPLER_ARG=") + one.argument});
    EXPECT_EQ(read->sampler.root_share, one.share) << one.name;
    EXPECT_EQ(read->sampler.follows_parent, one.follows) << one.name;
    EXPECT_TRUE(notes_.empty()) << one.name;
  }
  for (const char* bad : {"1.01", "-0.01", "nan", "half"}) {
    EXPECT_EQ(settings("http://c", {"OTEL_TRACES_SAMPLER=traceidratio", std::string("OTEL_TRACES_SAMPLER_ARG=") + bad})
                  ->sampler.root_share,
              1.0);
    EXPECT_EQ(notes_.size(), 1u) << bad;
  }
}

TEST_F(TraceSettingsTest, BatchesAreNoLargerThanTheLine) {
  const auto read = settings("http://c", {"OTEL_BSP_MAX_QUEUE_SIZE=100", "OTEL_BSP_SCHEDULE_DELAY=250",
                                          "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=1500"});
  EXPECT_EQ(read->limits.max_queue, 100u);
  EXPECT_EQ(read->limits.max_batch, 100u);
  EXPECT_EQ(read->limits.delay, 250ms);
  EXPECT_EQ(read->limits.timeout, 1500ms);
}

}  // namespace
}  // namespace quire::app
