#include "api/answer/calls/arguments_reader.h"

#include "api/answer/calls/literal_reader.h"
#include "api/answer/calls/tagged_reader.h"
#include "api/answer/parts/json_walker.h"
#include "core/base/check.h"

namespace quire::api::chat {
namespace {

class JsonReader final : public ArgumentsReader {
 public:
  ArgumentsState take(char c, std::string& json) override {
    if (!walker_.push(c)) return ArgumentsState::kFault;
    json += c;
    return walker_.complete() ? ArgumentsState::kDone : ArgumentsState::kMore;
  }

 private:
  JsonWalker walker_;
};

}  // namespace

std::unique_ptr<ArgumentsReader> make_arguments_reader(const CallSyntax& syntax, const CallableTool& tool) {
  if (syntax.style == CallStyle::kJson) return std::make_unique<JsonReader>();
  if (syntax.style == CallStyle::kTagged) return std::make_unique<TaggedReader>(syntax, tool);
  CHECK(syntax.style == CallStyle::kLiterals);
  const ParameterSyntax& parameter = syntax.parameter;
  return std::make_unique<LiteralReader>(syntax.close.front(), parameter.key_end.front(), parameter.quote);
}

}  // namespace quire::api::chat
