// The text of one growing answer, token by token, never with half a character in it.
// Shape   push() pieces and finish() joined equal Tokenizer::decode() of all the ids, for output that is UTF-8 as a whole.
// Owner   one per stream; shares the tokenizer.
// Thread  one at a time.
// Fails   never: bytes that cannot become a character come out as U+FFFD, when the next byte proves it or at finish().
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/ids.h"
#include "core/text/tokenizer.h"

namespace quire::text {

class Detokenizer {
 public:
  // `goes_on`: there is text in front already, so the first token keeps the blank that a text's beginning loses.
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens, bool goes_on = false);

  std::string push(TokenId id);  // O(bytes of the token)
  std::string finish();          // what was held back; call once, last

 private:
  void append_bytes(std::string_view bytes, std::string& out);
  void give_up_held(std::string& out);
  std::string without_stripped(std::string text);

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  bool at_first_token_;
  std::size_t left_to_strip_;      // of the answer's beginning, as the decoder's Strip asks
  std::string held_;               // the beginning of a character: 0 to 3 bytes
  bool held_is_fallback_ = false;  // held_ came from byte-fallback tokens
};

}  // namespace quire::text
