// The tokens, with log probabilities, that spell the messages of an answer. Tokens of reasoning, calls and marks are
// left out.
// Shape   a token is returned with the first delta of a message's text that has a character of it; if several tokens
//         spell one character, all of them are. push() and take() go in step: the content that the parser returns is
//         taken by the items in the same order.
// Owner   the formatter of one answer.
// Thread  one at a time.
// Source  ours: OpenAI returns log probabilities of output_text only, and does not say how tokens of the rest are
//         separated from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/answer_parser.h"
#include "api/answer/parts/answer_parts.h"
#include "api/generation/choice.h"

namespace quire::api::responses {

class MessageTokens {
 public:
  // Adds the next sampled tokens of the answer.
  void add(const AnswerTokens& tokens);
  // The same as parser.push(text, out) and parser.finish(out); also records the positions that content comes from.
  void push(chat::AnswerParser& parser, std::string_view text, chat::Deltas& out);
  void finish(chat::AnswerParser& parser, chat::Deltas& out);

  // Tokens to return with `text`, the next delta of the item. The view is valid until the next take().
  AnswerTokens take(std::size_t item, std::string_view text);
  AnswerTokens of(std::size_t item) const;  // all tokens taken for the item

 private:
  struct Run {
    std::vector<AnswerToken> tokens;
    std::vector<flow::Candidate> top;
  };
  void place(const chat::Deltas& deltas, chat::Deltas& out);
  void find(std::string_view content);
  static AnswerTokens view(const Run& run, std::size_t first, std::size_t num_top);

  std::deque<AnswerToken> tokens_;   // added, and neither taken nor skipped yet
  std::deque<flow::Candidate> top_;  // [tokens_, num_top_]
  std::size_t num_top_ = 0;

  std::uint32_t position_ = 0;            // code points of the answer that were pushed
  std::string unplaced_;                  // text pushed after the last content: held back by the parser, or no content
  std::vector<std::uint32_t> positions_;  // [unplaced_] position of each byte's character
  std::deque<std::uint32_t> content_;     // positions of the content that no item has taken yet
  std::map<std::size_t, Run> runs_;       // by index of the item
};

}  // namespace quire::api::responses
