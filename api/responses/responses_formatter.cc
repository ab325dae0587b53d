#include "api/responses/responses_formatter.h"

#include <algorithm>
#include <utility>

namespace quire::api::responses {

using chat::AnswerItem;

namespace {

// Takes the tokens of each message of an answer that is not streamed; writes no events.
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

Result<Done> ResponsesFormatter::read(const std::string& body) {
  Result<ResponsesRequest> parsed = parse_responses_request(body, services_);
  if (!parsed) return parsed.error();
  request_ = std::move(*parsed);
  return Done{};
}

Result<std::vector<std::vector<TokenId>>> ResponsesFormatter::prompts(Allowance& allowance) {
  Result<std::vector<std::vector<TokenId>>> prompts = assistant_.begin(request_, allowance);
  if (prompts && request_.stream) parser_.emplace(assistant_.parser());
  return prompts;
}

// ---- a stream

void ResponsesFormatter::open(std::string& events, const AnswerFacts& facts) {
  events_.write_to(events, facts);
  if (std::exchange(opened_, true)) return;
  events_.response("response.created", {});
  events_.response("response.in_progress", {});
}

void ResponsesFormatter::append_delta(std::string& events, const AnswerFacts& facts, const ChoiceDelta& delta) {
  open(events, facts);
  items_.take(deltas_of(*parser_, delta), events_);
  if (delta.finish_reason == nullptr) return;
  status_ = status_of(delta.finish_reason);
  events_.ends_as(status_ == "completed" ? "completed" : "incomplete");
  items_.finish(events_);
}

void ResponsesFormatter::append_end(std::string& events, const AnswerFacts& facts, const Usage& usage) {
  open(events, facts);
  const ResponseUsage used = usage_of(usage, items_.all());
  events_.response(status_ == "completed" ? "response.completed" : "response.incomplete",
                   {.status = status_, .items = items_.all(), .usage = &used});
}

void ResponsesFormatter::append_error(std::string& events, const AnswerFacts& facts, const Error& error) {
  open(events, facts);
  events_.response("response.failed", {.status = "failed", .items = items_.all(), .error = &error});
}

chat::Deltas ResponsesFormatter::deltas_of(chat::AnswerParser& parser, const ChoiceDelta& delta) {
  chat::Deltas deltas;
  const bool last = delta.finish_reason != nullptr;
  if (request_.logprobs) {
    tokens_.add(delta.tokens);
    tokens_.push(parser, delta.text, deltas);
    if (last) tokens_.finish(parser, deltas);
  } else {
    parser.push(delta.text, deltas);
    if (last) parser.finish(deltas);
  }
  return deltas;
}

// ---- or one body

Writing ResponsesFormatter::write_whole(std::string& out, const AnswerFacts& facts,
                                        std::span<const ChoiceDelta> choice_deltas, Usage usage) {
  const ChoiceDelta& delta = choice_deltas.front();
  chat::AnswerParser parser = assistant_.parser();
  Taker taker(tokens_);
  items_.take(deltas_of(parser, delta), taker);
  items_.finish(taker);
  const std::vector<AnswerItem>& items = items_.all();
  const ResponseUsage used = usage_of(usage, items);
  JsonWriter json(out);
  object_.append(json, facts, {.status = status_of(delta.finish_reason), .items = items, .usage = &used});
  return {};
}

// Reasoning tokens are counted by encoding the reasoning's text again, because the tokens that spelled it are not
// recorded.
ResponseUsage ResponsesFormatter::usage_of(const Usage& usage, std::span<const AnswerItem> items) const {
  ResponseUsage used{usage, 0};
  for (const AnswerItem& item : items) {
    if (item.kind != AnswerItem::Kind::kReasoning) continue;
    used.reasoning_tokens += services_.tokenizer->encode(item.text, false).size();
  }
  used.reasoning_tokens = std::min(used.reasoning_tokens, usage.completion_tokens);
  return used;
}

std::unique_ptr<Generation> respond(const Services& services, http::Request request) {
  return std::make_unique<Generation>(services, std::move(request), std::make_unique<ResponsesFormatter>(services));
}

}  // namespace quire::api::responses
