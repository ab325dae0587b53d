// Detokenizes one answer token by token, and never returns a part of a character.
// Shape   the texts of all push() and finish() calls, joined, equal Tokenizer::decode() of all ids. Characters of
//         byte-fallback tokens (<0xE2>, and <0x0A> for a line break) are held until another kind of token or the end,
//         since one invalid byte turns every byte of its run into U+FFFD, those of earlier whole characters too.
// Owner   one per stream; shares the tokenizer.
// Thread  one at a time.
// Fails   never: bytes that form no character become U+FFFD, once a later byte or finish() decides it.
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
  // `goes_on`: there is earlier text, so the first token keeps the blank that would be dropped at the start of a text.
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens, bool goes_on = false);

  std::string push(TokenId id);  // O(bytes of the token)
  std::string finish();          // returns the held text; call once, last

  // The character that the last push() completed and holds; else empty. It is part of the text if the answer ends here.
  std::string_view completed() const { return std::string_view(held_).substr(held_.size() - completed_); }
  std::size_t num_held() const { return num_held_; }  // number of whole characters that are held

 private:
  void append_level_bytes(std::string_view bytes, std::string& out);
  void append_fallback_byte(char byte, std::string& out);
  void end_run(std::string& out);
  std::string stripped(std::string text, bool ends);  // applies the decoder's Strip and rewrite()

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  bool at_first_token_;
  std::size_t left_to_strip_;  // copies of strip_content() that may still be removed at the answer's start
  std::string rewritten_;      // the end of the text so far, in which a match of rewrite() may begin
  std::string held_;           // bytes of the unfinished run; for byte level only an unfinished character
  bool is_fallback_ = false;   // the run is of byte-fallback tokens
  bool is_broken_ = false;     // the run is invalid UTF-8: its bytes are no longer held
  std::size_t whole_ = 0;      // bytes of held_ that form whole characters
  std::size_t num_held_ = 0;   // number of these characters
  std::size_t completed_ = 0;  // bytes of the last character, if the last push() completed it
};

}  // namespace quire::text
