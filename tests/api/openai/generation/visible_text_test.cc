#include "api/openai/generation/visible_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire::api::openai::visible_text_test {
namespace {

const HiddenText kThink{"<think>", "</think>", false};
const HiddenText kOpened{"<think>", "</think>", true};

struct Told {
  std::string hidden;
  std::string visible;
  bool operator==(const Told&) const = default;
};

Told parted(const std::optional<HiddenText>& hidden, const std::vector<std::string>& pieces) {
  VisibleText text(hidden);
  Told told;
  for (const std::string& piece : pieces) {
    const std::string ahead = text.ahead(piece);
    const VisibleText::Parts parts = text.push(piece);
    EXPECT_EQ(parts.visible, ahead);
    EXPECT_TRUE(parts.hidden.empty() || told.visible.empty()) << "hidden text comes first";
    told.hidden += parts.hidden;
    told.visible += parts.visible;
  }
  told.visible += text.finish();
  return told;
}

struct Case {
  std::optional<HiddenText> hidden;
  const char* text;
  Told told;
};

const Case kCases[] = {
    {std::nullopt, "<think>a</think>b", {"", "<think>a</think>b"}},
    {kThink, "plain", {"", "plain"}},
    {kThink, "", {"", ""}},
    {kThink, " \n", {"", " \n"}},
    {kThink, " <thi", {"", " <thi"}},
    {kThink, "<thin</think>", {"", "<thin</think>"}},
    {kThink, "<think>a\nb</think>\n\nHello\n", {"<think>a\nb</think>\n\n", "Hello\n"}},
    {kThink, "\n<think>a</think> <think>b</think>", {"\n<think>a</think> ", "<think>b</think>"}},
    {kThink, "<think><</think></think>c", {"<think><</think>", "</think>c"}},
    {kThink, "<think>never ends </thin", {"<think>never ends </thin", ""}},
    {kOpened, "a</think>b", {"a</think>", "b"}},
    {kOpened, "<think>a</think>\n", {"<think>a</think>\n", ""}},
    {kOpened, "a", {"a", ""}},
};

TEST(VisibleText, IsWhatStandsBehindTheHiddenBeginningHoweverItIsCut) {
  for (const Case& one : kCases) {
    const std::string text = one.text;
    EXPECT_EQ(parted(one.hidden, {text}), one.told) << text;
    for (std::size_t first = 0; first <= text.size(); ++first) {
      for (std::size_t second = first; second <= text.size(); ++second) {
        EXPECT_EQ(parted(one.hidden, {text.substr(0, first), text.substr(first, second - first), text.substr(second)}),
                  one.told)
            << text;
      }
    }
  }
}

TEST(VisibleText, IsSeenAheadOfWhatIsPushed) {
  VisibleText text(kThink);
  EXPECT_EQ(text.ahead("<think>a</think>"), "");
  EXPECT_EQ(text.ahead("b"), "b") << "behind what was asked about before";
  EXPECT_EQ(text.push("<thi").visible, "");
  EXPECT_EQ(text.ahead("s"), "<this");
  EXPECT_EQ(text.push("nk>").hidden, "<think>") << "asking changed nothing";
}

}  // namespace
}  // namespace quire::api::openai::visible_text_test
