#include "core/text/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/text/added_tokens.h"
#include "core/text/bpe.h"
#include "core/text/normalizer.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/token_decoder.h"
#include "core/text/tokenizer_file.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

// Selects tokens by `normalized`: those found before and after normalization are searched separately.
std::vector<AddedToken> with_normalized(const std::vector<AddedToken>& tokens, bool normalized) {
  std::vector<AddedToken> chosen;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(chosen),
               [&](const AddedToken& token) { return token.normalized == normalized; });
  return chosen;
}

[[noreturn]] void refuse_added_token(const std::string& what) {
  throw StartError("tokenizer.json: added_tokens: " + what);
}

// Checks the tokens against the vocabulary, sets `match` to the normalized spelling if needed, and sorts them by id.
std::vector<AddedToken> prepared(std::vector<AddedToken> tokens, const Bpe& bpe, const Normalizer& normalizer) {
  std::erase_if(tokens, [](const AddedToken& token) { return token.content.empty(); });
  std::stable_sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    AddedToken& token = tokens[i];
    const auto in_vocabulary = bpe.id_of(token.content);
    const bool id_taken = !bpe.piece(token.id).empty() && bpe.piece(token.id) != token.content;
    if (id_taken || in_vocabulary.value_or(token.id) != token.id || (i > 0 && tokens[i - 1].id == token.id)) {
      refuse_added_token("'" + token.content + "' has the id " + std::to_string(token.id) +
                         ", which conflicts with the vocabulary");
    }
    if (token.normalized) token.match = normalizer.apply(token.content);
  }
  return tokens;
}

// Adds tokens of other files that tokenizer.json lacks. A token whose name or id exists there is not added.
void add_missing(std::vector<AddedToken> tokens, TokenizerFile& file) {
  std::unordered_set<std::string> names;
  std::unordered_set<TokenId> ids;
  for (const AddedToken& token : file.added_tokens) names.insert(token.content), ids.insert(token.id);
  std::erase_if(tokens,
                [&](const AddedToken& token) { return names.contains(token.content) || ids.contains(token.id); });
  if (tokens.empty()) return;
  for (const auto& [piece, id] : file.model.vocabulary) names.insert(piece), ids.insert(id);
  for (AddedToken& token : tokens) {
    if (names.insert(token.content).second && ids.insert(token.id).second)
      file.added_tokens.push_back(std::move(token));
  }
}

std::unordered_map<std::string_view, TokenId> ids_of(const std::vector<AddedToken>& tokens) {
  std::unordered_map<std::string_view, TokenId> ids;
  for (const AddedToken& token : tokens) {
    if (!ids.emplace(token.content, token.id).second) refuse_added_token("'" + token.content + "' occurs twice");
  }
  return ids;
}

}  // namespace

struct Tokenizer::Parts {
  explicit Parts(TokenizerFile file);

  // False if the limits ended it.
  bool encode_text(std::string_view text, bool at_input_start, const EncodeLimits& limits, Bpe::Workspace& workspace,
                   std::vector<TokenId>& ids) const;
  std::size_t longest_token() const;
  const AddedToken* added_token(TokenId id) const;  // nullptr if there is none
  std::vector<TokenDecoder::Token> decoder_tokens() const;

  Bpe bpe;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::vector<TokenId> before, after;
  std::vector<AddedToken> added;                            // the file's, ascending by id
  std::unordered_map<std::string_view, TokenId> added_ids;  // views into added
  AddedTokens found_in_raw_text, found_in_normalized_text;
  std::size_t vocab_size;
  TokenDecoder decoder;
  std::optional<TokenId> bos, eos;
  std::size_t bytes_per_token;  // upper bound of a text's bytes per token; 0: unknown
};

Tokenizer::Parts::Parts(TokenizerFile file)
    : bpe(std::move(file.model)),
      normalizer(std::move(file.normalizer)),
      pre_tokenizer(std::move(file.pre_tokenizer)),
      before(std::move(file.before)),
      after(std::move(file.after)),
      added(prepared(std::move(file.added_tokens), bpe, normalizer)),
      added_ids(ids_of(added)),
      found_in_raw_text(with_normalized(added, false)),
      found_in_normalized_text(with_normalized(added, true)),
      vocab_size(std::max(bpe.size(), added.empty() ? 0 : static_cast<std::size_t>(added.back().id) + 1)),
      decoder(file.decoder, decoder_tokens()),
      bytes_per_token(longest_token()) {}

const AddedToken* Tokenizer::Parts::added_token(TokenId id) const {
  const auto at = std::lower_bound(added.begin(), added.end(), id,
                                   [](const AddedToken& token, TokenId wanted) { return token.id < wanted; });
  return at != added.end() && at->id == id ? &*at : nullptr;
}

// A token found in normalized text is decoded as its normalized spelling, and skipped as special only if a special
// token is spelled like that.
std::vector<TokenDecoder::Token> Tokenizer::Parts::decoder_tokens() const {
  std::vector<TokenDecoder::Token> tokens(vocab_size);
  for (std::size_t id = 0; id < tokens.size(); ++id) tokens[id].spelling = bpe.piece(static_cast<TokenId>(id));
  for (const AddedToken& token : added) tokens[static_cast<std::size_t>(token.id)] = {token.match, false};
  std::unordered_set<std::string_view> special;
  for (const AddedToken& token : added) {
    if (token.special) special.insert(token.content);
  }
  for (TokenDecoder::Token& token : tokens) token.skip = special.contains(token.spelling);
  return tokens;
}

// Upper bound of a text's bytes per token; 0 if text can vanish: white space beside a token, characters without a
// token, or text that a step deletes.
std::size_t Tokenizer::Parts::longest_token() const {
  const std::size_t shrinks = normalizer.most_shrinking();
  const auto eats_blanks = [](const AddedToken& token) { return token.lstrip || token.rstrip; };
  const bool all_bytes = pre_tokenizer.is_byte_level() ? bpe.has_byte_level_alphabet() : bpe.has_all_bytes();
  if (shrinks == 0 || pre_tokenizer.drops_text() || !all_bytes || std::ranges::any_of(added, eats_blanks)) return 0;
  std::size_t longest = 0;
  for (std::size_t id = 0; id < vocab_size; ++id)
    longest = std::max(longest, bpe.piece(static_cast<TokenId>(id)).size());
  for (const AddedToken& token : added) longest = std::max(longest, token.match.size());
  return longest * shrinks;
}

bool Tokenizer::Parts::encode_text(std::string_view text, bool at_input_start, const EncodeLimits& limits,
                                   Bpe::Workspace& workspace, std::vector<TokenId>& ids) const {
  const std::string normal = normalizer.apply(std::string(text));
  for (const AddedTokens::Piece& piece : found_in_normalized_text.split(normal)) {
    if (piece.token) {
      ids.push_back(*piece.token);
    } else {
      const bool starts_input = at_input_start && piece.text.data() == normal.data();
      const Words words = pre_tokenizer.apply(std::string(piece.text), starts_input);
      for (const Words::Range& word : words.ranges) {
        if (ids.size() > limits.max_tokens) return false;
        if (limits.allowance != nullptr && !limits.allowance->spend(word.end - word.begin)) return false;
        bpe.encode(std::string_view(words.text).substr(word.begin, word.end - word.begin), workspace, ids);
      }
    }
  }
  return true;
}

std::shared_ptr<const Tokenizer> Tokenizer::load(std::string_view tokenizer_json,
                                                 std::string_view tokenizer_config_json,
                                                 std::string_view special_tokens_map_json,
                                                 std::string_view added_tokens_json) {
  TokenizerFile file = read_tokenizer_file(tokenizer_json);
  const TokenizerConfig config = read_tokenizer_config(tokenizer_config_json);
  const TokenizerConfig map = read_tokenizer_config(special_tokens_map_json, "special_tokens_map.json");
  add_missing(config.added_tokens ? *config.added_tokens : read_added_tokens(added_tokens_json), file);
  std::shared_ptr<Tokenizer> tokenizer(new Tokenizer(std::make_unique<Parts>(std::move(file))));
  const bool map_is_later = !config.added_tokens;
  const auto id_of = [&](const char* key, std::optional<std::string> TokenizerConfig::*name) -> std::optional<TokenId> {
    const std::optional<std::string>& first = (map_is_later ? map : config).*name;
    const std::optional<std::string>& named = first ? first : (map_is_later ? config : map).*name;
    if (!named) return std::nullopt;
    const std::optional<TokenId> id = tokenizer->id_of(*named);
    if (!id)
      log_warn("tokenizer", "{} is '{}', which is not a token of tokenizer.json and is ignored", key, log_safe(*named));
    return id;
  };
  tokenizer->parts_->bos = id_of("bos_token", &TokenizerConfig::bos_token);
  tokenizer->parts_->eos = id_of("eos_token", &TokenizerConfig::eos_token);
  return tokenizer;
}

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  return encode(text, add_special_tokens, {});
}

std::size_t Tokenizer::least_tokens(std::size_t text_bytes) const {
  return parts_->bytes_per_token == 0 ? 0 : text_bytes / parts_->bytes_per_token;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special_tokens,
                                       const EncodeLimits& limits) const {
  std::string repaired;
  if (!is_utf8(text)) {
    repaired = with_replacement_characters(text);
    text = repaired;
  }
  Bpe::Workspace workspace(limits.allowance);
  std::vector<TokenId> ids;
  if (add_special_tokens) ids = parts_->before;
  for (const AddedTokens::Piece& piece : parts_->found_in_raw_text.split(text)) {
    if (ids.size() > limits.max_tokens) return ids;
    if (piece.token) {
      ids.push_back(*piece.token);
    } else if (!parts_->encode_text(piece.text, piece.text.data() == text.data(), limits, workspace, ids)) {
      return ids;
    }
  }
  if (add_special_tokens) ids.insert(ids.end(), parts_->after.begin(), parts_->after.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  return parts_->decoder.decode(ids, skip_special_tokens);
}

std::size_t Tokenizer::vocab_size() const { return parts_->vocab_size; }

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  const auto found = parts_->added_ids.find(token);
  return found != parts_->added_ids.end() ? std::optional(found->second) : parts_->bpe.id_of(token);
}

std::string_view Tokenizer::piece(TokenId id) const {
  const AddedToken* added = parts_->added_token(id);
  return added != nullptr ? std::string_view(added->content) : parts_->bpe.piece(id);
}

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* added = parts_->added_token(id);
  return added != nullptr && added->special;
}

std::optional<TokenId> Tokenizer::bos() const { return parts_->bos; }
std::optional<TokenId> Tokenizer::eos() const { return parts_->eos; }
const TokenDecoder& Tokenizer::decoder() const { return parts_->decoder; }

}  // namespace quire::text
