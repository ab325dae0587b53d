// One field of a body as a row of a table, from which the parser, the checks, docs/api.md and the OpenAPI document are
// made.
// Shape   `kind` is the JSON type, the range and the member that gets the value; a Shaped field has type and range as
//         text and reads itself. `fallback` is the default as text for people. `test` is the test that shows the field,
//         relative to tests/.
// Owner   constant tables.
// Thread  any.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api {

enum Endpoint : unsigned {
  kCompletions = 1,
  kChat = 2,
  kTokenize = 4,
  kDetokenize = 8,
  kResponses = 16,
  kMessages = 32,
  kCountTokens = 64,
  kEmbeddings = 128,
};
inline constexpr unsigned kChoices = kCompletions | kChat;  // the answer is a list of choices
inline constexpr unsigned kOpenAiForms = kChoices | kResponses;
inline constexpr unsigned kGenerating = kOpenAiForms | kMessages;
inline constexpr unsigned kReading = kGenerating | kEmbeddings;  // a prompt is read

using Limit = std::uint32_t RequestLimits::*;

struct Flag {
  bool GenerationRequest::*member;
};
struct Integer {
  std::int64_t lowest;
  std::int64_t highest;
  void (*set)(GenerationRequest&, std::int64_t);
  Limit limit = nullptr;  // the server's limit that replaces `highest`; null: none
};
struct Number {
  double lowest;
  double highest;
  bool above;  // `lowest` itself is out of range, also after rounding to f32
  void (*set)(GenerationRequest&, double);
};
struct Text {  // not empty, unless it has no effect
  Limit max_bytes;
  std::string GenerationRequest::*member;  // null: the length is checked, and the field has no effect
};
// A field that reads itself. `json` is its type as text (api/json/type_text.h): "[integer]", "string|ChatMessage".
struct Shaped {
  const char* json;
  const char* range;
  Result<Done> (*read)(const std::string& path, simdjson::dom::element, const Services&, GenerationRequest&);
};
// A field of OpenAI or vLLM that is not supported: accepted if its value changes nothing, else refused.
struct Neutral {
  const char* json;
  const char* range;
  bool (*is_neutral)(simdjson::dom::element);
};

// A field of OpenAI or vLLM that changes no answer: accepted, and named in X-Quire-Warnings if it asks for something.
struct Hint {
  const char* json;
  bool (*is_neutral)(simdjson::dom::element) = nullptr;  // true: it asks for what is done anyway; null: never true
};

struct Field {
  const char* name;
  unsigned endpoints;
  std::variant<Flag, Integer, Number, Text, Shaped, Neutral, Hint> kind;
  const char* fallback;  // may be ""
  const char* help;      // with the unit
  const char* test;
};

// The fields of several endpoints, and those of one endpoint that others could have.
std::span<const Field> shared_fields();

// Adapter for a Shaped field of an endpoint's own request type: `Own` derives from GenerationRequest.
template <typename Own, Result<Done> (*kRead)(const std::string&, simdjson::dom::element, const Services&, Own&)>
Result<Done> read_own(const std::string& path, simdjson::dom::element value, const Services& services,
                      GenerationRequest& request) {
  return kRead(path, value, services, static_cast<Own&>(request));
}

// The range of a field in words: "0 .. 2", "up to 128 bytes".
std::string range_text(const Field& field, const RequestLimits& limits);
// "integer", "number", "string", "boolean", or the `json` of the field's kind.
std::string_view json_type(const Field& field);

}  // namespace quire::api
