#include "api/answer/call_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace quire::api::chat::call_ids_test {
namespace {

const std::vector<TokenId> kPrompt = {1, 2, 3};

TEST(CallIds, AreTheSameForTheSameRequestAndOthersForAnyOther) {
  const CallIds ids(CallFormat::kHermes, kPrompt);
  EXPECT_EQ(ids.of(7, 0, 0, "f"), CallIds(CallFormat::kHermes, kPrompt).of(7, 0, 0, "f"));
  const std::vector<TokenId> longer = {1, 2, 3, 4};
  const std::set<std::string> all = {ids.of(7, 0, 0, "f"), ids.of(8, 0, 0, "f"), ids.of(7, 1, 0, "f"),
                                     ids.of(7, 0, 1, "f"), CallIds(CallFormat::kHermes, longer).of(7, 0, 0, "f")};
  EXPECT_EQ(all.size(), 5u);
}

TEST(CallIds, HaveTheShapeThatClientsAndTemplatesTake) {
  const auto plain = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)); });
  };
  const std::string usual = CallIds(CallFormat::kHermes, kPrompt).of(7, 0, 0, "f");
  EXPECT_EQ(usual.size(), 29u);
  EXPECT_EQ(usual.substr(0, 5), "call_");
  EXPECT_TRUE(plain(usual.substr(5)));
  const std::string mistral = CallIds(CallFormat::kMistral, kPrompt).of(7, 0, 0, "f");
  EXPECT_EQ(mistral.size(), 9u);
  EXPECT_TRUE(plain(mistral));
}

TEST(CallIds, OfKimiCountTheCallsOfTheConversation) {
  EXPECT_EQ(CallIds(CallFormat::kKimiK2, kPrompt).of(7, 0, 0, "get_weather"), "functions.get_weather:0");
  EXPECT_EQ(CallIds(CallFormat::kKimiK2, kPrompt, 3).of(7, 0, 1, "now"), "functions.now:4");
}

}  // namespace
}  // namespace quire::api::chat::call_ids_test
