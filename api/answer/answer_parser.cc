#include "api/answer/answer_parser.h"

#include <utility>

namespace quire::api::chat {

std::optional<Marks> marks_of(ReasoningFormat form) {
  switch (form) {
    case ReasoningFormat::kThinkTags:
      return Marks{"<think>", "</think>"};
    case ReasoningFormat::kMistral:
      return Marks{"[THINK]", "[/THINK]"};
    case ReasoningFormat::kNone:
      break;
  }
  return std::nullopt;
}

AnswerParser::AnswerParser(const AnswerFormat& form)
    : form_(form),
      marks_(marks_of(form.reasoning)),
      calls_(make_call_parser(form.calls, form.tools)),
      state_(!marks_             ? State::kAnswer
             : form.in_reasoning ? State::kReasoning
                                 : State::kBegin) {
  if (marks_) end_.emplace(marks_->end, /*skip_space=*/true);
}

void AnswerParser::push(std::string_view text, Deltas& out) {
  for (const char c : text) take(c);
  emit(out);
}

void AnswerParser::finish(Deltas& out) {
  if (state_ == State::kBegin) take_answer(std::exchange(begun_, {}));
  if (state_ == State::kReasoning) {
    std::string rest;
    end_->finish(rest);
    said_.add(Delta::Kind::kReasoning, rest);
  }
  calls_->finish(said_);
  emit(out);
}

void AnswerParser::take(char c) {
  switch (state_) {
    case State::kBegin:
      return take_begin(c);
    case State::kReasoning: {
      std::string text;
      const bool ended = end_->take(c, text);
      said_.add(Delta::Kind::kReasoning, text);
      if (ended) state_ = State::kBehindReasoning;
      return;
    }
    case State::kBehindReasoning:
      if (is_space(c)) return;
      state_ = State::kAnswer;
      [[fallthrough]];
    case State::kAnswer:
      return calls_->take(c, said_);
  }
}

void AnswerParser::take_begin(char c) {
  begun_ += c;
  if (c == marks_->begin[matched_]) {
    if (++matched_ == marks_->begin.size()) state_ = State::kReasoning;
    return;
  }
  if (matched_ == 0 && is_space(c)) return;
  state_ = State::kAnswer;
  take_answer(std::exchange(begun_, {}));
}

void AnswerParser::take_answer(std::string_view text) {
  for (const char c : text) calls_->take(c, said_);
}

void AnswerParser::emit(Deltas& out) {
  for (const Delta& delta : said_.all()) {
    if (delta.kind == Delta::Kind::kReasoning && !form_.include_reasoning) continue;
    if (delta.kind == Delta::Kind::kContent && form_.only_calls) continue;
    const bool of_call = delta.kind == Delta::Kind::kCall || delta.kind == Delta::Kind::kArguments;
    if (of_call && delta.call >= form_.max_calls) continue;
    out.add(delta.kind, delta.text, delta.call);
  }
  said_.clear();
}

}  // namespace quire::api::chat
