#include "api/chat/answer/call_parser.h"

#include "api/chat/answer/hermes_calls.h"
#include "api/chat/answer/llama_calls.h"
#include "api/chat/answer/mistral_calls.h"

namespace quire::api::chat {
namespace {

constexpr std::string_view kHermes[] = {"<tool_call>", "</tool_call>"};
constexpr std::string_view kLlama[] = {"<|python_tag|>"};
constexpr std::string_view kMistral[] = {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"};

class NoCalls final : public CallParser {
 public:
  void take(char c, Deltas& out) override { out.add(Delta::Kind::kContent, {&c, 1}); }
  void finish(Deltas&) override {}
};

}  // namespace

std::span<const std::string_view> marks_of(CallForm form) {
  switch (form) {
    case CallForm::kHermes:
    case CallForm::kGeneric:
      return kHermes;
    case CallForm::kLlamaJson:
      return kLlama;
    case CallForm::kMistral:
      return kMistral;
    case CallForm::kNone:
      break;
  }
  return {};
}

std::unique_ptr<CallParser> make_call_parser(CallForm form, std::span<const std::string> tools) {
  switch (form) {
    case CallForm::kHermes:
    case CallForm::kGeneric:
      return std::make_unique<HermesCalls>(tools);
    case CallForm::kLlamaJson:
      return std::make_unique<LlamaCalls>(tools);
    case CallForm::kMistral:
      return std::make_unique<MistralCalls>(tools);
    case CallForm::kNone:
      break;
  }
  return std::make_unique<NoCalls>();
}

}  // namespace quire::api::chat
