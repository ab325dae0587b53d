// Rendering a template in a line, for tests.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/chat/template.h"

namespace quire::chat {

inline std::tm some_day() {  // Friday 2024-07-26 13:20:00
  std::tm now{};
  now.tm_year = 124, now.tm_mon = 6, now.tm_mday = 26, now.tm_hour = 13, now.tm_min = 20, now.tm_wday = 5,
  now.tm_yday = 207;
  return now;
}

// The text, or the error's message.
inline std::string rendered(std::string_view source, std::string_view variables = "{}", const Limits& limits = {}) {
  const Result<Template> parsed = Template::parse(source);
  if (!parsed) return parsed.error().message;
  const Result<std::string> text = parsed->render(json::parse(variables, 128)->get_object(), some_day(), limits);
  return text.ok() ? *text : text.error().message;
}

}  // namespace quire::chat
