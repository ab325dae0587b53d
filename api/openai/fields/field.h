// One field of a body as a line of a table: the parser, the checks, docs/api.md and the OpenAPI document are made from it.
// Shape   `kind` is the JSON type, the range, and where the value goes; a Shaped field says the last two in words and
//         reads itself. `fallback` is the default as people read it. `test` is the test that shows it, below tests/.
// Owner   constant tables. Thread  any.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

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
inline constexpr unsigned kReading = kGenerating | kEmbeddings;  // a prompt

using Limit = std::uint32_t RequestLimits::*;

struct Flag {
  bool GenerationRequest::*member;
};
struct Integer {
  std::int64_t lowest;
  std::int64_t highest;
  void (*set)(GenerationRequest&, std::int64_t);
  Limit limit = nullptr;  // of the server's, and the highest then
};
struct Number {
  double lowest;
  double highest;
  bool above;  // the lowest itself is out, as f32, too
  void (*set)(GenerationRequest&, double);
};
struct Text {  // not empty
  Limit max_bytes;
  std::string GenerationRequest::*member;  // null: checked, and of no effect
};
// A field that reads itself. `json` is its type in a JSON Schema: "array", "object", "string|array".
struct Shaped {
  const char* json;
  const char* range;
  Result<Done> (*read)(const std::string& path, simdjson::dom::element, const Services&, GenerationRequest&);
};
// Known to OpenAI or vLLM and not supported: accepted where it changes nothing, else refused.
struct Neutral {
  const char* json;
  const char* range;
  bool (*is_neutral)(simdjson::dom::element);
};

// Known to OpenAI or vLLM, and changes no answer: accepted, and named in X-Quire-Warnings where it asks for something.
struct Hint {
  const char* json;
  bool (*is_neutral)(simdjson::dom::element) = nullptr;  // asks for what is done anyway; null: never
};

struct Field {
  const char* name;
  unsigned endpoints;
  std::variant<Flag, Integer, Number, Text, Shaped, Neutral, Hint> kind;
  const char* fallback;  // "" where there is nothing to say
  const char* help;      // with the unit
  const char* test;
};

// Those of more than one endpoint, and those that only one has and anyone could.
std::span<const Field> shared_fields();

// Fields of the endpoint's own request (`Own` derives from GenerationRequest) read themselves through this.
template <typename Own, Result<Done> (*kRead)(const std::string&, simdjson::dom::element, const Services&, Own&)>
Result<Done> read_own(const std::string& path, simdjson::dom::element value, const Services& services,
                      GenerationRequest& request) {
  return kRead(path, value, services, static_cast<Own&>(request));
}

// The range of a field in words: "0 .. 2", "up to 128 bytes".
std::string range_text(const Field& field, const RequestLimits& limits);
// "integer", "number", "string", "boolean", or what a Shaped one says.
std::string json_type(const Field& field);

}  // namespace quire::api::openai
