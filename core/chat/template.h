// A model's chat template: Jinja source, parsed once, rendered with a conversation as its variables.
// Shape   the rendered bytes equal those of transformers' apply_chat_template (jinja2's immutable sandbox, trim_blocks,
//         lstrip_blocks, loop controls, raise_exception, strftime_now, tojson); an unsupported construct is an error.
//         One rule is ours: a message's null content is none in every test, but an empty text where Python would print
//         the word None or fail, since no model was trained on that word.
// Owner   the caller; copies share the parsed tree.
// Thread  any: a Template is immutable.
// Fails   parse(): kInvalidArgument naming line and construct. render(): kInvalidArgument with the message of
//         raise_exception, if jinja2 raises, at a limit, and for an unsupported construct that is reached; kTimeout if
//         the allowance has ended.
// Source  jinja2 3.1.6, transformers 5's chat_template_utils.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/base/result.h"
#include "core/chat/budget.h"

namespace quire::chat {

struct Tree;

class Template {
 public:
  static Result<Template> parse(std::string_view source);
  // `now` is the time that strftime_now prints.
  Result<std::string> render(const json::Object& variables, const std::tm& now, const Limits& limits = {},
                             Allowance* allowance = nullptr) const;

 private:
  explicit Template(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}
  std::shared_ptr<const Tree> tree_;
};

}  // namespace quire::chat
