#include "api/fields/read_body.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "api/completions/completion_request.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::read_body_test {
namespace {

class ReadBodyTest : public ::testing::Test {
 protected:
  Result<CompletionRequest> with(const std::string& fields) const {
    return parse_completion_request(R"({"prompt":"p",)" + fields + "}", services_);
  }
  CompletionRequest accepted(const std::string& fields) const {
    Result<CompletionRequest> parsed = with(fields);
    EXPECT_TRUE(parsed.ok()) << fields << ": " << parsed.error().message;
    return parsed.ok() ? std::move(*parsed) : CompletionRequest{};
  }
  void refused(const std::string& fields, const std::string& param) const {
    const Result<CompletionRequest> parsed = with(fields);
    ASSERT_FALSE(parsed.ok()) << fields;
    EXPECT_EQ(parsed.error().param, param) << fields;
    EXPECT_NE(parsed.error().message.find(param), std::string::npos) << parsed.error().message;
  }
  static std::vector<Field> fields() {
    std::vector<Field> all(completion_fields().begin(), completion_fields().end());
    std::copy_if(shared_fields().begin(), shared_fields().end(), std::back_inserter(all),
                 [](const Field& field) { return (field.endpoints & kCompletions) != 0; });
    return all;
  }

  test::World world_;
  Services services_ = world_.services();
};

TEST_F(ReadBodyTest, AFieldHasOneRow) {
  std::set<std::string> names;
  for (const Field& field : fields()) EXPECT_TRUE(names.insert(field.name).second) << field.name;
}

TEST_F(ReadBodyTest, AnUnknownFieldIsAcceptedAndListed) {
  const CompletionRequest request = accepted(R"("max_token":5,"temperature":0.5,"frobnicate":{"a":[1]})");
  EXPECT_EQ(request.unknown_fields, (std::vector<std::string>{"max_token", "frobnicate"}));
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(warnings_of(request), "unknown fields: max_token, frobnicate");
  EXPECT_EQ(warnings_of(accepted(R"("n":1)")), "");
}

TEST_F(ReadBodyTest, ANameInAWarningIsShortPlainAscii) {
  const CompletionRequest request =
      accepted(R"("a\r\nX-Evil: 1":1,"é":2,"a,b":3,"":4,")" + std::string(5000, 'x') + R"(":5)");
  const std::string warnings = warnings_of(request);
  EXPECT_TRUE(std::all_of(warnings.begin(), warnings.end(), [](char c) { return c >= ' ' && c <= '~'; })) << warnings;
  EXPECT_EQ(request.unknown_fields[0], "a??X-Evil:?1");
  EXPECT_EQ(request.unknown_fields[2], "a?b");
  EXPECT_EQ(request.unknown_fields[4], std::string(64, 'x'));
}

TEST_F(ReadBodyTest, SixteenUnknownFieldsAreNamedAndTheOthersCounted) {
  const auto many = [](int n) {
    std::string fields = R"("seed":1)";
    for (int i = 0; i < n; ++i) fields += ",\"x" + std::to_string(i) + "\":1";
    return fields;
  };
  EXPECT_EQ(warnings_of(accepted(many(15))).find("more"), std::string::npos);
  EXPECT_EQ(warnings_of(accepted(many(16))).find("more"), std::string::npos);
  EXPECT_TRUE(warnings_of(accepted(many(17))).ends_with("x15 and 1 more"));
  EXPECT_TRUE(warnings_of(accepted(many(5000))).ends_with("x15 and 4984 more"));
  EXPECT_LT(warnings_of(accepted(many(5000))).size(), 1200u);
}

// Whatever the value, a field is accepted or refused by its own name: nothing is misread as another field's fault.
TEST_F(ReadBodyTest, EveryAbusedFieldIsNamed) {
  const char* kValues[] = {"0",
                           "1",
                           "-1",
                           "1.5",
                           "true",
                           "false",
                           "\"\"",
                           "\"x\"",
                           "[]",
                           "{}",
                           "[1]",
                           "[[]]",
                           "[null]",
                           "[\"x\"]",
                           "1e300",
                           "-1e300",
                           "9223372036854775807",
                           "[-1]",
                           "18446744073709551615",
                           "{\"a\":1}",
                           "{\"type\":1}",
                           "{\"5\":\"x\"}",
                           "[{}]",
                           "[1e99]"};
  for (const Field& field : fields()) {
    const std::string name = field.name;
    if (name == "prompt") continue;
    for (const char* value : kValues) {
      const Result<CompletionRequest> parsed = with("\"" + name + "\":" + value);
      if (parsed) continue;
      const std::string& param = parsed.error().param;
      EXPECT_TRUE(param == name || param.starts_with(name + ".")) << name << " " << value << ": " << param;
      EXPECT_NE(parsed.error().message.find(name), std::string::npos) << parsed.error().message;
      EXPECT_LT(parsed.error().message.size(), 400u);
    }
  }
}

TEST_F(ReadBodyTest, WhatIsOutOfARowsRangeIsRefused) {
  for (const Field& field : fields()) {
    const std::string start = std::string("\"") + field.name + "\":";
    if (const auto* kind = std::get_if<Integer>(&field.kind)) {
      const std::int64_t highest = kind->limit != nullptr ? services_.limits.*kind->limit : kind->highest;
      if (kind->lowest > std::numeric_limits<std::int64_t>::min()) {
        refused(start + std::to_string(kind->lowest - 1), field.name);
      }
      if (highest < std::numeric_limits<std::int64_t>::max()) refused(start + std::to_string(highest + 1), field.name);
    } else if (const auto* number = std::get_if<Number>(&field.kind)) {
      refused(start + std::to_string(number->lowest - 0.001), field.name);
      refused(start + std::to_string(number->highest + 0.001), field.name);
      if (number->above) refused(start + std::to_string(number->lowest), field.name);
    } else if (const auto* text = std::get_if<Text>(&field.kind)) {
      const std::size_t most = services_.limits.*text->max_bytes;
      accepted(start + '"' + std::string(most, 'x') + '"');
      refused(start + '"' + std::string(most + 1, 'x') + '"', field.name);
    } else if (std::holds_alternative<Neutral>(field.kind)) {
      refused(start + "17", field.name);
    }
  }
}

TEST_F(ReadBodyTest, WhatIsNotSupportedIsAcceptedWhereItChangesNothing) {
  const struct {
    const char* field;
    std::vector<const char*> neutral;
    std::vector<const char*> other;
  } kCases[] = {
      {"spaces_between_special_tokens", {"null", "true"}, {"false", "1"}},
      {"logits_processors", {"null", "[]"}, {"[\"os.system\"]", "\"\"", "{}"}},
      {"prompt_embeds", {"null"}, {"\"AAAA\"", "[1.0]", "[]"}},
      {"vllm_xargs", {"null", "{}"}, {R"({"a":1})", "[]"}},
      {"truncation_side", {"null", "\"left\""}, {"\"right\"", "1"}},
      {"kv_transfer_params", {"null"}, {"{}"}},
  };
  for (const auto& one : kCases) {
    for (const char* value : one.neutral) accepted('"' + std::string(one.field) + "\":" + value);
    for (const char* value : one.other) refused('"' + std::string(one.field) + "\":" + value, one.field);
  }
}

TEST_F(ReadBodyTest, NullIsNotGivenAndAValueIs) {
  CompletionRequest request;
  const Result<Given> given =
      read_body(R"({"n":null,"seed":3})", kCompletions, completion_fields(), services_, request);
  ASSERT_TRUE(given.ok());
  EXPECT_TRUE((*given)("seed"));
  EXPECT_FALSE((*given)("n"));
  EXPECT_FALSE((*given)("prompt"));
  EXPECT_FALSE((*given)("nonsense"));
}

TEST_F(ReadBodyTest, ARowSaysItsTypeAndItsRange) {
  const auto row = [](const char* name) {
    const std::vector<Field> all = fields();
    return *std::find_if(all.begin(), all.end(), [&](const Field& field) { return std::string(name) == field.name; });
  };
  EXPECT_EQ(range_text(row("temperature"), {}), "0 to 2");
  EXPECT_EQ(range_text(row("top_p"), {}), "above 0 and up to 1");
  EXPECT_EQ(range_text(row("n"), {}), "1 to 128");
  EXPECT_EQ(range_text(row("seed"), {}), "a 64-bit integer");
  EXPECT_EQ(range_text(row("priority"), {}), "a 32-bit integer");
  EXPECT_EQ(range_text(row("max_tokens"), {}), "0 and up");
  EXPECT_EQ(range_text(row("user"), {}), "up to 256 bytes");
  EXPECT_EQ(json_type(row("stop")), "string|[string]");
  EXPECT_EQ(json_type(row("echo")), "boolean");
  EXPECT_EQ(json_type(row("seed")), "integer");
}

}  // namespace
}  // namespace quire::api::read_body_test
