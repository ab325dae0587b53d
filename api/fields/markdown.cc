#include "api/fields/markdown.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "api/json/type_text.h"
#include "api/services/slo_hints.h"
#include "api/wire/headers.h"

namespace quire::api {
namespace {

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string line(const Field& field) {
  const std::string type = plain_type(json_type(field));
  std::string range = range_text(field, RequestLimits{});
  if (type == "boolean" && std::holds_alternative<Flag>(field.kind)) range.clear();
  return "| `" + std::string(field.name) + "` | " + cell(type) + " | " + cell(range) + " | " + cell(field.fallback) +
         " | " + cell(field.help) + " | " + cell(field.test) + " |\n";
}

std::string number(double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed);
  return std::string(digits, end.ptr);
}

std::string range_of(const http::Header& header) {
  if (std::isinf(header.highest)) return "number, " + number(header.lowest) + " and up";
  if (header.highest > 0.0) return "number, " + number(header.lowest) + " to " + number(header.highest);
  if (header.max_bytes == 0) return "text";
  const std::string most = std::to_string(header.max_bytes) + " bytes";
  return header.min_bytes == 0 ? "text, up to " + most : "text, " + std::to_string(header.min_bytes) + " to " + most;
}

std::string paths_of(const http::Header& header) {
  if ((header.paths & http::kEveryPath) != 0) return "every path";
  if ((header.paths & http::kPosts) != 0) return "those with a body";
  if ((header.paths & http::kModels) != 0) return "`/v1/models`";
  if ((header.paths & http::kAnthropicForm) != 0) return "those with answers in Anthropic's shape";
  const bool named = (header.paths & http::kNamedRequests) != 0;
  return named ? "those that generate, `/v1/requests/{id}`" : "those that generate";
}

std::string line(const http::Header& header) {
  return "| `" + std::string(header.name) + "` | " + range_of(header) + " | " + paths_of(header) + " | " +
         cell(header.help) + " |\n";
}

}  // namespace

std::string headers_markdown() {
  std::string out =
      "| header | value | paths | what it does |\n"
      "| --- | --- | --- | --- |\n";
  for (const http::Header& one : http::request_headers()) out += line(one);
  for (const http::Header& one : requests::slo_hint_headers()) out += line(one);
  return out;
}

std::string answer_headers_markdown() {
  std::string out =
      "| header of the answer | value | paths | what it means |\n"
      "| --- | --- | --- | --- |\n";
  for (const http::AnswerHeader& one : http::answer_headers()) out += line(one.header);
  return out;
}

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

}  // namespace quire::api
