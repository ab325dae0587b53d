#include "api/messages/messages_formatter.h"

#include <cstdint>
#include <utility>

#include "api/fields/read_body.h"
#include "api/wire/errors.h"
#include "api/wire/headers.h"
#include "api/wire/sse_writer.h"

namespace quire::api::messages {

Result<Done> MessagesFormatter::read(const std::string& body) {
  Result<MessagesRequest> parsed = parse_messages_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> MessagesFormatter::prompts(Allowance& allowance) {
  Result<std::vector<std::vector<TokenId>>> prompts = assistant_.begin(request_, allowance);
  if (prompts && request_.stream) parser_.emplace(assistant_.parser());
  return prompts;
}

void MessagesFormatter::append_delta(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta) {
  BlockEvents blocks(assistant_, facts, events);
  if (delta.first) blocks.start({delta.prompt.num_tokens, 0, delta.cached_tokens});
  chat::Deltas deltas;
  parser_->push(delta.text, deltas);
  if (delta.finish_reason != nullptr) parser_->finish(deltas);
  items_.take(deltas, blocks);
  if (delta.finish_reason == nullptr) return;
  items_.finish(blocks);
  ending_ = ending_of(delta, items_.all());
}

void MessagesFormatter::append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) {
  BlockEvents(assistant_, facts, events).stop(ending_, usage);
}

void MessagesFormatter::append_error(std::string& events, const AnswerFacts&, const Error& error) {
  http::append_event(events, "error", error_json(error, error_shape()));
}

Writing MessagesFormatter::write_whole(std::string& out, const AnswerFacts& facts,
                                       std::span<const ChoiceDelta> choice_deltas, Usage usage) {
  const ChoiceDelta& delta = choice_deltas.front();
  const std::vector<chat::AnswerItem> items = assistant_.items_of(delta.text);
  JsonWriter json(out);
  append_message(json, assistant_, facts, items, ending_of(delta, items), usage);
  return {};
}

std::unique_ptr<Generation> converse(const Services& services, http::Request request) {
  return std::make_unique<Generation>(services, std::move(request), std::make_unique<MessagesFormatter>(services));
}

http::Response count_tokens(const Services& services, const std::string& body, Allowance& allowance) {
  constexpr auto kShape = ErrorShape::kAnthropic;
  const Result<MessagesRequest> request = parse_count_request(body, services);
  if (!request) return error_response(request.error(), kShape);
  const Result<chat::TokenPrompt> prompt = chat::prompt_of(*request, services, allowance, chat::AnyLength::kYes);
  if (!prompt) return error_response(prompt.error(), kShape);

  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().key("input_tokens").number(std::uint64_t{prompt->ids.size()}).end_object();
  std::string warnings = warnings_of(*request);
  if (!warnings.empty()) response.fields.push_back({http::kWarningsHeader, std::move(warnings)});
  return response;
}

}  // namespace quire::api::messages
