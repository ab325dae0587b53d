// A model's chat template: Jinja source read once, rendered with a conversation as its variables.
// Shape   the bytes are those of transformers' apply_chat_template (jinja2's immutable sandbox, trim_blocks,
//         lstrip_blocks, loop controls, raise_exception, strftime_now, tojson) or there are none: what is not supported
//         is refused. One rule is ours: a message's null content is none to every test of the template, and an empty
//         text where Python would print the word None or fail, for no model was taught that word.
// Owner   the caller; copies share the parsed tree.
// Thread  any: a Template never changes.
// Fails   parse(): kInvalidArgument naming line and construct. render(): kInvalidArgument with what raise_exception
//         says, where jinja2 raises, at a limit, and where a construct is reached that is not supported; kTimeout
//         once the allowance has ended.
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
  // `now` is what strftime_now prints.
  Result<std::string> render(const json::Object& variables, const std::tm& now, const Limits& limits = {},
                             Allowance* allowance = nullptr) const;

 private:
  explicit Template(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}
  std::shared_ptr<const Tree> tree_;
};

}  // namespace quire::chat
