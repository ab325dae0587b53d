#include "api/json/type_text.h"

#include <algorithm>
#include <cstddef>

namespace quire::api {
namespace {

std::string_view plain_name(std::string_view alternative) {
  const char first = alternative.front();
  if (first == '[') return "array";
  if (first == '{' || (first >= 'A' && first <= 'Z')) return "object";
  return first == '\'' ? "string" : alternative;
}

}  // namespace

std::vector<std::string_view> alternatives_of(std::string_view type) {
  std::vector<std::string_view> all;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= type.size(); ++i) {
    if (i == type.size() || (type[i] == '|' && depth == 0)) {
      all.push_back(type.substr(begin, i - begin));
      begin = i + 1;
    } else if (type[i] == '[' || type[i] == '{') {
      ++depth;
    } else if (type[i] == ']' || type[i] == '}') {
      --depth;
    }
  }
  return all;
}

std::string plain_type(std::string_view type) {
  std::vector<std::string_view> names;
  std::string text;
  for (const std::string_view alternative : alternatives_of(type)) {
    const std::string_view name = plain_name(alternative);
    if (std::ranges::find(names, name) != names.end()) continue;
    names.push_back(name);
    text.append(text.empty() ? "" : "|").append(name);
  }
  return text;
}

}  // namespace quire::api
