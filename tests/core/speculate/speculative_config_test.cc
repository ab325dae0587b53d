#include "core/speculate/speculative_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/source_tree.h"

namespace quire::speculate::speculative_config_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Method kLast = Method::kHybrid;

std::vector<std::string_view> every_method() {
  std::vector<std::string_view> names;
  for (int m = 0; m <= static_cast<int>(kLast); ++m) names.push_back(name_of(static_cast<Method>(m)));
  return names;
}

Result<SpeculativeConfig> parse(const std::string& text) {
  static const std::vector<std::string_view> all = every_method();
  return parse_speculative_config(text, all);
}
// What a method needs besides its name.
std::string needed(std::string_view method) {
  if (method == "draft_model" || method == "specinfer" || method == "triforce") return R"(,"model":"dir")";
  return method == "rest" ? R"(,"datastore":"file")" : "";
}
std::string with(std::string_view method, const std::string& more = "") {
  return R"({"method":")" + std::string(method) + "\"" + needed(method) + (more.empty() ? "" : "," + more) + "}";
}
SpeculativeConfig accepted(const std::string& text) {
  const auto config = parse(text);
  EXPECT_TRUE(config.ok()) << text << ": " << (config.ok() ? "" : config.error().message);
  return config.ok() ? *config : SpeculativeConfig{};
}
// "key | message"
std::string refusal(const std::string& text) {
  const auto config = parse(text);
  if (config.ok()) return "";
  EXPECT_EQ(config.error().code, Code::kInvalidArgument);
  return config.error().param + " | " + config.error().message;
}
void expect_refused(const std::string& text, const std::string& key) {
  EXPECT_THAT(refusal(text), ::testing::StartsWith(key + " | ")) << text;
}

TEST(SpeculativeConfig, TakesEveryMethodByItsOwnName) {
  std::set<std::string_view> seen;
  for (const std::string_view name : every_method()) {
    EXPECT_EQ(name_of(accepted(with(name)).method), name);
    EXPECT_TRUE(seen.insert(name).second) << name;
  }
  EXPECT_EQ(seen.size(), 16u);
}

TEST(SpeculativeConfig, OfAMethodAloneHasTheDefaults) {
  const SpeculativeConfig config = accepted(with("ngram"));
  EXPECT_EQ(config.num_speculative_tokens, 4u);
  EXPECT_EQ(config.topk, 1u);
  EXPECT_TRUE(config.adaptive);
  EXPECT_TRUE(config.shared_noise);
  EXPECT_LE(config.prompt_lookup_min, config.prompt_lookup_max);
}

TEST(SpeculativeConfig, LimitsHoldOnBothSides) {
  const struct {
    const char* method;
    const char* key;
    std::int64_t low, high;
    std::uint32_t SpeculativeConfig::*member;
  } kKeys[] = {
      {"ngram", "num_speculative_tokens", 1, 64, &SpeculativeConfig::num_speculative_tokens},
      {"eagle3", "topk", 1, 16, &SpeculativeConfig::topk},
      {"ngram", "prompt_lookup_min", 1, 32, &SpeculativeConfig::prompt_lookup_min},
      {"ngram", "prompt_lookup_max", 1, 32, &SpeculativeConfig::prompt_lookup_max},
      {"suffix", "suffix_decoding_max_tree_depth", 1, 64, &SpeculativeConfig::suffix_max_tree_depth},
      {"suffix", "suffix_decoding_max_cached_tokens", 0, 2147483647, &SpeculativeConfig::suffix_max_cached_tokens},
      {"suffix", "suffix_decoding_max_spec_offset", 0, 64, &SpeculativeConfig::suffix_max_spec_offset},
      {"layer_skip", "exit_layer", 1, 1024, &SpeculativeConfig::exit_layer},
      {"magicdec", "sinks", 0, 1048576, &SpeculativeConfig::sinks},
      {"magicdec", "window", 1, 1048576, &SpeculativeConfig::window},
      {"lookahead", "ngram_size", 2, 8, &SpeculativeConfig::lookahead_ngram_size},
      {"lookahead", "guesses", 1, 32, &SpeculativeConfig::lookahead_ngrams},
  };
  for (const auto& key : kKeys) {
    const auto text = [&](std::int64_t value) {
      return with(key.method, "\"" + std::string(key.key) + "\":" + std::to_string(value));
    };
    for (const std::int64_t value : {key.low, key.low + 1, key.high - 1, key.high}) {
      EXPECT_EQ(accepted(text(value)).*key.member, value) << key.key;
    }
    for (const std::int64_t value : {key.low - 1, key.high + 1, std::int64_t{1} << 40, -(std::int64_t{1} << 40)}) {
      expect_refused(text(value), key.key);
    }
    for (const char* odd : {"null", "true", "\"4\"", "1.5", "[1]", "18446744073709551615"}) {
      expect_refused(with(key.method, "\"" + std::string(key.key) + "\":" + odd), key.key);
    }
  }
}

TEST(SpeculativeConfig, ATreeIsForThoseThatMakeOne) {
  for (const std::string_view method : every_method()) {
    const std::string text = with(method, R"("topk":2)");
    const bool makes_none = method == "none" || method == "ngram" || method == "lookahead" || method == "triforce";
    if (makes_none) {
      expect_refused(text, "topk");
    } else {
      EXPECT_EQ(accepted(text).topk, 2u) << method;
    }
  }
}

TEST(SpeculativeConfig, AWindowHasHalfOfTheDraftAtMost) {
  const auto text = [](std::uint32_t window, std::uint32_t ngram_size, std::uint32_t nodes) {
    return with("lookahead", "\"window\":" + std::to_string(window) + ",\"ngram_size\":" + std::to_string(ngram_size) +
                                 ",\"num_speculative_tokens\":" + std::to_string(nodes));
  };
  for (const auto& [window, ngram_size] : {std::pair{31u, 2u}, {32u, 2u}, {8u, 5u}, {1u, 2u}}) {
    EXPECT_EQ(accepted(text(window, ngram_size, 64)).lookahead_window, window);
    const std::uint32_t rows = window * (ngram_size - 1);
    EXPECT_EQ(accepted(text(window, ngram_size, 2 * rows)).num_speculative_tokens, 2 * rows);
    expect_refused(text(window, ngram_size, 2 * rows - 1), "window");
  }
  expect_refused(text(33, 2, 64), "window");
  expect_refused(text(11, 4, 64), "window");  // 33
  EXPECT_EQ(refusal(text(9, 5, 64)),
            "window | window · (ngram_size - 1) is 36 and must be at most 32, half of num_speculative_tokens");
  EXPECT_EQ(refusal(with("lookahead", R"("window":-1)")), "window | window must be a whole number from 0 to 32");
}

TEST(SpeculativeConfig, AWindowWantsDraftsOfAFixedSize) {
  const SpeculativeConfig pool = accepted(with("lookahead"));
  EXPECT_EQ(pool.lookahead_window, 0u);
  EXPECT_EQ(pool.num_speculative_tokens, 4u);
  EXPECT_TRUE(pool.adaptive);
  const SpeculativeConfig config = accepted(with("lookahead", R"("window":7)"));
  EXPECT_EQ(config.lookahead_window, 7u);
  EXPECT_EQ(config.num_speculative_tokens, 64u);
  EXPECT_FALSE(config.adaptive);
  EXPECT_FALSE(accepted(with("lookahead", R"("adaptive":false)")).adaptive);
  EXPECT_TRUE(accepted(with("lookahead", R"("window":0,"adaptive":true)")).adaptive);
  expect_refused(with("lookahead", R"("adaptive":true,"window":7)"), "adaptive");
}

TEST(SpeculativeConfig, FractionsHaveLimitsToo) {
  const std::string factor = "suffix_decoding_max_spec_factor";
  const std::string least = "suffix_decoding_min_token_prob";
  const auto text = [](const std::string& key, const std::string& value) {
    return with("suffix", "\"" + key + "\":" + value);
  };
  EXPECT_EQ(accepted(text(factor, "64")).suffix_max_spec_factor, 64.0f);
  EXPECT_EQ(accepted(text(factor, "0")).suffix_max_spec_factor, 0.0f);
  EXPECT_EQ(accepted(text(least, "0.25")).suffix_min_token_prob, 0.25f);
  EXPECT_EQ(accepted(text(least, "1")).suffix_min_token_prob, 1.0f);
  for (const char* value : {"-0.001", "64.001", "\"1\"", "null", "1e999"}) {
    EXPECT_NE(refusal(text(factor, value)), "") << value;
  }
  for (const char* value : {"-0.001", "1.001", "true"}) expect_refused(text(least, value), least);
}

TEST(SpeculativeConfig, AKeyOfAnotherMethodIsRefusedWithWhoseItIs) {
  EXPECT_EQ(refusal(with("suffix", R"("prompt_lookup_max":4)")),
            "prompt_lookup_max | prompt_lookup_max is a key of ngram, not of suffix");
  EXPECT_EQ(refusal(with("ngram", R"("window":4)")),
            "window | window is a key of magicdec, triforce and lookahead, not of ngram");
  for (const char* key : {"topk", "shared_noise", "model", "datastore", "exit_layer", "skip_layers", "sinks",
                          "suffix_decoding_max_tree_depth", "self_test"}) {
    expect_refused(with("ngram", "\"" + std::string(key) + "\":1"), key);
  }
  for (const char* key : {"num_speculative_tokens", "accept", "adaptive"}) {
    expect_refused(with("none", "\"" + std::string(key) + "\":1"), key);
  }
}

TEST(SpeculativeConfig, AKeyThatNobodyHasIsRefusedByName) {
  for (const std::string_view method : every_method()) {
    EXPECT_EQ(refusal(with(method, R"("num_spec_tokens":4)")), "num_spec_tokens | unknown key num_spec_tokens");
  }
  EXPECT_LT(refusal(with("ngram", "\"" + std::string(5000, 'x') + "\":4")).size(), 200u);
  EXPECT_THAT(refusal(with("ngram", R"("a\nb":4)")), HasSubstr("a?b"));
}

TEST(SpeculativeConfig, NamesTheMethodsThatThereAre) {
  constexpr std::string_view kSome[] = {"none", "ngram", "suffix"};
  const auto of = [&](const char* text) {
    const auto config = parse_speculative_config(text, kSome);
    return config.ok() ? "" : config.error().param + " | " + config.error().message;
  };
  EXPECT_EQ(of(R"({"method":"suffix"})"), "");
  EXPECT_EQ(of(R"({"method":"eagle3"})"),
            R"(method | method "eagle3" is not built in; use one of: none, ngram and suffix)");
  EXPECT_EQ(of(R"({"method":"eagle4"})"), R"(method | unknown method "eagle4"; use one of: none, ngram and suffix)");
  EXPECT_EQ(of("{}"), "method | method is missing; use one of: none, ngram and suffix");
  EXPECT_EQ(of(R"({"method":7})"), "method | method must be a string; use one of: none, ngram and suffix");
}

TEST(SpeculativeConfig, WhatIsBuiltAreMethodsAndNoneIsFirst) {
  const std::vector<std::string_view> all = every_method();
  ASSERT_FALSE(built_methods().empty());
  EXPECT_EQ(built_methods().front(), "none");
  for (const std::string_view name : built_methods()) {
    EXPECT_EQ(std::count(all.begin(), all.end(), name), 1) << name;
    EXPECT_TRUE(parse_speculative_config(with(name)).ok()) << name;
  }
}

TEST(SpeculativeConfig, ThePageOfSpeculationExplainsEveryMethod) {
  const std::string page = test::source_text("docs/speculation.md");
  for (const std::string_view name : every_method()) EXPECT_THAT(page, HasSubstr("`" + std::string(name) + "`"));
}

TEST(SpeculativeConfig, DraftsAreAcceptedByMatchUnlessAnotherRuleIsAskedFor) {
  EXPECT_EQ(accepted(with("ngram")).accept, sample::Accept::kMatch);
  EXPECT_EQ(accepted(with("ngram", R"("accept":"match")")).accept, sample::Accept::kMatch);
  EXPECT_EQ(accepted(with("ngram", R"("accept":"ratio")")).accept, sample::Accept::kRatio);
  EXPECT_EQ(accepted(with("eagle3", R"("accept":"block")")).accept, sample::Accept::kBlock);
  const std::string told = "accept | accept must be \"match\", \"ratio\" or \"block\"";
  EXPECT_EQ(refusal(with("ngram", R"("accept":"typical")")), told);
  EXPECT_EQ(refusal(with("ngram", R"("accept":true)")), told);
}

TEST(SpeculativeConfig, RulesByRejectionAndAdaptiveDraftsExcludeEachOther) {
  EXPECT_TRUE(accepted(with("ngram", R"("accept":"match")")).adaptive);
  for (const std::string rule : {"ratio", "block"}) {
    const std::string key = R"("accept":")" + rule + "\"";
    EXPECT_FALSE(accepted(with("ngram", key)).adaptive);
    EXPECT_FALSE(accepted(with("ngram", key + R"(,"adaptive":false)")).adaptive);
    for (const std::string& both : {key + R"(,"adaptive":true)", R"("adaptive":true,)" + key}) {
      EXPECT_THAT(refusal(with("ngram", both)),
                  HasSubstr("accept | accept \"" + rule + "\" cannot be combined with adaptive true"));
    }
  }
}

TEST(SpeculativeConfig, WhatAMethodCannotDoWithoutIsAskedFor) {
  for (const char* method : {"draft_model", "specinfer", "triforce"}) {
    expect_refused(R"({"method":")" + std::string(method) + "\"}", "model");
  }
  expect_refused(R"({"method":"rest"})", "datastore");
  EXPECT_EQ(refusal(R"({"method":"eagle3"})"), "") << "the served model may have brought its own";
}

TEST(SpeculativeConfig, SeveralModelsAreOfOneMethodAlone) {
  EXPECT_THAT(accepted(R"({"method":"eagle","model":"a"})").models, ElementsAre("a"));
  EXPECT_THAT(accepted(R"({"method":"specinfer","model":"a"})").models, ElementsAre("a"));
  EXPECT_THAT(accepted(R"({"method":"specinfer","model":["a","b"]})").models, ElementsAre("a", "b"));
  expect_refused(R"({"method":"eagle","model":["a","b"]})", "model");
  for (const char* odd : {"\"\"", "[]", "[\"\"]", "[1]", "3", "null"}) {
    expect_refused(R"({"method":"specinfer","model":)" + std::string(odd) + "}", "model");
  }
  const auto many = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + std::string("\"m\"");
    return R"({"method":"specinfer","model":[)" + list + "]}";
  };
  EXPECT_EQ(accepted(many(16)).models.size(), 16u);
  expect_refused(many(17), "model");
}

TEST(SpeculativeConfig, SkippedLayersAscend) {
  EXPECT_THAT(accepted(with("draft_verify", R"("skip_layers":[0,3,1023])")).skip_layers, ElementsAre(0, 3, 1023));
  EXPECT_THAT(accepted(with("draft_verify", R"("skip_layers":[])")).skip_layers, IsEmpty());
  for (const char* odd : {"[3,3]", "[3,2]", "[-1]", "[1024]", "[1.5]", "3", "[\"3\"]"}) {
    expect_refused(with("draft_verify", "\"skip_layers\":" + std::string(odd)), "skip_layers");
  }
}

TEST(SpeculativeConfig, OneEndOfAnNgramMovesTheOther) {
  const auto of = [](const std::string& more) { return accepted(with("ngram", more)); };
  EXPECT_EQ(of(R"("prompt_lookup_max":1)").prompt_lookup_min, 1u);
  EXPECT_EQ(of(R"("prompt_lookup_min":9)").prompt_lookup_max, 9u);
  EXPECT_EQ(of(R"("prompt_lookup_min":3,"prompt_lookup_max":3)").prompt_lookup_min, 3u);
  expect_refused(with("ngram", R"("prompt_lookup_min":4,"prompt_lookup_max":3)"), "prompt_lookup_min");
}

TEST(SpeculativeConfig, IsAnObject) {
  for (const char* text : {"", "ngram", "[]", "\"ngram\"", "null", R"({"method":"ngram")", R"({"method":"ngram"} x)",
                           R"({method:"ngram"})"}) {
    expect_refused(text, "");
  }
  EXPECT_THAT(refusal("ngram"), HasSubstr(R"({"method": "ngram")"));
}

TEST(SpeculativeConfig, SwitchesAreTrueOrFalse) {
  EXPECT_FALSE(accepted(with("ngram", R"("adaptive":false)")).adaptive);
  EXPECT_TRUE(accepted(with("draft_model")).self_test);
  EXPECT_FALSE(accepted(with("draft_model", R"("self_test":false)")).self_test);
  EXPECT_FALSE(accepted(with("eagle3", R"("shared_noise":false)")).shared_noise);
  for (const char* odd : {"0", "\"false\"", "null"}) {
    expect_refused(with("ngram", "\"adaptive\":" + std::string(odd)), "adaptive");
    expect_refused(with("eagle3", "\"self_test\":" + std::string(odd)), "self_test");
  }
}

}  // namespace
}  // namespace quire::speculate::speculative_config_test
