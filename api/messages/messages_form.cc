#include "api/messages/messages_form.h"

#include <cstdint>
#include <utility>

#include "api/http/headers.h"
#include "api/http/sse_writer.h"
#include "api/openai/errors.h"
#include "api/openai/fields/read_body.h"

namespace quire::api::messages {

using openai::AnswerFacts;
using openai::Piece;
using openai::Usage;

Result<Done> MessagesForm::read(const std::string& body) {
  Result<MessagesRequest> parsed = parse_messages_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> MessagesForm::prompts(Allowance& allowance) {
  Result<std::vector<std::vector<TokenId>>> prompts = turn_.begin(request_, allowance);
  if (prompts && request_.stream) parser_.emplace(turn_.parser());
  return prompts;
}

void MessagesForm::append_piece(std::string& events, const AnswerFacts& facts, const Piece& piece) {
  BlockEvents blocks(turn_, facts, events);
  if (piece.first) blocks.start({piece.prompt.num_tokens, 0, piece.cached_tokens});
  chat::Deltas deltas;
  parser_->push(piece.text, deltas);
  if (piece.finish_reason != nullptr) parser_->finish(deltas);
  items_.take(deltas, blocks);
  if (piece.finish_reason == nullptr) return;
  items_.finish(blocks);
  ending_ = ending_of(piece, items_.all());
}

void MessagesForm::append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) {
  BlockEvents(turn_, facts, events).stop(ending_, usage);
}

void MessagesForm::append_error(std::string& events, const AnswerFacts&, const Error& error) {
  http::append_event(events, "error", openai::error_json(error, error_shape()));
}

openai::Writing MessagesForm::write_whole(std::string& out, const AnswerFacts& facts, std::span<const Piece> pieces,
                                          Usage usage) {
  const Piece& piece = pieces.front();
  const std::vector<chat::AnswerItem> items = turn_.items_of(piece.text);
  openai::JsonWriter json(out);
  append_message(json, turn_, facts, items, ending_of(piece, items), usage);
  return {};
}

std::unique_ptr<openai::Generation> converse(const Services& services, http::Request request) {
  return std::make_unique<openai::Generation>(services, std::move(request), std::make_unique<MessagesForm>(services));
}

http::Response count_tokens(const Services& services, const std::string& body, Allowance& allowance) {
  constexpr auto kShape = openai::ErrorShape::kAnthropic;
  const Result<MessagesRequest> request = parse_count_request(body, services);
  if (!request) return openai::error_response(request.error(), kShape);
  const Result<chat::TokenPrompt> prompt = chat::prompt_of(*request, services, allowance, chat::AnyLength::kYes);
  if (!prompt) return openai::error_response(prompt.error(), kShape);

  http::Response response;
  openai::JsonWriter json(response.body);
  json.begin_object().key("input_tokens").number(std::uint64_t{prompt->ids.size()}).end_object();
  std::string warnings = openai::warnings_of(*request);
  if (!warnings.empty()) response.fields.push_back({http::kWarningsHeader, std::move(warnings)});
  return response;
}

}  // namespace quire::api::messages
