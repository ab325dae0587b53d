// The text of one growing answer, token by token, never with half a character in it.
// Shape   push() pieces and finish() joined equal Tokenizer::decode() of all the ids. Characters that byte-fallback tokens
//         spell (<0xE2>, and <0x0A> for a line break) are held until another kind of token or the end: one wrong byte makes
//         U+FFFD of each byte of its run, those of whole characters before it, too.
// Owner   one per stream; shares the tokenizer.
// Thread  one at a time.
// Fails   never: bytes that cannot become a character come out as U+FFFD, when the next byte proves it or at finish().
// Source  the `tokenizers` package's ByteFallback and ByteLevel decoders.
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

  // The character that the last push() completed and holds; else empty. It is in the text if the answer ends here.
  std::string_view completed() const { return std::string_view(held_).substr(held_.size() - completed_); }
  std::size_t num_held() const { return num_held_; }  // whole characters

 private:
  void append_level_bytes(std::string_view bytes, std::string& out);
  void append_fallback_byte(char byte, std::string& out);
  void end_run(std::string& out);
  std::string told(std::string text, bool ends);  // as the decoder's last step has it

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  bool at_first_token_;
  std::size_t left_to_strip_;  // of the answer's beginning, as the decoder's Strip asks
  std::string rewritten_;      // the end of what was made, in which the decoder's rewrite() may begin
  std::string held_;           // the run of bytes that has no end yet; of byte level the beginning of a character alone
  bool is_fallback_ = false;   // the run is of byte-fallback tokens
  bool is_broken_ = false;     // and is no UTF-8: nothing of it is held any more
  std::size_t whole_ = 0;      // so many bytes of held_ are whole characters
  std::size_t num_held_ = 0;   // so many
  std::size_t completed_ = 0;  // bytes of the last one, if the last push() made it whole
};

}  // namespace quire::text
