#include "core/model/gguf/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/log.h"

namespace quire::model {
namespace {

namespace json = boost::json;

enum TokenType : std::int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4 };  // 5: unused, 6: a byte

constexpr std::string_view kContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
constexpr std::string_view kSpace = "▁";
constexpr std::string_view kWordsOfBloom = " ?[^\\s()|.,!?…。，、।۔،]+";
constexpr std::string_view kOldFiles = "default";  // of before the key was there

// The words that text is cut into before BPE: regular expressions one after the other, then GPT-2's own or none.
struct Words {
  std::vector<std::string> patterns{};
  bool gpt2 = false;
  bool single_digits = false;     // before the patterns
  bool punctuation = false;       // runs of it, before the patterns
  bool digits_in_threes = false;  // runs of digits, behind GPT-2's words
};

// Llama 3's pattern with numbers of at most `digits` (0: of any number), and letters of a class.
std::string llama3_words(int digits, std::string_view letters = "\\p{L}", std::string_view others = "\\p{L}") {
  const std::string number = digits == 0 ? "\\p{N}+" : digits == 1 ? "\\p{N}" : fmt::format("\\p{{N}}{{1,{}}}", digits);
  return fmt::format("{}|[^\\r\\n\\p{{L}}\\p{{N}}]?{}+|{}| ?[^\\s{}\\p{{N}}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
                     kContractions, letters, number, others);
}

// o200k's pattern: words in upper and lower case apart.
std::string o200k_words(bool contractions, int digits, std::string_view line_ends) {
  constexpr std::string_view kUpper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
  constexpr std::string_view kLower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
  const std::string suffix = contractions ? std::string(kContractions) + "?" : "";
  const std::string number = digits == 1 ? "\\p{N}" : fmt::format("\\p{{N}}{{1,{}}}", digits);
  return fmt::format(
      "[^\\r\\n\\p{{L}}\\p{{N}}]?{0}*{1}+{2}|[^\\r\\n\\p{{L}}\\p{{N}}]?{0}+{1}*{2}|{3}| "
      "?[^\\s\\p{{L}}\\p{{N}}]+[{4}]*|\\s*"
      "[\\r\\n]+|\\s+(?!\\S)|\\s+",
      kUpper, kLower, suffix, number, line_ends);
}

// Letters with case, as DeepSeek LLM lists them: code points and ranges of them, in hexadecimal.
constexpr std::string_view kLettersWithCase =
    "0041-005A 0061-007A 00B5 00C0-00D6 00D8-00F6 00F8-01BA 01BC-01BF 01C4-0293 0295-02AF 0370-0373 0376 "
    "0377 037B-037D 037F 0386 0388-038A 038C 038E-03A1 03A3-03F5 03F7-0481 048A-052F 0531-0556 10A0-10C5 "
    "13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A 1E00-1F15 1F18-1F1D 1F20-1F45 "
    "1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3 "
    "1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 212A-212D "
    "212F-2134 2139 213C-213F 2145-2149 214E 2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D "
    "A680-A69B A722-A76F A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A "
    "10400-1044F 104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF 1E900-1E943 ";
constexpr std::string_view kCjk = "[一-龥ࠀ-一가-퟿]+";

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::array<std::uint32_t, 4> kFirst = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kFirst[static_cast<std::size_t>(more)] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

// "0041-005A 00B5 " → "A-Zµ"
std::string characters_of(std::string_view ranges) {
  std::string out;
  std::uint32_t code = 0;
  for (const char c : ranges) {
    if (c == '-' || c == ' ') {
      append_utf8(out, std::exchange(code, 0));
      if (c == '-') out += '-';
    } else {
      code = code * 16 + static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'A' + 10);
    }
  }
  return out;
}

struct PreTokenizer {
  std::vector<std::string_view> names;  // of tokenizer.ggml.pre
  Words words;
  bool ignores_merges = false;  // a word that is a token is that token
  bool adds_bos = false;        // unless a key says otherwise
};

const std::vector<PreTokenizer>& pre_tokenizers() {
  static const std::vector<PreTokenizer> all = {
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       {{llama3_words(3)}},
       true,
       true},
      {{"dbrx", "smaug-bpe", "chatglm-bpe"}, {{llama3_words(3)}}},
      {{"glm4", "glm5"}, {{llama3_words(3)}}, true},
      {{"minicpm5"}, {{"\\p{N}{1,3}", llama3_words(0)}}, true},
      {{"ufakzeka"}, {{llama3_words(1).substr(kContractions.size() + 1)}}},
      {{"laguna"}, {{"[^\n]+|[\n]+", llama3_words(1)}}},
      {{"qwen2", "deepseek-r1-qwen", "hunyuan", "stablelm2", "megrez", "grok-2", "solar-open", "kormo"},
       {{llama3_words(1)}}},
      {{"qwen35"}, {{llama3_words(1, "[\\p{L}\\p{M}]", "\\p{L}\\p{M}")}}},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "roberta-bpe", "exaone4", "mellum", "granite-docling", "modern-bert",
        "gigachat", "trillion", "a.x-4.0"},
       {.gpt2 = true}},
      {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
       {.gpt2 = true, .single_digits = true}},
      {{"falcon"}, {.gpt2 = true, .punctuation = true, .digits_in_threes = true}},
      {{kOldFiles}, {.patterns = {"[\\p{P}$+<=>^~|]+"}, .gpt2 = true, .digits_in_threes = true}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {{std::string(kWordsOfBloom)}}},
      {{"viking"}, {{std::string(kWordsOfBloom), "\\p{N}"}}},
      {{"seed-coder"},
       {{std::string(kContractions) +
         "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"},
       {{"(?i:'s|'d|'m|'t|'ll|'ve|'re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
         "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|"
         "\\s+"}}},
      {{"tekken"}, {{o200k_words(false, 1, "\\r\\n/")}}, true},
      {{"gpt-4o", "llama4", "kanana2", "minimax-m2", "talkie"}, {{o200k_words(true, 3, "\\r\\n/")}}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       {{"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
         "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
         "?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}}},
      {{"deepseek-coder"}, {{"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", std::string(kCjk), "\\p{N}"}}},
      {{"deepseek-llm"},
       {{"[\r\n]", "\\s?[" + characters_of(kLettersWithCase) + "]+", "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$",
         std::string(kCjk), "\\p{N}"}}},
  };
  return all;
}

const PreTokenizer& pre_tokenizer_of(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.pre";
  const std::string name(file.text(kKey).value_or(kOldFiles));
  if (name == kOldFiles) {
    log_warn("old_tokenizer",
             "{}: key '{}' does not say how text is split, as in files of before 2024-05: answers may be "
             "poor; take a newer file",
             file.name(), kKey);
  }
  for (const PreTokenizer& one : pre_tokenizers()) {
    if (std::ranges::find(one.names, name) != one.names.end()) return one;
  }
  std::string names;
  for (const PreTokenizer& one : pre_tokenizers()) {
    for (const std::string_view known : one.names) names += (names.empty() ? "" : ", ") + std::string(known);
  }
  file.refuse_key(kKey, fmt::format("is '{}'; these are read: {}. Take the model in safetensors, whose tokenizer.json "
                                    "says how its text is split",
                                    log_safe(name), names));
}

// The arrays of a vocabulary, of one length.
struct Vocabulary {
  std::vector<std::string_view> tokens;
  std::vector<std::int64_t> types;
  std::vector<float> scores;  // empty: none

  bool is_added(std::size_t id) const {
    return types[id] == kUnknown || types[id] == kControl || types[id] == kUserDefined;
  }
};

Vocabulary read_vocabulary(const GgufFile& file) {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  Vocabulary out;
  const auto tokens = file.texts(kTokens);
  if (!tokens || tokens->empty()) file.refuse_key(kTokens, "is missing: the file has no tokenizer");
  out.tokens = *tokens;
  const auto same_length = [&](std::string_view key, std::size_t length) {
    if (length != out.tokens.size()) {
      file.refuse_key(key, fmt::format("has {} entries, and there are {} tokens", length, out.tokens.size()));
    }
  };
  out.types =
      file.integers("tokenizer.ggml.token_type").value_or(std::vector<std::int64_t>(out.tokens.size(), kNormal));
  same_length("tokenizer.ggml.token_type", out.types.size());
  out.scores = file.numbers("tokenizer.ggml.scores").value_or(std::vector<float>());
  if (!out.scores.empty()) same_length("tokenizer.ggml.scores", out.scores.size());
  if (std::ranges::any_of(out.scores, [](float score) { return std::isnan(score); })) {
    file.refuse_key("tokenizer.ggml.scores", "has an entry that is no number");
  }
  return out;
}

std::optional<std::size_t> token_id(const GgufFile& file, std::string_view key, const Vocabulary& vocabulary) {
  const auto id = file.uint(key);
  if (id && *id >= vocabulary.tokens.size()) {
    file.refuse_key(key, fmt::format("is {}, and there are {} tokens", *id, vocabulary.tokens.size()));
  }
  return id;
}

json::array added_tokens(const Vocabulary& vocabulary) {
  json::array out;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!vocabulary.is_added(id) || vocabulary.tokens[id].empty()) continue;
    out.push_back({{"id", id},
                   {"content", vocabulary.tokens[id]},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", false},
                   {"special", vocabulary.types[id] != kUserDefined}});
  }
  return out;
}

// Every token under its own text; of two with one text the first.
json::object vocabulary_object(const Vocabulary& vocabulary) {
  json::object out;
  out.reserve(vocabulary.tokens.size());
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) out.emplace(vocabulary.tokens[id], id);
  return out;
}

// "a b" → "a", "b": cut at the first blank from the second byte on, since a token may begin with one.
json::array merges_of(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.merges";
  const auto merges = file.texts(kKey);
  if (!merges) file.refuse_key(kKey, "is missing");
  json::array out;
  out.reserve(merges->size());
  for (const std::string_view merge : *merges) {
    const std::size_t blank = merge.find(' ', 1);
    if (blank == merge.npos) file.refuse_key(kKey, fmt::format("has '{}', which is not two tokens", log_safe(merge)));
    out.push_back(json::array{merge.substr(0, blank), merge.substr(blank + 1)});
  }
  return out;
}

std::size_t num_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

// Of every token each way to make it from two others: those with the highest score first.
json::array merges_by_score(const GgufFile& file, const Vocabulary& vocabulary) {
  constexpr std::size_t kMostBytes = 512;  // of a token: the time taken grows with its square
  struct Merge {
    float score;
    std::size_t left_length, right_length;
    std::string_view left, right;
    std::size_t left_id, right_id;
  };
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) ids.emplace(vocabulary.tokens[id], id);
  std::vector<Merge> merges;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string_view token = vocabulary.tokens[id];
    const std::size_t first = merges.size();
    if (token.size() > kMostBytes) {
      if (vocabulary.is_added(id)) continue;
      file.refuse_key("tokenizer.ggml.tokens", fmt::format("has a token of {} bytes, number {}; at most {} are read",
                                                           token.size(), id, kMostBytes));
    }
    for (std::size_t at = 1; at < token.size(); ++at) {
      if ((static_cast<unsigned char>(token[at]) & 0xc0) == 0x80) continue;  // within a character
      const auto left = ids.find(token.substr(0, at));
      const auto right = ids.find(token.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({vocabulary.scores[id], num_characters(left->first), num_characters(right->first), left->first,
                        right->first, left->second, right->second});
    }
    std::sort(merges.begin() + static_cast<std::ptrdiff_t>(first), merges.end(), [](const Merge& a, const Merge& b) {
      return std::tuple(a.left_id, a.right_id) < std::tuple(b.left_id, b.right_id);
    });
  }
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    return std::tuple(a.score, a.left_length, a.right_length) > std::tuple(b.score, b.left_length, b.right_length);
  });
  json::array out;
  out.reserve(merges.size());
  for (const Merge& merge : merges) out.push_back(json::array{merge.left, merge.right});
  return out;
}

json::object split_by(std::string_view pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

json::object byte_level(bool splits) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", splits}};
}

json::object pre_tokenizer_json(const Words& words) {
  json::array steps;
  if (words.single_digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (words.punctuation) steps.push_back({{"type", "Punctuation"}, {"behavior", "Contiguous"}});
  for (const std::string& pattern : words.patterns) steps.push_back(split_by(pattern));
  steps.push_back(byte_level(words.gpt2));
  if (words.digits_in_threes) {
    steps.push_back({{"type", "Digits"}, {"individual_digits", false}});
    steps.push_back(split_by("[0-9][0-9][0-9]"));
  }
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

json::object replace(std::string_view text, std::string_view by) {
  return {{"type", "Replace"}, {"pattern", {{"String", text}}}, {"content", by}};
}

// BOS before and EOS after a text, where the model wants them.
json::value post_processor(const GgufFile& file, const Vocabulary& vocabulary, bool adds_bos) {
  json::array single;
  json::object specials;
  const auto add = [&](std::string_view key) {
    const auto id = token_id(file, key, vocabulary);
    if (!id) return;
    const std::string_view token = vocabulary.tokens[*id];
    single.push_back(json::object{{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    specials[token] = {{"id", token}, {"ids", json::array{*id}}, {"tokens", json::array{token}}};
  };
  if (file.flag("tokenizer.ggml.add_bos_token").value_or(adds_bos)) add("tokenizer.ggml.bos_token_id");
  single.push_back(json::object{{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (file.flag("tokenizer.ggml.add_eos_token").value_or(false)) add("tokenizer.ggml.eos_token_id");
  if (specials.empty()) return nullptr;
  return json::object{
      {"type", "TemplateProcessing"}, {"single", single}, {"pair", single}, {"special_tokens", specials}};
}

json::object by_bytes(const GgufFile& file, const Vocabulary& vocabulary) {
  const PreTokenizer& pre = pre_tokenizer_of(file);
  return {{"version", "1.0"},
          {"added_tokens", added_tokens(vocabulary)},
          {"normalizer", nullptr},
          {"pre_tokenizer", pre_tokenizer_json(pre.words)},
          {"post_processor", post_processor(file, vocabulary, pre.adds_bos)},
          {"decoder", byte_level(true)},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", pre.ignores_merges},
            {"vocab", vocabulary_object(vocabulary)},
            {"merges", merges_of(file)}}}};
}

// Characters, with bytes for those that are no token. The file has scores, or merges.
json::object by_characters(const GgufFile& file, const Vocabulary& vocabulary, bool by_scores) {
  if (by_scores && vocabulary.scores.empty()) file.refuse_key("tokenizer.ggml.scores", "is missing");
  const bool has_prefix = file.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  json::array normalizers;
  if (has_prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back(replace(" ", kSpace));
  json::array decoders = {replace(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (has_prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  const auto unknown = token_id(file, "tokenizer.ggml.unknown_token_id", vocabulary);
  json::value unknown_token = nullptr;
  if (unknown) unknown_token = vocabulary.tokens[*unknown];
  return {{"version", "1.0"},
          {"added_tokens", added_tokens(vocabulary)},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
          {"pre_tokenizer", nullptr},
          {"post_processor", post_processor(file, vocabulary, /*adds_bos=*/true)},
          {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", unknown_token},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"ignore_merges", false},
            {"vocab", vocabulary_object(vocabulary)},
            {"merges", by_scores ? merges_by_score(file, vocabulary) : merges_of(file)}}}};
}

}  // namespace

std::string gguf_tokenizer_json(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.model";
  const std::string model(file.text(kKey).value_or(""));
  const Vocabulary vocabulary = read_vocabulary(file);
  if (model == "gpt2") return json::serialize(by_bytes(file, vocabulary));
  if (model == "llama" || model == "gemma4") {
    return json::serialize(by_characters(file, vocabulary, /*by_scores=*/model == "llama"));
  }
  file.refuse_key(kKey, fmt::format("is '{}'; gpt2, llama and gemma4 are read", log_safe(model)));
}

std::string gguf_tokenizer_config_json(const GgufFile& file) {
  const Vocabulary vocabulary = read_vocabulary(file);
  json::object out;
  if (const auto id = token_id(file, "tokenizer.ggml.bos_token_id", vocabulary)) {
    out["bos_token"] = vocabulary.tokens[*id];
  }
  if (const auto id = token_id(file, "tokenizer.ggml.eos_token_id", vocabulary)) {
    out["eos_token"] = vocabulary.tokens[*id];
  }
  const auto plain = file.text("tokenizer.chat_template");
  json::array named;
  if (plain) named.push_back({{"name", "default"}, {"template", *plain}});
  for (const std::string_view name : file.texts("tokenizer.chat_templates").value_or(std::vector<std::string_view>())) {
    if (const auto text = file.text("tokenizer.chat_template." + std::string(name))) {
      named.push_back({{"name", name}, {"template", *text}});
    }
  }
  if (named.size() == 1 && plain) {
    out["chat_template"] = *plain;
  } else if (!named.empty()) {
    out["chat_template"] = named;
  }
  return json::serialize(out);
}

}  // namespace quire::model
