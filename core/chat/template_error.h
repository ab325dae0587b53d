// Error of a template inside core/chat; Template::parse() and Template::render() turn it into a Result.
// Shape   line 0: not known yet; the parser and the Renderer fill in the line of their node.
// Fails   thrown; never leaves Template::parse() and Template::render().
#pragma once

#include <string>
#include <utility>

namespace quire::chat {

struct TemplateError {
  std::string message;
  int line = 0;
};

// Thrown if the allowance has ended: the result is no longer wanted, or the time is used up.
struct RenderingStopped {};

[[noreturn]] inline void fail(std::string message, int line = 0) { throw TemplateError{std::move(message), line}; }

}  // namespace quire::chat
