#include "api/tracing/otlp_json.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/tracing/tracer.h"

namespace quire::api::tracing::otlp_json_test {
namespace {

namespace json = boost::json;

constexpr std::int64_t kStart_ns = 1'800'000'000'000'000'000;
const std::string kTrace(32, 'a');
const std::string kSpan(16, 'b');
const std::string kParent(16, 'c');

RequestSpan request_span() {
  RequestSpan span;
  span.context = {kTrace, kSpan, kParent, "rojo=1"};
  span.request_id = "r1";
  span.method = "POST";
  span.path = "/v1/completions";
  span.route = "/v1/completions";
  span.status = 200;
  span.start_ns = kStart_ns;
  span.end_ns = kStart_ns + 100'000'000;
  return span;
}

// Waited 2 ms, read its prompt until 12 ms, spoke until 90 ms.
RequestSpan generated_span() {
  RequestSpan span = request_span();
  Generated& one = span.generated.emplace();
  one.model = "stories";
  one.id = "r1";
  one.n = 2;
  one.max_tokens = 7;
  one.temperature = 0.8f;
  one.num_sequences = 2;
  one.admitted = true;
  one.usage = {10, 4, 14};
  one.phases = {.first_start = 2000,
                .waited_for = flow::WaitCause::kBlocks,
                .first_token = 11000,
                .last_first_token = 12000,
                .last_token = 90000,
                .last_end = 90000,
                .num_logits_rows = 2,
                .drafted = 5,
                .accepted = 3};
  one.preemptions = {{20000, false}, {30000, true}};
  one.num_preemptions = 5;
  one.finish_reasons = {"length", "stop"};
  return span;
}

json::array spans_of(const std::vector<RequestSpan>& spans) {
  const json::value reported = json::parse(otlp_json({{"service.name", "quire"}}, "1.2.3", spans));
  return reported.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").as_array();
}

// name → value; numbers as they are written.
std::map<std::string, std::string> attributes_of(const json::value& of) {
  std::map<std::string, std::string> all;
  for (const json::value& one : of.at("attributes").as_array()) {
    EXPECT_EQ(one.at("value").as_object().size(), 1u);
    const json::value& value = one.at("value").as_object().begin()->value();
    const bool fresh =
        all.emplace(one.at("key").as_string(), value.is_string() ? value.as_string().c_str() : json::serialize(value))
            .second;
    EXPECT_TRUE(fresh) << one << " twice";
  }
  return all;
}

TEST(OtlpJson, NamesTheResourceAndTheScope) {
  const json::value reported = json::parse(otlp_json({{"service.name", "a"}, {"k", "v"}}, "1.2.3", {}));
  const json::value& resource = reported.at("resourceSpans").at(0);
  EXPECT_EQ(attributes_of(resource.at("resource")),
            (std::map<std::string, std::string>{{"service.name", "a"}, {"k", "v"}}));
  EXPECT_EQ(resource.at("scopeSpans").at(0).at("scope").at("name"), "quire");
  EXPECT_EQ(resource.at("scopeSpans").at(0).at("scope").at("version"), "1.2.3");
}

TEST(OtlpJson, ARequestIsASpanOfItsCallersTrace) {
  const json::array spans = spans_of({request_span()});
  ASSERT_EQ(spans.size(), 1u);
  const json::value& span = spans[0];
  EXPECT_EQ(span.at("traceId"), kTrace.c_str());
  EXPECT_EQ(span.at("spanId"), kSpan.c_str());
  EXPECT_EQ(span.at("parentSpanId"), kParent.c_str());
  EXPECT_EQ(span.at("traceState"), "rojo=1");
  EXPECT_EQ(span.at("name"), "POST /v1/completions");
  EXPECT_EQ(span.at("kind"), 2);
  EXPECT_EQ(span.at("startTimeUnixNano"), "1800000000000000000");
  EXPECT_EQ(span.at("endTimeUnixNano"), "1800000000100000000");
  EXPECT_FALSE(span.as_object().contains("status"));
}

TEST(OtlpJson, AChainOfTimesMakesItsChildren) {
  const json::array spans = spans_of({generated_span()});
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans.size(), num_spans(generated_span()));
  const std::vector<std::tuple<const char*, std::int64_t, std::int64_t>> expected = {
      {"queue", 0, 2'000'000}, {"prefill", 2'000'000, 12'000'000}, {"decode", 11'000'000, 90'000'000}};
  std::set<std::string> ids = {kSpan};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, from, to] = expected[i];
    const json::value& child = spans[i + 1];
    EXPECT_EQ(child.at("name"), name);
    EXPECT_EQ(child.at("kind"), 1);
    EXPECT_EQ(child.at("traceId"), kTrace.c_str());
    EXPECT_EQ(child.at("parentSpanId"), kSpan.c_str());
    EXPECT_EQ(child.at("startTimeUnixNano"), std::to_string(kStart_ns + from).c_str());
    EXPECT_EQ(child.at("endTimeUnixNano"), std::to_string(kStart_ns + to).c_str());
    EXPECT_EQ(child.at("spanId").as_string().size(), 16u);
    EXPECT_TRUE(ids.insert(child.at("spanId").as_string().c_str()).second);
  }
}

TEST(OtlpJson, ReportsWhatWasAskedAndWhatCameOfIt) {
  const auto reported = attributes_of(spans_of({generated_span()})[0]);
  const std::map<std::string, std::string> expected = {
      {"http.request.method", "POST"},
      {"http.route", "/v1/completions"},
      {"url.path", "/v1/completions"},
      {"url.scheme", "http"},
      {"http.response.status_code", "200"},
      {"gen_ai.operation.name", "text_completion"},
      {"gen_ai.provider.name", "quire"},
      {"gen_ai.request.id", "r1"},
      {"gen_ai.response.id", "r1"},
      {"gen_ai.request.model", "stories"},
      {"gen_ai.response.model", "stories"},
      {"gen_ai.request.max_tokens", "7"},
      {"gen_ai.request.temperature", "8E-1"},
      {"gen_ai.request.top_p", "1"},
      {"gen_ai.request.choice.count", "2"},
      {"gen_ai.request.n", "2"},
      {"gen_ai.request.stream", "false"},
      {"gen_ai.usage.num_sequences", "2"},
      {"gen_ai.usage.input_tokens", "10"},
      {"gen_ai.usage.prompt_tokens", "10"},
      {"gen_ai.usage.output_tokens", "14"},
      {"gen_ai.usage.completion_tokens", "14"},
      {"gen_ai.usage.cache_read.input_tokens", "4"},
      {"gen_ai.response.finish_reasons", R"({"values":[{"stringValue":"length"},{"stringValue":"stop"}]})"},
      {"quire.preemptions", "5"},
      {"quire.draft.tokens", "5"},
      {"quire.draft.accepted_tokens", "3"},
      {"quire.queue.cause", "blocks"},
      {"gen_ai.latency.time_in_queue", "2E-3"},
      {"gen_ai.latency.time_to_first_token", "1.1E-2"},
      {"gen_ai.latency.time_in_model_prefill", "1E-2"},
      {"gen_ai.latency.time_in_model_decode", "7.9E-2"},
      {"gen_ai.latency.time_in_model_inference", "8.8E-2"},
      {"gen_ai.latency.e2e", "1E-1"},
  };
  EXPECT_EQ(reported, expected);
}

TEST(OtlpJson, PreemptionsAreEventsAndThoseNotKeptAreCounted) {
  const json::array spans = spans_of({generated_span()});
  const json::value& span = spans[0];
  ASSERT_EQ(span.at("events").as_array().size(), 2u);
  EXPECT_EQ(span.at("events").at(0).at("timeUnixNano"), std::to_string(kStart_ns + 20'000'000).c_str());
  EXPECT_EQ(attributes_of(span.at("events").at(0)).at("quire.preemption.kind"), "recompute");
  EXPECT_EQ(attributes_of(span.at("events").at(1)).at("quire.preemption.kind"), "swap");
  EXPECT_EQ(span.at("droppedEventsCount"), 3);
}

TEST(OtlpJson, WhatDidNotComeAboutHasNoSpanAndEndsWithTheRequest) {
  RequestSpan span = generated_span();
  span.generated->phases = {};
  json::array spans = spans_of({span});
  ASSERT_EQ(spans.size(), 2u) << "it only waited";
  EXPECT_EQ(spans[1].at("endTimeUnixNano"), spans[0].at("endTimeUnixNano"));
  EXPECT_EQ(num_spans(span), 2u);

  span.generated->phases.first_start = 2000;
  span.generated->phases.last_end = 50000;
  spans = spans_of({span});
  ASSERT_EQ(spans.size(), 3u) << "it never spoke";
  EXPECT_EQ(spans[2].at("endTimeUnixNano"), std::to_string(kStart_ns + 50'000'000).c_str());
  EXPECT_EQ(num_spans(span), 3u);

  span.generated->admitted = false;
  EXPECT_EQ(spans_of({span}).size(), 1u) << "it was refused";
  EXPECT_EQ(num_spans(span), 1u);
}

TEST(OtlpJson, NoPartReachesBeyondItsRequest) {
  RequestSpan span = generated_span();
  span.end_ns = kStart_ns + 50'000'000;  // its client left
  const json::array spans = spans_of({span});
  EXPECT_EQ(spans[3].at("endTimeUnixNano"), spans[0].at("endTimeUnixNano"));
}

TEST(OtlpJson, AFaultOfOursIsAnErrorAndTheCallersIsNot) {
  struct Case {
    int status;
    const char* broke_off;  // null: not generated
    bool error;
    const char* type;  // null: none
  };
  for (const Case& one : {Case{200, nullptr, false, nullptr}, Case{399, nullptr, false, nullptr},
                          Case{400, nullptr, false, "400"}, Case{429, "rate_limit_error", false, "rate_limit_error"},
                          Case{499, "", false, "499"}, Case{499, nullptr, false, "499"},
                          Case{500, nullptr, true, "500"}, Case{503, "unavailable_error", true, "unavailable_error"},
                          Case{200, "timeout_error", true, "timeout_error"}, Case{200, "", false, nullptr}}) {
    RequestSpan span = one.broke_off != nullptr ? generated_span() : request_span();
    span.status = one.status;
    if (one.broke_off != nullptr) span.generated->error_type = one.broke_off;
    const json::array spans = spans_of({span});
    EXPECT_EQ(spans[0].as_object().contains("status"), one.error) << one.status;
    if (one.error) {
      EXPECT_EQ(spans[0].at("status").at("code"), 2);
    }
    const auto reported = attributes_of(spans[0]);
    EXPECT_EQ(reported.contains("error.type") ? reported.at("error.type") : "none",
              one.type != nullptr ? one.type : "none")
        << one.status;
  }
}

TEST(OtlpJson, InventedMethodsAndPathsMakeNoNewNames) {
  RequestSpan span = request_span();
  span.method = "BREW";
  span.path = "/pot-1\xff";
  span.route = {};
  span.status = 404;
  const json::array spans = spans_of({span});
  EXPECT_EQ(spans[0].at("name"), "HTTP");
  const auto reported = attributes_of(spans[0]);
  EXPECT_EQ(reported.at("http.request.method"), "_OTHER");
  EXPECT_EQ(reported.at("http.request.method_original"), "BREW");
  EXPECT_EQ(reported.at("url.path"), "/pot-1\xEF\xBF\xBD");
  EXPECT_FALSE(reported.contains("http.route"));
}

TEST(OtlpJson, ATraceThatBeginsHereHasNoParent) {
  RequestSpan span = request_span();
  span.context.parent_id.clear();
  span.context.state.clear();
  const json::array spans = spans_of({span});
  EXPECT_FALSE(spans[0].as_object().contains("parentSpanId"));
  EXPECT_FALSE(spans[0].as_object().contains("traceState"));
  EXPECT_EQ(spans[0].at("flags"), 0x101);
  EXPECT_EQ(spans_of({request_span()})[0].at("flags"), 0x301)
      << "of a parent it is known that it is of another process";
}

}  // namespace
}  // namespace quire::api::tracing::otlp_json_test
