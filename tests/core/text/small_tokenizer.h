// A tokenizer.json small enough to read: letters, a few merges, and whatever sections a test sets.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/byte_level.h"
#include "core/text/tokenizer.h"

namespace quire::text {

inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

struct SmallTokenizer {
  std::vector<std::string> vocabulary;  // ids in order
  std::string merges = "[]";
  std::string model_options;  // R"("byte_fallback": true, )"
  std::string added_tokens = "[]";
  std::string normalizer = "null", pre_tokenizer = "null", post_processor = "null", decoder = "null";

  std::string json() const {
    std::string tokens;
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      tokens += (id == 0 ? "" : ", ") + json_string(vocabulary[id]) + ": " + std::to_string(id);
    }
    return R"({"version": "1.0", "added_tokens": )" + added_tokens + R"(, "normalizer": )" + normalizer +
           R"(, "pre_tokenizer": )" + pre_tokenizer + R"(, "post_processor": )" + post_processor + R"(, "decoder": )" +
           decoder + R"(, "model": {"type": "BPE", )" + model_options + R"("vocab": {)" + tokens + R"(}, "merges": )" +
           merges + "}}";
  }

  std::shared_ptr<const Tokenizer> load(std::string_view config = "") const { return Tokenizer::load(json(), config); }

  // a, b, c, d, blank as ▁ and merges: "a b" < "ab c" < "▁ ab".
  static SmallTokenizer letters() {
    SmallTokenizer made;
    made.vocabulary = {"a", "b", "c", "d", "▁", "ab", "abc", "▁ab"};
    made.merges = R"(["a b", ["ab", "c"], "▁ ab"])";
    return made;
  }

  // GPT-2's alphabet, ids 0..255 by byte, and the merge "Ġ a" (id 256).
  static SmallTokenizer bytes() {
    SmallTokenizer made;
    for (int byte = 0; byte < 256; ++byte) {
      made.vocabulary.emplace_back();
      append_byte_level(made.vocabulary.back(), std::string(1, static_cast<char>(byte)));
    }
    made.vocabulary.push_back("Ġa");
    made.merges = R"(["Ġ a"])";
    made.pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
    made.decoder = R"({"type": "ByteLevel"})";
    return made;
  }

  // Llama 2's shape: <0xNN> are ids 3..258, then ▁, a, b, ▁a.
  static SmallTokenizer sentencepiece() {
    SmallTokenizer made;
    made.vocabulary = {"<unk>", "<s>", "</s>"};
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (std::size_t byte = 0; byte < 256; ++byte) {
      made.vocabulary.push_back(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
    }
    for (const char* token : {"▁", "a", "b", "▁a"}) made.vocabulary.emplace_back(token);
    made.merges = R"(["▁ a"])";
    made.model_options = R"("unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, )";
    made.added_tokens =
        R"([{"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true},)"
        R"( {"id": 2, "content": "</s>", "special": true}])";
    made.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},)"
                      R"( {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})";
    made.decoder =
        R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},)"
        R"( {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
    return made;
  }
};

}  // namespace quire::text
