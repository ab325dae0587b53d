#include "api/embeddings/embedding_formatter.h"

#include <utility>

#include "api/embeddings/vector.h"
#include "api/generation/envelope.h"
#include "api/json/response_writer.h"
#include "api/sequences/encode.h"

namespace quire::api {
namespace {

constexpr Envelope kEmbeddingEnvelope{"embd-", "list"};

}  // namespace

Result<Done> EmbeddingFormatter::read(const std::string& body) {
  Result<EmbeddingRequest> parsed = parse_embedding_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> EmbeddingFormatter::prompts(Allowance& allowance) {
  std::vector<std::vector<TokenId>> all;
  for (Prompt& input : request_.inputs) {
    if (auto* const given = std::get_if<std::vector<TokenId>>(&input)) {
      all.push_back(std::move(*given));
      continue;
    }
    Result<std::vector<TokenId>> ids = encode_prompt(std::get<std::string>(input), request_, services_, allowance);
    if (!ids) return ids.error();
    all.push_back(std::move(*ids));
  }
  request_.inputs.clear();
  return all;
}

Writing EmbeddingFormatter::write_whole(std::string& out, const AnswerFacts& facts,
                                        std::span<const ChoiceDelta> choice_deltas, Usage usage) {
  append_head(out, kEmbeddingEnvelope, facts);
  out += ",\"data\":[";
  for (const ChoiceDelta& delta : choice_deltas) {
    if (delta.index != 0) out += ',';
    append_vector(out, delta);
    co_await part_end(out);
  }
  out += ']';
  append_usage(out, usage);
  out += '}';
}

void EmbeddingFormatter::append_vector(std::string& json, const ChoiceDelta& delta) const {
  const std::vector<float> vector =
      vector_of(*delta.prompt.embedding, request_.dimensions.value_or(services_.hidden_size), request_.normalize);
  JsonWriter writer(json);
  writer.begin_object().key("object").text("embedding").key("index").number(std::uint64_t{delta.index});
  writer.key("embedding");
  if (request_.base64) {
    writer.text(base64_of(vector));
  } else {
    writer.begin_array();
    for (const float number : vector) writer.number(number);
    writer.end_array();
  }
  writer.end_object();
}

std::unique_ptr<Generation> embed(const Services& services, http::Request request) {
  return std::make_unique<Generation>(services, std::move(request), std::make_unique<EmbeddingFormatter>(services));
}

}  // namespace quire::api
