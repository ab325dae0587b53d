#include "api/answer/answer_items.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace quire::api::chat::answer_items_test {
namespace {

using Kind = Delta::Kind;

// Writes down what it is told: "[" and the kind where an item begins, its text, "]" where it ends.
class Written final : public ItemEvents {
 public:
  void begin(const AnswerItem& item) override {
    EXPECT_TRUE(item.text.empty());
    EXPECT_EQ(item.index, next_++);
    text += item.kind == AnswerItem::Kind::kReasoning ? "[r:" : item.kind == AnswerItem::Kind::kContent ? "[c:" : "[";
    if (item.kind == AnswerItem::Kind::kCall) text += item.name + std::to_string(item.call) + ":";
  }
  void more(const AnswerItem&, std::string_view piece) override { text += piece; }
  void end(const AnswerItem& item) override {
    EXPECT_TRUE(text.ends_with(item.text));
    text += "]";
  }

  std::string text;

 private:
  std::size_t next_ = 0;
};

Deltas deltas_of(std::initializer_list<Delta> all) {
  Deltas deltas;
  for (const Delta& delta : all) deltas.add(delta.kind, delta.text, delta.call);
  return deltas;
}

TEST(AnswerItems, BeginWhereTheKindChangesAndAtEveryCall) {
  Written written;
  AnswerItems items;
  items.take(deltas_of({{Kind::kReasoning, 0, "hm"}, {Kind::kContent, 0, "I "}}), written);
  items.take(deltas_of({{Kind::kContent, 0, "look"}, {Kind::kCall, 0, "look"}, {Kind::kArguments, 0, "{"}}), written);
  items.take(deltas_of({{Kind::kArguments, 0, "}"}, {Kind::kCall, 1, "now"}, {Kind::kArguments, 1, "{}"}}), written);
  items.take(deltas_of({{Kind::kContent, 0, "so"}}), written);
  items.finish(written);
  EXPECT_EQ(written.text, "[r:hm][c:I look][look0:{}][now1:{}][c:so]");
  ASSERT_EQ(items.all().size(), 5u);
  EXPECT_EQ(items.all()[2].text, "{}");
  EXPECT_EQ(items.all()[3].name, "now");
}

TEST(AnswerItems, AreOneContentWithoutTextInAnEmptyAnswer) {
  Written written;
  AnswerItems items;
  items.finish(written);
  EXPECT_EQ(written.text, "[c:]");
}

TEST(AnswerItems, AreReasoningAloneWhereTheAnswerEndsInIt) {
  Written written;
  AnswerItems items;
  items.take(deltas_of({{Kind::kReasoning, 0, "hm"}}), written);
  items.finish(written);
  EXPECT_EQ(written.text, "[r:hm]");
}

}  // namespace
}  // namespace quire::api::chat::answer_items_test
