#include "api/generation/visible_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire::api::visible_text_test {
namespace {

const HiddenText kThink{"<think>", "</think>", false};
const HiddenText kOpened{"<think>", "</think>", true};

struct Emitted {
  std::string hidden;
  std::string visible;
  bool operator==(const Emitted&) const = default;
};

Emitted parted(const std::optional<HiddenText>& hidden, const std::vector<std::string>& choice_deltas) {
  VisibleText text(hidden);
  Emitted reported;
  for (const std::string& delta : choice_deltas) {
    const std::string ahead = text.ahead(delta);
    const VisibleText::Parts parts = text.push(delta);
    EXPECT_EQ(parts.visible, ahead);
    EXPECT_TRUE(parts.hidden.empty() || reported.visible.empty()) << "hidden text comes first";
    reported.hidden += parts.hidden;
    reported.visible += parts.visible;
  }
  reported.visible += text.finish();
  return reported;
}

struct Case {
  std::optional<HiddenText> hidden;
  const char* text;
  Emitted reported;
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
    EXPECT_EQ(parted(one.hidden, {text}), one.reported) << text;
    for (std::size_t first = 0; first <= text.size(); ++first) {
      for (std::size_t second = first; second <= text.size(); ++second) {
        EXPECT_EQ(parted(one.hidden, {text.substr(0, first), text.substr(first, second - first), text.substr(second)}),
                  one.reported)
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
}  // namespace quire::api::visible_text_test
