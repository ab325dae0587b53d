#include "core/text/bpe.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/text/byte_level.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

constexpr TokenId kMaxTokenId =
    (1 << 20) - 1;                         // model::ModelSpec's limit of vocab; larger ids would make our tables huge
constexpr std::size_t kWorthCutting = 48;  // bytes; shorter words are not cut

[[noreturn]] void refuse_model(const std::string& what) { throw StartError("tokenizer.json: model: " + what); }

std::string byte_piece(unsigned byte) {
  char text[8];
  std::snprintf(text, sizeof text, "<0x%02X>", byte);
  return text;
}

}  // namespace

Bpe::Bpe(BpeSpec spec)
    : rank_of_(spec.merges.size()), joinable_(0), fuse_unknown_(spec.fuse_unknown), ignore_merges_(spec.ignore_merges) {
  load_vocabulary(std::move(spec.vocabulary));
  if (spec.unknown_token) {
    unknown_ = id_of(*spec.unknown_token);
    if (!unknown_) refuse_model("unk_token '" + *spec.unknown_token + "' is not in the vocabulary");
  }
  if (spec.byte_fallback) {
    for (unsigned byte = 0; byte < 256; ++byte) byte_ids_.push_back(id_of(byte_piece(byte)).value_or(kMerged));
  }
  load_merges(spec);
  find_cuts(spec);

  built_by_merges_.resize(pieces_.size());
  Workspace workspace;
  std::vector<TokenId> ids;
  for (std::size_t id = 0; id < pieces_.size(); ++id) {
    ids.clear();
    if (!pieces_[id].empty()) merge_characters(pieces_[id], workspace, ids);
    built_by_merges_[id] = ids.size() == 1 && ids[0] == static_cast<TokenId>(id);
  }
}

void Bpe::load_vocabulary(std::vector<std::pair<std::string, TokenId>>&& vocabulary) {
  TokenId highest = -1;
  for (const auto& [piece, id] : vocabulary) {
    if (id < 0 || id > kMaxTokenId)
      refuse_model("token '" + piece + "' has an id outside 0.." + std::to_string(kMaxTokenId));
    highest = std::max(highest, id);
  }
  pieces_.resize(static_cast<std::size_t>(highest + 1));
  for (auto& [piece, id] : vocabulary) {
    std::string& own = pieces_[static_cast<std::size_t>(id)];
    if (!own.empty()) refuse_model("tokens '" + own + "' and '" + piece + "' share the id " + std::to_string(id));
    own = std::move(piece);
  }
  ids_.reserve(pieces_.size());
  characters_.assign(0x10000, kMerged);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::string& piece = pieces_[i];
    if (piece.empty()) continue;
    const auto id = static_cast<TokenId>(i);
    if (!ids_.emplace(piece, id).second) refuse_model("token '" + piece + "' occurs twice");
    std::size_t behind = 0;
    const char32_t first = next_code_point(piece, behind);
    if (behind == piece.size() && first < characters_.size()) characters_[first] = id;
  }
}

void Bpe::load_merges(const BpeSpec& spec) {
  merged_.reserve(spec.merges.size());
  std::string joined;
  for (const auto& [left, right] : spec.merges) {
    joined.assign(left).append(right);
    const auto left_id = id_of(left), right_id = id_of(right), id = id_of(joined);
    if (!left_id || !right_id || !id) {
      refuse_model("merge '" + left + " " + right + "' names or makes a token that is not in the vocabulary");
    }
    rank_of_.set(static_cast<std::uint32_t>(*left_id), static_cast<std::uint32_t>(*right_id),
                 static_cast<std::uint32_t>(merged_.size()));
    merged_.push_back(*id);
  }
}

// Two neighbouring characters that are tokens are joined only by a merge whose left side ends with the first and whose
// right side begins with the second, since a token's spelling is that of its merged symbols in a row.
void Bpe::find_cuts(const BpeSpec& spec) {
  std::vector<std::pair<char32_t, char32_t>> pairs;
  pairs.reserve(spec.merges.size());
  for (const auto& [left, right] : spec.merges) {
    std::size_t last = previous_character(left, left.size()), first = 0;
    pairs.emplace_back(next_code_point(left, last), next_code_point(right, first));
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  joinable_ = PairTable(pairs.size());
  for (const auto& [left, right] : pairs) joinable_.set(left, right, 1);
}

std::optional<TokenId> Bpe::id_of(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

bool Bpe::has_all_bytes() const {
  return !byte_ids_.empty() && std::ranges::none_of(byte_ids_, [](TokenId id) { return id == kMerged; });
}

bool Bpe::has_byte_level_alphabet() const {
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string spelled;
    append_byte_level(spelled, std::string(1, static_cast<char>(byte)));
    if (!id_of(spelled)) return false;
  }
  return true;
}

std::string_view Bpe::piece(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < pieces_.size() ? pieces_[static_cast<std::size_t>(id)]
                                                                  : std::string_view();
}

void Bpe::encode(std::string_view word, Workspace& workspace, std::vector<TokenId>& out) const {
  CHECK_LE(word.size(), static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  if (ignore_merges_) {
    if (const auto id = id_of(word)) {
      out.push_back(*id);
      return;
    }
  }
  if (word.size() < kWorthCutting) return encode_uncut(word, workspace, out);
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t end = cut_after(word, begin);
    encode_uncut(word.substr(begin, end - begin), workspace, out);
    begin = end;
  }
}

// The first position after `begin` that no merge crosses: between two characters that are tokens and not joinable.
std::size_t Bpe::cut_after(std::string_view word, std::size_t begin) const {
  std::size_t at = begin;
  char32_t left = next_code_point(word, at);
  while (at < word.size()) {
    const std::size_t cut = at;
    const char32_t right = next_code_point(word, at);
    if (!joinable_.find(left, right) && known_character(left) && known_character(right)) return cut;
    left = right;
  }
  return word.size();
}

void Bpe::encode_uncut(std::string_view word, Workspace& workspace, std::vector<TokenId>& out) const {
  const auto id = id_of(word);
  if (id && built_by_merges_[static_cast<std::size_t>(*id)]) {
    out.push_back(*id);
  } else {
    merge_characters(word, workspace, out);
  }
}

void Bpe::merge_characters(std::string_view word, Workspace& workspace, std::vector<TokenId>& out) const {
  load_symbols(word, workspace);
  merge(workspace);
  for (const Workspace::Symbol& symbol : workspace.symbols) {
    if (symbol.id != kMerged) out.push_back(symbol.id);
  }
}

std::optional<TokenId> Bpe::known_character(char32_t code) const {
  if (code < characters_.size()) return characters_[code] == kMerged ? std::nullopt : std::optional(characters_[code]);
  std::string character;
  append_utf8(character, code);
  return id_of(character);
}

void Bpe::load_symbols(std::string_view word, Workspace& workspace) const {
  std::vector<Workspace::Symbol>& symbols = workspace.symbols;
  symbols.clear();
  bool unknown_waits = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t begin = at;
    if (const auto id = known_character(next_code_point(word, at))) {
      if (unknown_waits) workspace.add(*unknown_);
      unknown_waits = false;
      workspace.add(*id);
    } else if (!add_bytes(word.substr(begin, at - begin), workspace) && unknown_) {
      if (unknown_waits && !fuse_unknown_) workspace.add(*unknown_);
      unknown_waits = true;
    }
  }
  if (unknown_waits) workspace.add(*unknown_);
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<std::int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<std::int32_t>(i) + 1 : -1;
  }
}

// Adds the character's bytes as tokens <0xNN>; false if the vocabulary lacks one of them. A pending unknown token stays
// pending and so comes after these bytes, as in the `tokenizers` package.
bool Bpe::add_bytes(std::string_view character, Workspace& workspace) const {
  if (byte_ids_.empty()) return false;
  const auto id_of_byte = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (!std::all_of(character.begin(), character.end(), [&](char byte) { return id_of_byte(byte) != kMerged; }))
    return false;
  for (const char byte : character) workspace.add(id_of_byte(byte));
  return true;
}

// The pair of the symbol at `left` and its right neighbour, if a merge joins them.
std::optional<std::uint64_t> Bpe::candidate(const Workspace& workspace, std::int32_t left) const {
  const Workspace::Symbol& symbol = workspace.symbols[static_cast<std::size_t>(left)];
  if (symbol.id == kMerged || symbol.next < 0) return std::nullopt;
  const auto rank =
      rank_of_.find(static_cast<std::uint32_t>(symbol.id),
                    static_cast<std::uint32_t>(workspace.symbols[static_cast<std::size_t>(symbol.next)].id));
  if (!rank) return std::nullopt;
  return std::uint64_t{*rank} << 32 | static_cast<std::uint32_t>(left);
}

void Bpe::merge(Workspace& workspace) const {
  std::vector<Workspace::Symbol>& symbols = workspace.symbols;
  std::vector<std::uint64_t>& first = workspace.first_candidates;
  std::vector<std::uint64_t>& heap = workspace.new_candidates;
  const auto push = [&](std::int32_t left) {
    const auto made = candidate(workspace, left);
    if (!made) return;
    heap.push_back(*made);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  first.clear();
  heap.clear();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (const auto made = candidate(workspace, static_cast<std::int32_t>(i))) first.push_back(*made);
  }
  std::sort(first.begin(), first.end());

  for (std::size_t taken = 0; taken < first.size() || !heap.empty();) {
    if (workspace.allowance != nullptr && !workspace.allowance->spend(4)) return;
    std::uint64_t top;
    if (heap.empty() || (taken < first.size() && first[taken] < heap.front())) {
      top = first[taken++];
    } else {
      top = heap.front();
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      heap.pop_back();
    }
    // The symbols may have changed since: the candidate counts only if the pair there now merges to the same token.
    const auto position = static_cast<std::int32_t>(top & UINT32_MAX);
    const TokenId merged = merged_[static_cast<std::size_t>(top >> 32)];
    const auto now = candidate(workspace, position);
    if (!now || merged_[static_cast<std::size_t>(*now >> 32)] != merged) continue;

    Workspace::Symbol& left = symbols[static_cast<std::size_t>(position)];
    Workspace::Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    left.id = merged;
    left.next = right.next;
    right.id = kMerged;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = position;
    if (left.previous >= 0) push(left.previous);
    push(position);
  }
}

}  // namespace quire::text
