// How a template fails inside core/chat; Template turns it into a Result at its door.
// Shape   line 0: not known yet. The parser and the Renderer fill in the line of what they work on.
// Fails   thrown, and never past Template::parse() and Template::render().
#pragma once

#include <string>
#include <utility>

namespace quire::chat {

struct TemplateError {
  std::string message;
  int line = 0;
};

// The work is wanted no more, or has taken all its time.
struct RenderingStopped {};

[[noreturn]] inline void fail(std::string message, int line = 0) { throw TemplateError{std::move(message), line}; }

}  // namespace quire::chat
