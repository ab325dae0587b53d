#include "api/answer/answer_items.h"

#include <utility>

namespace quire::api::chat {
namespace {

using Kind = AnswerItem::Kind;

Kind kind_of(Delta::Kind kind) {
  switch (kind) {
    case Delta::Kind::kReasoning:
      return Kind::kReasoning;
    case Delta::Kind::kContent:
      return Kind::kContent;
    case Delta::Kind::kCall:
    case Delta::Kind::kArguments:
      break;
  }
  return Kind::kCall;
}

}  // namespace

void AnswerItems::take(const Deltas& deltas, ItemEvents& events) {
  for (const Delta& delta : deltas.all()) {
    AnswerItem next{.kind = kind_of(delta.kind), .index = all_.size(), .call = delta.call, .name = {}, .text = {}};
    if (delta.kind == Delta::Kind::kCall) {
      next.name = delta.text;
      begin(std::move(next), events);
      continue;
    }
    if (all_.empty() || all_.back().kind != next.kind) begin(std::move(next), events);
    all_.back().text += delta.text;
    events.more(all_.back(), delta.text);
  }
}

void AnswerItems::begin(AnswerItem item, ItemEvents& events) {
  if (!all_.empty()) events.end(all_.back());
  all_.push_back(std::move(item));
  events.begin(all_.back());
}

void AnswerItems::finish(ItemEvents& events) {
  if (all_.empty()) begin({}, events);
  events.end(all_.back());
}

}  // namespace quire::api::chat
