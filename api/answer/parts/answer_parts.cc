#include "api/answer/parts/answer_parts.h"

#include "core/base/check.h"

namespace quire::api::chat {

void Deltas::add(Delta::Kind kind, std::string_view text, std::size_t call) {
  const bool goes_on =
      kind != Delta::Kind::kCall && !all_.empty() && all_.back().kind == kind && all_.back().call == call;
  if (goes_on) {
    all_.back().text += text;
  } else if (!text.empty()) {
    all_.push_back({kind, call, std::string(text)});
  }
}

void AnswerParts::take(const Deltas& deltas) {
  for (const Delta& delta : deltas.all()) {
    switch (delta.kind) {
      case Delta::Kind::kReasoning:
        reasoning += delta.text;
        break;
      case Delta::Kind::kContent:
        content += delta.text;
        break;
      case Delta::Kind::kCall:
        CHECK(delta.call == calls.size());
        calls.push_back({delta.text, ""});
        break;
      case Delta::Kind::kArguments:
        CHECK(delta.call + 1 == calls.size());
        calls.back().arguments += delta.text;
        break;
    }
  }
}

}  // namespace quire::api::chat
