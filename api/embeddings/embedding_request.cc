#include "api/embeddings/embedding_request.h"

#include <simdjson.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/fields/neutral.h"
#include "api/fields/read_body.h"
#include "api/fields/settle.h"
#include "api/json/json_values.h"

namespace quire::api {
namespace {

using simdjson::dom::element;

Result<Done> read_input(const std::string& name, element value, const Services& services, EmbeddingRequest& request) {
  Result<std::vector<Prompt>> inputs = prompts_of(name, value, services, services.limits.max_inputs);
  if (!inputs) return inputs.error();
  const auto is_empty_text = [](const Prompt& input) {
    const auto* text = std::get_if<std::string>(&input);
    return text != nullptr && text->empty();
  };
  if (std::any_of(inputs->begin(), inputs->end(), is_empty_text)) {
    return invalid(name, name + " must not be empty or contain an empty text");
  }
  request.inputs = std::move(*inputs);
  return Done{};
}

// True if the field is `second`, false if it is `first`; any other value is refused.
Result<bool> is_second(const std::string& name, element value, std::string_view first, std::string_view second) {
  std::string_view word;
  if (value.get_string().get(word) == simdjson::SUCCESS && (word == first || word == second)) return word == second;
  return invalid(name, name + " must be \"" + std::string(first) + "\" or \"" + std::string(second) + "\"");
}

Result<Done> read_encoding(const std::string& name, element value, const Services&, EmbeddingRequest& request) {
  const Result<bool> base64 = is_second(name, value, "float", "base64");
  if (!base64) return base64.error();
  request.base64 = *base64;
  return Done{};
}

Result<Done> read_pooling(const std::string& name, element value, const Services&, EmbeddingRequest& request) {
  const Result<bool> mean = is_second(name, value, "last", "mean");
  if (!mean) return mean.error();
  request.pooling = *mean ? flow::Pooling::kMean : flow::Pooling::kLast;
  return Done{};
}

Result<Done> read_dimensions(const std::string& name, element value, const Services& services,
                             EmbeddingRequest& request) {
  const Result<std::int64_t> dimensions = integer_of(name, value, 1, services.hidden_size);
  if (!dimensions) return dimensions.error();
  request.dimensions = static_cast<std::uint32_t>(*dimensions);
  return Done{};
}

Result<Done> read_normalize(const std::string& name, element value, const Services&, EmbeddingRequest& request) {
  const Result<bool> normalize = boolean_of(name, value);
  if (!normalize) return normalize.error();
  request.normalize = *normalize;
  return Done{};
}

bool is_one_of(element value, std::string_view first, std::string_view second) {
  std::string_view word;
  return value.get_string().get(word) == simdjson::SUCCESS && (word == first || word == second);
}
bool is_float32(element value) { return is_one_of(value, "float32", "float32"); }
bool is_little(element value) { return is_one_of(value, "native", "little"); }

template <Result<Done> (*kRead)(const std::string&, element, const Services&, EmbeddingRequest&)>
constexpr auto kOwnReader = read_own<EmbeddingRequest, kRead>;

// clang-format off
constexpr Field kOwn[] = {
    {"input", kEmbeddings, Shaped{"string|[string]|[integer]|[[integer]]", kInputsRange, kOwnReader<read_input>}, "required", "the inputs; each becomes one vector; no text may be empty", "wire/test_embeddings.py"},
    {"encoding_format", kEmbeddings, Shaped{"string", "`float`, `base64`", kOwnReader<read_encoding>}, "float", "`float`: a list of numbers; `base64`: their bytes as float32, little endian", "wire/test_embeddings.py"},
    {"dimensions", kEmbeddings, Shaped{"integer", "1 to the model's hidden size", kOwnReader<read_dimensions>}, "all", "only this many first numbers of the vector, for models that were trained for it", "api/embeddings/embedding_request_test.cc"},
    {"pooling", kEmbeddings, Shaped{"string", "`last`, `mean`", kOwnReader<read_pooling>}, "last", "the last token's hidden state, or the mean of all; a mean does not read the prefix cache", "golden/test_embeddings_against_transformers.py"},
    {"normalize", kEmbeddings, Shaped{"boolean", "true or false", kOwnReader<read_normalize>}, "true", "divide by the vector's length, after `dimensions`", "golden/test_embeddings_against_transformers.py"},
    {"messages", kEmbeddings, Neutral{"[ChatMessage]", "null", is_never}, "none", "not supported: render the messages and send the text as `input`", "api/embeddings/embedding_request_test.cc"},
    {"embed_dtype", kEmbeddings, Neutral{"string", "\"float32\"", is_float32}, "float32", "no other value is supported", "api/embeddings/embedding_request_test.cc"},
    {"endianness", kEmbeddings, Neutral{"string", "\"native\" or \"little\"", is_little}, "little", "no other value is supported", "api/embeddings/embedding_request_test.cc"},
};
// clang-format on

}  // namespace

std::span<const Field> embedding_fields() { return kOwn; }

Result<EmbeddingRequest> parse_embedding_request(const std::string& body, const Services& services) {
  EmbeddingRequest request;
  request.prompt_field = "input";
  request.pooling = flow::Pooling::kLast;
  request.max_tokens = 0;
  const Result<Given> given = read_body(body, kEmbeddings, kOwn, services, request);
  if (!given) return given.error();
  if (request.inputs.empty()) return invalid("input", "input is missing");
  if (Result<Done> settled = settle(request, request.inputs.size(), services, *given); !settled) {
    return settled.error();
  }
  return request;
}

}  // namespace quire::api
