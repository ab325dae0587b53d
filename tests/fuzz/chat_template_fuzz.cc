// Any bytes as a chat template, rendered with a conversation: the first byte picks the limits.
// Holds   it ends: a text within its limit, or an error that says something. What is rendered is UTF-8.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/base/json.h"
#include "core/chat/template.h"
#include "core/text/unicode/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using quire::chat::Template;
  static const quire::json::Object variables =
      quire::json::parse(
          R"({"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "h\u00e9 \ud83d\ude42"},
                             {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, null]}}}]}],
                             "tools": [{"type": "function"}], "add_generation_prompt": true, "s": " a b ", "i": 3,
                             "x": 1.5})",
          128)
          ->get_object();
  if (size == 0) return 0;
  quire::chat::Limits limits;
  limits.max_steps = data[0] % 2 == 0 ? 100 : 100'000;
  limits.max_output_bytes = data[0] % 4 < 2 ? 1000 : 100'000;
  const auto parsed = Template::parse(std::string_view(reinterpret_cast<const char*>(data + 1), size - 1));
  if (!parsed) {
    CHECK(!parsed.error().message.empty());
    return 0;
  }
  const auto text = parsed->render(variables, std::tm{}, limits);
  if (text.ok()) {
    CHECK_LE(text->size(), limits.max_output_bytes);
    CHECK(quire::text::is_utf8(*text));
  } else {
    CHECK(!text.error().message.empty());
  }
  return 0;
}
