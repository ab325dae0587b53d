// Which tokens of an answer spell its messages, and with what log probabilities: of reasoning, calls and marks nothing is told.
// Shape   a token is told with the first piece of a message's text that it has a character of; where several tokens spell one character,
//         all of them are. push() and take() go in step: what a parser gave out of content is taken, in that order, by the items.
// Owner   the form of one answer.
// Thread  one at a time.
// Source  ours: OpenAI tells log probabilities of output_text alone, and does not say how it parts them from the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/chat/answer/answer_parser.h"
#include "api/chat/answer/answer_parts.h"
#include "api/openai/generation/choice.h"

namespace quire::api::responses {

class MessageTokens {
 public:
  // The next ones that were said.
  void add(const openai::SaidTokens& tokens);
  // As parser.push(text, out) and parser.finish(out), with an eye on where content comes from.
  void push(chat::AnswerParser& parser, std::string_view text, chat::Deltas& out);
  void finish(chat::AnswerParser& parser, chat::Deltas& out);

  // `text` is the next piece of the item's: the tokens that it is told with. Until the next call.
  openai::SaidTokens take(std::size_t item, std::string_view text);
  openai::SaidTokens of(std::size_t item) const;  // all that were taken

 private:
  struct Run {
    std::vector<openai::SaidToken> tokens;
    std::vector<flow::Candidate> top;
  };
  void place(const chat::Deltas& deltas, chat::Deltas& out);
  void find(std::string_view content);
  static openai::SaidTokens view(const Run& run, std::size_t first, std::size_t num_top);

  std::deque<openai::SaidToken> tokens_;  // said, and not yet told or passed over
  std::deque<flow::Candidate> top_;       // [tokens_, num_top_]
  std::size_t num_top_ = 0;

  std::uint32_t position_ = 0;            // of the next character of the answer, in code points
  std::string unplaced_;                  // what the parser took and did not give out, or gave out as something else
  std::vector<std::uint32_t> positions_;  // [unplaced_] of each byte's character
  std::deque<std::uint32_t> content_;     // positions of the content that no item has taken yet
  std::map<std::size_t, Run> runs_;       // by item
};

}  // namespace quire::api::responses
