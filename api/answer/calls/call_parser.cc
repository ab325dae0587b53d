#include "api/answer/calls/call_parser.h"

#include "api/answer/calls/functionary_calls.h"
#include "api/answer/calls/marked_calls.h"
#include "core/base/check.h"

namespace quire::api::chat {
namespace {

class NoCalls final : public CallParser {
 public:
  void take(char c, Deltas& out) override { out.add(Delta::Kind::kContent, {&c, 1}); }
  void finish(Deltas&) override {}
};

}  // namespace

std::unique_ptr<CallParser> make_call_parser(CallFormat format, std::span<const CallableTool> tools) {
  if (format == CallFormat::kNone) return std::make_unique<NoCalls>();
  if (format == CallFormat::kFunctionary) return std::make_unique<FunctionaryCalls>(tools);
  CHECK(format != CallFormat::kHarmony);
  return std::make_unique<MarkedCalls>(syntax_of(format), tools);
}

}  // namespace quire::api::chat
