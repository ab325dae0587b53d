#include "api/answer/call_parser.h"

#include "api/answer/hermes_calls.h"
#include "api/answer/llama_calls.h"
#include "api/answer/mistral_calls.h"

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

std::span<const std::string_view> marks_of(CallFormat form) {
  switch (form) {
    case CallFormat::kHermes:
    case CallFormat::kGeneric:
      return kHermes;
    case CallFormat::kLlamaJson:
      return kLlama;
    case CallFormat::kMistral:
      return kMistral;
    case CallFormat::kNone:
      break;
  }
  return {};
}

std::unique_ptr<CallParser> make_call_parser(CallFormat form, std::span<const std::string> tools) {
  switch (form) {
    case CallFormat::kHermes:
    case CallFormat::kGeneric:
      return std::make_unique<HermesCalls>(tools);
    case CallFormat::kLlamaJson:
      return std::make_unique<LlamaCalls>(tools);
    case CallFormat::kMistral:
      return std::make_unique<MistralCalls>(tools);
    case CallFormat::kNone:
      break;
  }
  return std::make_unique<NoCalls>();
}

}  // namespace quire::api::chat
