#include "api/openai/fields/markdown.h"

#include <string_view>

namespace quire::api::openai {
namespace {

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string line(const Field& field) {
  const std::string type = json_type(field);
  std::string range = range_text(field, RequestLimits{});
  if (type == "boolean" && std::holds_alternative<Flag>(field.kind)) range.clear();
  return "| `" + std::string(field.name) + "` | " + cell(type) + " | " + cell(range) + " | " + cell(field.fallback) +
         " | " + cell(field.help) + " | " + cell(field.test) + " |\n";
}

}  // namespace

std::string fields_markdown(Endpoint endpoint, std::span<const Field> own) {
  std::string out =
      "| field | type | range | default | what it does | test |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const std::span<const Field> fields : {own, shared_fields()}) {
    for (const Field& field : fields) {
      bool hidden = false;
      for (const Field& one : own) hidden = hidden || (&one != &field && std::string_view(one.name) == field.name);
      if ((field.endpoints & endpoint) != 0 && !hidden) out += line(field);
    }
  }
  return out;
}

}  // namespace quire::api::openai
