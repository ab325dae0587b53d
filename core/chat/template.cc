#include "core/chat/template.h"

#include <utility>

#include "core/chat/parser.h"
#include "core/chat/renderer.h"
#include "core/chat/template_error.h"

namespace quire::chat {

struct Tree {
  Block block;
};

namespace {

Error as_error(const TemplateError& error) {
  return invalid("chat_template", "chat template, line " + std::to_string(error.line) + ": " + error.message);
}

}  // namespace

Result<Template> Template::parse(std::string_view source) try {
  return Template(std::make_shared<const Tree>(Tree{parse_template(source)}));
} catch (const TemplateError& error) {
  return as_error(error);
}

Result<std::string> Template::render(const json::Object& variables, const std::tm& now, const Limits& limits,
                                     Allowance* allowance) const try {
  return Renderer(variables, now, limits, allowance).run(tree_->block);
} catch (const RenderingStopped&) {
  return Error{Code::kTimeout, "rendering the chat template takes too long", "", 0};
} catch (const TemplateError& error) {
  return as_error(error);
}

}  // namespace quire::chat
