#include "api/responses/responses_form.h"

#include <algorithm>
#include <utility>

namespace quire::api::responses {

using chat::AnswerItem;
using openai::AnswerFacts;
using openai::Piece;
using openai::Usage;

namespace {

// Of an answer that nobody streams: its messages take their tokens.
class Taker final : public chat::ItemEvents {
 public:
  explicit Taker(MessageTokens& tokens) : tokens_(tokens) {}
  void begin(const AnswerItem&) override {}
  void more(const AnswerItem& item, std::string_view text) override {
    if (item.kind == AnswerItem::Kind::kContent) tokens_.take(item.index, text);
  }
  void end(const AnswerItem&) override {}

 private:
  MessageTokens& tokens_;
};

}  // namespace

Result<Done> ResponsesForm::read(const std::string& body) {
  Result<ResponsesRequest> parsed = parse_responses_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> ResponsesForm::prompts(Allowance& allowance) {
  Result<std::vector<std::vector<TokenId>>> prompts = turn_.begin(request_, allowance);
  if (prompts && request_.stream) parser_.emplace(turn_.parser());
  return prompts;
}

// ---- a stream

void ResponsesForm::open(std::string& events, const AnswerFacts& facts) {
  events_.write_to(events, facts);
  if (std::exchange(opened_, true)) return;
  events_.response("response.created", {});
  events_.response("response.in_progress", {});
}

void ResponsesForm::append_piece(std::string& events, const AnswerFacts& facts, const Piece& piece) {
  open(events, facts);
  items_.take(deltas_of(*parser_, piece), events_);
  if (piece.finish_reason == nullptr) return;
  status_ = status_of(piece.finish_reason);
  events_.ends_as(status_ == "completed" ? "completed" : "incomplete");
  items_.finish(events_);
}

void ResponsesForm::append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) {
  open(events, facts);
  const ResponseUsage used = usage_of(usage, items_.all());
  events_.response(status_ == "completed" ? "response.completed" : "response.incomplete",
                   {.status = status_, .items = items_.all(), .usage = &used});
}

void ResponsesForm::append_error(std::string& events, const AnswerFacts& facts, const Error& error) {
  open(events, facts);
  events_.response("response.failed", {.status = "failed", .items = items_.all(), .error = &error});
}

chat::Deltas ResponsesForm::deltas_of(chat::AnswerParser& parser, const Piece& piece) {
  chat::Deltas deltas;
  const bool last = piece.finish_reason != nullptr;
  if (request_.logprobs) {
    tokens_.add(piece.tokens);
    tokens_.push(parser, piece.text, deltas);
    if (last) tokens_.finish(parser, deltas);
  } else {
    parser.push(piece.text, deltas);
    if (last) parser.finish(deltas);
  }
  return deltas;
}

// ---- or one body

openai::Writing ResponsesForm::write_whole(std::string& out, const AnswerFacts& facts, std::span<const Piece> pieces,
                                           Usage usage) {
  const Piece& piece = pieces.front();
  chat::AnswerParser parser = turn_.parser();
  Taker taker(tokens_);
  items_.take(deltas_of(parser, piece), taker);
  items_.finish(taker);
  const std::vector<AnswerItem>& items = items_.all();
  const ResponseUsage used = usage_of(usage, items);
  openai::JsonWriter json(out);
  object_.append(json, facts, {.status = status_of(piece.finish_reason), .items = items, .usage = &used});
  return {};
}

// Of reasoning its text is known, and not which tokens spelled it: those that spell it now are counted.
ResponseUsage ResponsesForm::usage_of(const Usage& usage, std::span<const AnswerItem> items) const {
  ResponseUsage used{usage, 0};
  for (const AnswerItem& item : items) {
    if (item.kind != AnswerItem::Kind::kReasoning) continue;
    used.reasoning_tokens += services_.tokenizer->encode(item.text, false).size();
  }
  used.reasoning_tokens = std::min(used.reasoning_tokens, usage.completion_tokens);
  return used;
}

std::unique_ptr<openai::Generation> respond(const Services& services, http::Request request) {
  return std::make_unique<openai::Generation>(services, std::move(request), std::make_unique<ResponsesForm>(services));
}

}  // namespace quire::api::responses
