#include "core/text/tokenizer_file.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/readable_json.h"
#include "core/base/start_error.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

using Json = simdjson::dom::element;

constexpr std::string_view kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kPunctuation = R"([!-/:-@\[-`{-~\p{P}])";

constexpr std::uint64_t kTokenIds = 1u << 20;  // above every logits width; larger ids would make our tables huge

// A component or sub-object of a file, with its name for errors.
class Node {
 public:
  Node(Json json, std::string name) : json_(json), name_(std::move(name)) {}

  [[noreturn]] void refuse(const std::string& what) const { throw StartError(name_ + ": " + what); }

  const std::string& name() const { return name_; }
  Json json() const { return json_; }

  // The value of a key; nullopt if absent or null.
  std::optional<Node> find(std::string_view key) const {
    if (!json_.is_object()) refuse("expected an object");
    std::optional<Json> found;
    for (const auto member : object()) {
      if (member.key == key) found = member.value;  // the last of several, as in Python
    }
    if (!found || found->is_null()) return std::nullopt;
    return Node(*found, name_ + "." + std::string(key));
  }
  Node at(std::string_view key) const {
    if (auto found = find(key)) return *found;
    refuse("'" + std::string(key) + "' is missing");
  }

  std::string text() const { return std::string(value<std::string_view>("a string")); }
  bool flag() const { return value<bool>("true or false"); }
  std::uint64_t count() const { return value<std::uint64_t>("a whole number"); }
  double number() const { return value<double>("a number"); }
  simdjson::dom::array array() const { return value<simdjson::dom::array>("a list"); }
  simdjson::dom::object object() const { return value<simdjson::dom::object>("an object"); }

  bool flag_or(std::string_view key, bool otherwise) const {
    const auto found = find(key);
    return found ? found->flag() : otherwise;
  }
  char32_t character() const {
    const std::u32string codes = code_points(text());
    if (codes.size() != 1) refuse("expected one character");
    return codes[0];
  }
  TokenId token_id() const {
    const std::uint64_t id = count();
    if (id >= kTokenIds) refuse("a token id must be below 2^20");
    return static_cast<TokenId>(id);
  }
  // {"String": "..."} or {"Regex": "..."}
  Pattern pattern() const {
    if (const auto literal = find("String")) return Pattern::literal(literal->text());
    return Pattern::regex(at("Regex").text());
  }
  std::string type() const { return at("type").text(); }

 private:
  template <typename T>
  T value(const char* expected) const {
    T out;
    if (json_.get(out) != simdjson::SUCCESS) refuse(std::string("expected ") + expected);
    return out;
  }

  Json json_;
  std::string name_;
};

// A component's parts in order, with nested Sequences flattened.
std::vector<Node> flattened(const std::optional<Node>& component, std::string_view list_key) {
  std::vector<Node> flat, open;
  if (component) open.push_back(*component);
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    if (node.type() != "Sequence") {
      flat.push_back(node);
      continue;
    }
    const Node list = node.at(list_key);
    const std::size_t first = open.size();
    for (const Json part : list.array()) open.emplace_back(part, node.name());
    std::reverse(open.begin() + static_cast<std::ptrdiff_t>(first), open.end());
  }
  return flat;
}

[[noreturn]] void refuse_type(const Node& node) { node.refuse("the type '" + node.type() + "' is not supported"); }

AddedToken read_added_token(const Node& node, TokenId id) {
  AddedToken token;
  token.id = id;
  token.content = node.at("content").text();
  token.match = token.content;
  token.special = node.flag_or("special", false);
  token.single_word = node.flag_or("single_word", false);
  token.lstrip = node.flag_or("lstrip", false);
  token.rstrip = node.flag_or("rstrip", false);
  token.normalized = node.flag_or("normalized", !token.special);
  return token;
}

void add_normalizer(const Node& node, Normalizer& normalizer) {
  const std::string type = node.type();
  if (type == "NFC") {
    normalizer.add(NormalForm::kNfc);
  } else if (type == "NFD") {
    normalizer.add(NormalForm::kNfd);
  } else if (type == "NFKC") {
    normalizer.add(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    normalizer.add(NormalForm::kNfkd);
  } else if (type == "Lowercase") {
    normalizer.add(Normalizer::Lowercase{});
  } else if (type == "StripAccents") {
    normalizer.add(Normalizer::StripAccents{});
  } else if (type == "Strip") {
    normalizer.add(Normalizer::Strip{node.at("strip_left").flag(), node.at("strip_right").flag()});
  } else if (type == "Replace") {
    normalizer.add(Normalizer::Replace{node.at("pattern").pattern(), node.at("content").text()});
  } else if (type == "Prepend") {
    normalizer.add(Normalizer::Prepend{node.at("prepend").text()});
  } else {
    refuse_type(node);
  }
}

PreTokenizer::Behavior behavior_of(const Node& node) {
  const std::string name = node.text();
  if (name == "Isolated") return PreTokenizer::Behavior::kIsolated;
  if (name == "Removed") return PreTokenizer::Behavior::kRemoved;
  if (name == "MergedWithPrevious") return PreTokenizer::Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return PreTokenizer::Behavior::kMergedWithNext;
  if (name == "Contiguous") return PreTokenizer::Behavior::kContiguous;
  node.refuse("the behavior '" + name + "' is not supported");
}

// "always", "first" or "never"; add_prefix_space = false is the older spelling of "never".
std::string prepend_scheme_of(const Node& node) {
  const auto scheme = node.find("prepend_scheme");
  const std::string name = scheme ? scheme->text() : "always";
  if (name != "always" && name != "first" && name != "never") node.refuse("unknown prepend_scheme '" + name + "'");
  if (!node.flag_or("add_prefix_space", true) && name != "never")
    node.refuse("add_prefix_space contradicts prepend_scheme");
  return name;
}

void add_metaspace(const Node& node, PreTokenizer& pre_tokenizer) {
  std::string replacement;
  append_utf8(replacement, node.at("replacement").character());
  pre_tokenizer.add(PreTokenizer::Replace{Pattern::literal(" "), replacement});
  const std::string scheme = prepend_scheme_of(node);
  if (scheme != "never") pre_tokenizer.add(PreTokenizer::Prefix{replacement, scheme == "first"});
  if (node.flag_or("split", true)) {
    pre_tokenizer.add(
        PreTokenizer::Split{Pattern::literal(replacement), PreTokenizer::Behavior::kMergedWithNext, false});
  }
}

void add_pre_tokenizer(const Node& node, PreTokenizer& pre_tokenizer) {
  using Split = PreTokenizer::Split;
  using Behavior = PreTokenizer::Behavior;
  const std::string type = node.type();
  if (type == "ByteLevel") {
    if (node.at("add_prefix_space").flag()) pre_tokenizer.add(PreTokenizer::Prefix{" ", false});
    if (node.flag_or("use_regex", true))
      pre_tokenizer.add(Split{Pattern::regex(kGpt2Words), Behavior::kIsolated, false});
    pre_tokenizer.add(PreTokenizer::ByteLevel{});
  } else if (type == "Split") {
    pre_tokenizer.add(
        Split{node.at("pattern").pattern(), behavior_of(node.at("behavior")), node.flag_or("invert", false)});
  } else if (type == "Digits") {
    const bool one_by_one = node.flag_or("individual_digits", false);
    const Behavior behavior = one_by_one ? Behavior::kIsolated : Behavior::kContiguous;
    pre_tokenizer.add(Split{Pattern::regex(R"(\p{N})"), behavior, false});
  } else if (type == "Punctuation") {
    const auto behavior = node.find("behavior");
    pre_tokenizer.add(
        Split{Pattern::regex(kPunctuation), behavior ? behavior_of(*behavior) : Behavior::kIsolated, false});
  } else if (type == "WhitespaceSplit") {
    pre_tokenizer.add(Split{Pattern::regex(R"(\s)"), Behavior::kRemoved, false});
  } else if (type == "Metaspace") {
    add_metaspace(node, pre_tokenizer);
  } else {
    refuse_type(node);
  }
}

// Parses "a b" or ["a", "b"].
std::pair<std::string, std::string> read_merge(Json merge, const Node& merges) {
  std::string_view both, left, right;
  if (merge.get(both) == simdjson::SUCCESS) {
    const std::size_t blank = both.find(' ');
    if (blank == std::string_view::npos || both.find(' ', blank + 1) != std::string_view::npos) {
      merges.refuse("'" + std::string(both) + "' is not two tokens");
    }
    return {std::string(both.substr(0, blank)), std::string(both.substr(blank + 1))};
  }
  simdjson::dom::array pair;
  if (merge.get(pair) != simdjson::SUCCESS || pair.size() != 2 || pair.at(0).get(left) != simdjson::SUCCESS ||
      pair.at(1).get(right) != simdjson::SUCCESS) {
    merges.refuse("an entry is not two tokens");
  }
  return {std::string(left), std::string(right)};
}

BpeSpec read_model(const Node& node) {
  const auto type = node.find("type");  // GPT-2's file has no type
  if (type ? type->text() != "BPE" : !node.find("merges").has_value()) {
    node.refuse("the type '" + (type ? type->text() : "") + "' is not supported; expected BPE");
  }
  BpeSpec spec;
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const auto affix = node.find(key);
    if (affix && !affix->text().empty()) affix->refuse("not supported");
  }
  if (const auto dropout = node.find("dropout"); dropout && dropout->number() != 0) dropout->refuse("not supported");
  if (const auto unknown = node.find("unk_token")) spec.unknown_token = unknown->text();
  spec.fuse_unknown = node.flag_or("fuse_unk", false);
  spec.byte_fallback = node.flag_or("byte_fallback", false);
  spec.ignore_merges = node.flag_or("ignore_merges", false);

  const Node vocabulary = node.at("vocab");
  spec.vocabulary.reserve(vocabulary.object().size());
  for (const auto field : vocabulary.object()) {
    std::uint64_t id;
    if (field.value.get(id) != simdjson::SUCCESS || id > INT32_MAX) {
      vocabulary.refuse("the id of '" + std::string(field.key) + "' is not a token id");
    }
    spec.vocabulary.emplace_back(field.key, static_cast<TokenId>(id));
  }
  const Node merges = node.at("merges");
  spec.merges.reserve(merges.array().size());
  for (const Json merge : merges.array()) spec.merges.push_back(read_merge(merge, merges));
  return spec;
}

void add_decoder(const Node& node, DecoderSteps& decoder) {
  const std::string type = node.type();
  if (type == "ByteLevel") {
    decoder.add(DecoderSteps::Bytes::kByteLevel);
  } else if (type == "ByteFallback") {
    decoder.add(DecoderSteps::Bytes::kByteFallback);
  } else if (type == "Fuse") {
    decoder.add(DecoderSteps::Fuse{});
  } else if (type == "Replace") {
    const auto literal = node.at("pattern").find("String");
    decoder.add(
        DecoderSteps::Replace{node.at("pattern").pattern(), node.at("content").text(), literal ? literal->text() : ""});
  } else if (type == "Strip") {
    decoder.add(DecoderSteps::Strip{node.at("content").character(), node.at("start").count(), node.at("stop").count()});
  } else if (type == "Metaspace") {
    decoder.add(DecoderSteps::Metaspace{node.at("replacement").character(), prepend_scheme_of(node) != "never"});
  } else {
    refuse_type(node);
  }
}

// Adds the special tokens of "single"; those of a later processor are outside those of an earlier one.
void add_template(const Node& node, TokenizerFile& file) {
  std::vector<TokenId> before, after;
  bool text_seen = false;
  const Node pieces = node.at("single");
  for (const Json json : pieces.array()) {
    const Node piece(json, pieces.name());
    if (const auto sequence = piece.find("Sequence")) {
      if (text_seen || sequence->at("id").text() != "A")
        pieces.refuse("a template of one text must have A exactly once");
      text_seen = true;
      continue;
    }
    const Node token = node.at("special_tokens").at(piece.at("SpecialToken").at("id").text());
    for (const Json id : token.at("ids").array())
      (text_seen ? after : before).push_back(Node(id, token.name()).token_id());
  }
  if (!text_seen) pieces.refuse("a template of one text must have A exactly once");
  file.before.insert(file.before.begin(), before.begin(), before.end());
  file.after.insert(file.after.end(), after.begin(), after.end());
}

void add_post_processor(const Node& node, TokenizerFile& file) {
  const std::string type = node.type();
  if (type == "TemplateProcessing") {
    add_template(node, file);
  } else if (type != "ByteLevel") {  // ByteLevel changes offsets, not ids
    refuse_type(node);
  }
}

// Parses a file. The parser owns the memory that the Node views.
Node parse(simdjson::dom::parser& parser, std::string_view json, const std::string& name) {
  Json root;
  auto error = parser.parse(json.data(), json.size()).get(root);
  if (error != simdjson::SUCCESS) {
    const std::string readable = readable_json(json);
    error = parser.parse(readable).get(root);
  }
  if (error != simdjson::SUCCESS) throw StartError(name + ": not JSON: " + simdjson::error_message(error));
  return Node(root, name);
}

}  // namespace

TokenizerFile read_tokenizer_file(std::string_view json) {
  simdjson::dom::parser parser;
  const Node root = parse(parser, json, "tokenizer.json");
  if (const auto version = root.find("version"); version && version->text() != "1.0") {
    version->refuse("'" + version->text() + "' is not supported; expected 1.0");
  }
  TokenizerFile file;
  if (const auto tokens = root.find("added_tokens")) {
    for (const Json token : tokens->array()) {
      const Node node(token, tokens->name());
      file.added_tokens.push_back(read_added_token(node, node.at("id").token_id()));
    }
  }
  for (const Node& node : flattened(root.find("normalizer"), "normalizers")) add_normalizer(node, file.normalizer);
  for (const Node& node : flattened(root.find("pre_tokenizer"), "pretokenizers"))
    add_pre_tokenizer(node, file.pre_tokenizer);
  file.model = read_model(root.at("model"));
  for (const Node& node : flattened(root.find("decoder"), "decoders")) add_decoder(node, file.decoder);
  for (const Node& node : flattened(root.find("post_processor"), "processors")) add_post_processor(node, file);
  return file;
}

TokenizerConfig read_tokenizer_config(std::string_view json, const char* file) {
  TokenizerConfig config;
  if (json.empty()) return config;
  simdjson::dom::parser parser;
  const Node root = parse(parser, json, file);
  const auto token = [&](std::string_view key) -> std::optional<std::string> {  // "..." or {"content": "...", ...}
    const auto node = root.find(key);
    if (!node) return std::nullopt;
    const std::string text = node->json().is_object() ? node->at("content").text() : node->text();
    return text.empty() ? std::nullopt : std::optional(text);
  };
  config.bos_token = token("bos_token");
  config.eos_token = token("eos_token");
  const auto decoder = root.find("added_tokens_decoder");
  if (!decoder) return config;
  config.added_tokens.emplace();
  for (const auto member : decoder->object()) {
    const Node node(member.value, decoder->name() + "." + std::string(member.key));
    std::uint64_t id = kTokenIds;
    const auto read = std::from_chars(member.key.data(), member.key.data() + member.key.size(), id);
    const bool is_whole = read.ec == std::errc() && read.ptr == member.key.data() + member.key.size();
    if (!is_whole || id >= kTokenIds) node.refuse("the name is not a token id");
    config.added_tokens->push_back(read_added_token(node, static_cast<TokenId>(id)));
  }
  return config;
}

std::vector<AddedToken> read_added_tokens(std::string_view json) {
  std::vector<AddedToken> tokens;
  if (json.empty()) return tokens;
  simdjson::dom::parser parser;
  const Node root = parse(parser, json, "added_tokens.json");
  for (const auto member : root.object()) {
    std::uint64_t id = 0;
    if (member.value.get(id) != simdjson::SUCCESS || id >= kTokenIds) continue;
    AddedToken token;
    token.id = static_cast<TokenId>(id);
    token.content = token.match = std::string(member.key);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace quire::text
