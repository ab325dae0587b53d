// Any bytes through encode, decode and the detokenizer: the first byte picks the tokenizer, the rest is text.
// Holds   ids are in the vocabulary; decode of byte-level ids is the text with U+FFFD for what is not UTF-8; the stream's
//         events are whole characters and join to decode's text.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/text/detokenizer.h"
#include "core/text/unicode/utf8.h"
#include "tests/core/text/small_tokenizer.h"

namespace {

using quire::TokenId;
using quire::text::Detokenizer;
using quire::text::SmallTokenizer;
using quire::text::Tokenizer;

std::vector<std::shared_ptr<const Tokenizer>> make_tokenizers() {
  SmallTokenizer llama3 = SmallTokenizer::bytes();
  llama3.pre_tokenizer =
      R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";
  SmallTokenizer nfc = SmallTokenizer::bytes();
  nfc.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "NFC"}, {"type": "Lowercase"}]})";
  return {SmallTokenizer::bytes().load(), llama3.load(), nfc.load(), SmallTokenizer::sentencepiece().load()};
}

constexpr std::size_t kNumLossless = 2;  // of the tokenizers, the first ones give the text back

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::shared_ptr<const Tokenizer>> tokenizers = make_tokenizers();
  if (size == 0) return 0;
  const std::size_t which = data[0] % tokenizers.size();
  const std::shared_ptr<const Tokenizer>& tokenizer = tokenizers[which];
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);

  const std::vector<TokenId> ids = tokenizer->encode(text, true);
  Detokenizer detokenizer(tokenizer, false);
  std::string streamed;
  for (const TokenId id : ids) {
    CHECK(!tokenizer->piece(id).empty());
    const std::string event = detokenizer.push(id);
    CHECK(quire::text::is_utf8(event));
    streamed += event;
  }
  streamed += detokenizer.finish();
  CHECK_EQ(streamed, tokenizer->decode(ids, false));
  if (which < kNumLossless) CHECK_EQ(streamed, quire::text::with_replacement_characters(text));
  return 0;
}
