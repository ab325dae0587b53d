#include "core/grammar/rules/vocabulary.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/base/check.h"

namespace quire::grammar {
namespace {

// The state of a UTF-8 decoder within a character.
struct Character {
  std::uint32_t left = 0;                  // bytes still missing
  std::uint8_t first = 0x80, last = 0xBF;  // range of the next byte

  bool take(std::uint8_t byte) {  // false: not part of a character beyond ASCII
    if (left > 0 && byte >= first && byte <= last) {
      *this = {left - 1};
      return true;
    }
    *this = {};
    if (byte >= 0xC2 && byte <= 0xDF) *this = {1};
    if (byte >= 0xE0 && byte <= 0xEF)
      *this = {2, byte == 0xE0 ? kThirdLeast : kLeast, byte == 0xED ? kNoSurrogate : kMost};
    if (byte >= 0xF0 && byte <= 0xF4)
      *this = {3, byte == 0xF0 ? kFourthLeast : kLeast, byte == 0xF4 ? kLastPlane : kMost};
    return left > 0;
  }

  static constexpr std::uint8_t kLeast = 0x80, kMost = 0xBF;
  static constexpr std::uint8_t kThirdLeast = 0xA0, kNoSurrogate = 0x9F, kFourthLeast = 0x90, kLastPlane = 0x8F;
};

std::array<std::uint8_t, 128> make_ascii_classes() {
  std::array<std::uint8_t, 128> classes{};
  std::uint8_t next = 8;
  for (std::size_t c = 0; c < 128; ++c) {
    const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z', digit = c >= '0' && c <= '9';
    const std::size_t blank = std::string_view(" \n\t\r").find(static_cast<char>(c));
    if (lower || upper || digit) {
      classes[c] = lower ? 0 : upper ? 1 : 2;
    } else if (blank != std::string_view::npos) {
      classes[c] = static_cast<std::uint8_t>(3 + blank);
    } else {
      classes[c] = c < 32 || c == 127 ? 7 : next++;
    }
  }
  CHECK_EQ(next, Vocabulary::kNumAsciiClasses);
  return classes;
}

}  // namespace

std::uint32_t Vocabulary::ascii_class(std::uint8_t byte) {
  static const std::array<std::uint8_t, 128> classes = make_ascii_classes();
  return classes[byte];
}

Vocabulary::Vocabulary(std::vector<std::string> pieces, std::vector<TokenId> ends)
    : pieces_(std::move(pieces)), ends_(std::move(ends)) {
  for (const TokenId id : ends_) pieces_.at(static_cast<std::size_t>(id)).clear();
  for (std::size_t id = 0; id < pieces_.size(); ++id) {
    if (!pieces_[id].empty()) sorted_.push_back(static_cast<TokenId>(id));
  }
  std::stable_sort(sorted_.begin(), sorted_.end(), [this](TokenId a, TokenId b) { return piece(a) < piece(b); });
  grow_tree();
}

bool Vocabulary::is_end(TokenId id) const { return std::find(ends_.begin(), ends_.end(), id) != ends_.end(); }

void Vocabulary::grow_tree() {
  tree_.push_back({});
  classes_.push_back(0);
  std::vector<std::uint32_t> open{0};    // nodes on the path of the previous piece, by depth
  std::vector<Character> characters(1);  // the decoder's state at each of them
  const auto close = [&] {
    Node& node = tree_[open.back()];
    const Classes classes = classes_[open.back()] & ~(kEndsWithin | kOwnMalformed);
    open.pop_back();
    characters.pop_back();
    node.end = static_cast<std::uint32_t>(tree_.size());
    node.reach = std::max(node.reach, static_cast<std::uint8_t>(std::min<std::uint16_t>(node.depth, 255)));
    if (open.empty()) return;
    tree_[open.back()].reach = std::max(tree_[open.back()].reach, node.reach);
    classes_[open.back()] |= classes;
  };
  std::string_view before;
  for (std::uint32_t i = 0; i < sorted_.size(); ++i) {
    const std::string_view here = piece(sorted_[i]);
    CHECK_LE(here.size(), std::size_t{std::numeric_limits<std::uint16_t>::max()});
    const auto differ = std::mismatch(before.begin(), before.end(), here.begin(), here.end());
    const auto shared = static_cast<std::size_t>(differ.first - before.begin());
    while (open.size() > shared + 1) close();
    for (std::size_t depth = shared + 1; depth <= here.size(); ++depth) {
      open.push_back(static_cast<std::uint32_t>(tree_.size()));
      const auto byte = static_cast<std::uint8_t>(here[depth - 1]);
      tree_.push_back({0, i, static_cast<std::uint16_t>(depth), byte, 0});
      Character character = characters.back();
      const bool within = character.left > 0;
      const bool goes_on = character.take(byte) && (byte < 0xC0 || !within);
      characters.push_back(character);
      const Classes own = byte < 128 ? Classes{1} << ascii_class(byte) : kCharacter;
      const bool malformed = !goes_on && (within || byte >= 128);
      classes_.push_back(own | (malformed ? kMalformed | kOwnMalformed : 0) | (character.left > 0 ? kEndsWithin : 0));
    }
    before = here;
  }
  while (!open.empty()) close();
  tree_.push_back({tree_[0].end, static_cast<std::uint32_t>(sorted_.size())});
}

}  // namespace quire::grammar
