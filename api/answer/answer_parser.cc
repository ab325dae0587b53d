#include "api/answer/answer_parser.h"

#include <utility>
#include <vector>

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxOpening = 128;  // of white space and a mark, so that line breaks are streamed, too

}  // namespace

AnswerParser::AnswerParser(const AnswerFormat& form)
    : form_(form),
      marks_(marks_of(form.reasoning)),
      state_(!marks_             ? State::kAnswer
             : form.in_reasoning ? State::kReasoning
                                 : State::kBegin),
      content_(form.content_marks ? Content::kBegin : Content::kPlain) {
  if (form.reasoning == ReasoningFormat::kHarmony || form.calls == CallFormat::kHarmony) {
    harmony_.emplace(form.calls == CallFormat::kHarmony ? form.tools : std::span<const CallableTool>());
    return;
  }
  calls_ = make_call_parser(form.calls, form.tools);
  const CallSyntax& calls = syntax_of(form.calls);
  if (marks_ && calls.ends_reasoning) {
    end_.emplace(std::vector{marks_->end, calls.begin, calls.other_begins[0], calls.other_begins[1]}, true);
  } else if (marks_) {
    end_.emplace(marks_->end, /*skip_space=*/true);
  }
  if (form.content_marks) closing_.emplace(form.content_marks->end, /*skip_space=*/true);
}

void AnswerParser::push(std::string_view text, Deltas& out) {
  for (const char c : text) take(c);
  emit(out);
}

void AnswerParser::finish(Deltas& out) {
  if (harmony_) {
    harmony_->finish(said_);
    return emit(out);
  }
  if (state_ == State::kBegin) answer_again(std::exchange(begun_, {}));
  std::string rest;
  if (state_ == State::kReasoning) {
    end_->finish(rest);
    said_.add(Delta::Kind::kReasoning, rest);
    rest.clear();
  }
  if (content_ == Content::kBegin) rest = opening_;
  if (content_ == Content::kInside) closing_->finish(rest);
  for (const char c : rest) calls_->take(c, said_);
  calls_->finish(said_);
  emit(out);
}

void AnswerParser::take(char c) {
  if (harmony_) return harmony_->take(c, said_);
  switch (state_) {
    case State::kBegin:
      return take_begin(c);
    case State::kReasoning: {
      std::string text;
      const bool ended = end_->take(c, text);
      said_.add(Delta::Kind::kReasoning, text);
      if (!ended) return;
      state_ = State::kBehindReasoning;
      if (end_->found() != marks_->end) {  // a call
        state_ = State::kAnswer;
        answer_again(end_->found());
      }
      return;
    }
    case State::kBehindReasoning:
      return take_turn(c);
    case State::kAnswer:
      return take_answer(c);
  }
}

void AnswerParser::take_begin(char c) {
  begun_ += c;
  if (c == marks_->begin[matched_]) {
    if (++matched_ < marks_->begin.size()) return;
    state_ = State::kReasoning;
    begun_.clear();
    return;
  }
  if (matched_ == 0 && is_space(c)) return;
  state_ = State::kAnswer;
  answer_again(std::exchange(begun_, {}));
}

void AnswerParser::take_turn(char c) {
  if (begun_.empty() && is_space(c)) return;
  const std::string_view turn = syntax_of(form_.reasoning).turn;
  begun_ += c;
  if (turn.size() > begun_.size() && turn.starts_with(begun_)) return;
  state_ = State::kAnswer;
  const std::string begun = std::exchange(begun_, {});
  if (begun != turn) answer_again(begun);
}

void AnswerParser::answer_again(std::string_view text) {
  for (const char c : text) take_answer(c);
}

void AnswerParser::take_answer(char c) {
  switch (content_) {
    case Content::kPlain:
      return calls_->take(c, said_);
    case Content::kInside: {
      std::string text;
      if (closing_->take(c, text)) content_ = Content::kPlain;
      for (const char one : text) calls_->take(one, said_);
      return;
    }
    case Content::kBegin:
      break;
  }
  opening_ += c;
  const std::string_view begun = trimmed(opening_);
  if (begun == form_.content_marks->begin) {
    content_ = Content::kInside;
  } else if (!form_.content_marks->begin.starts_with(begun) || opening_.size() > kMaxOpening) {
    content_ = Content::kPlain;
    answer_again(std::exchange(opening_, {}));
  }
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
