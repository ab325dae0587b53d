#include "core/grammar/vocabulary.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/check.h"

namespace quire::grammar {

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
  std::vector<std::uint32_t> open{0};  // the beginnings of the piece before, by their depth
  const auto close = [&] {
    Node& node = tree_[open.back()];
    open.pop_back();
    node.end = static_cast<std::uint32_t>(tree_.size());
    node.reach = std::max(node.reach, static_cast<std::uint8_t>(std::min<std::uint16_t>(node.depth, 255)));
    if (!open.empty()) tree_[open.back()].reach = std::max(tree_[open.back()].reach, node.reach);
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
      tree_.push_back({0, i, static_cast<std::uint16_t>(depth), static_cast<std::uint8_t>(here[depth - 1]), 0});
    }
    before = here;
  }
  while (!open.empty()) close();
  tree_.push_back({tree_[0].end, static_cast<std::uint32_t>(sorted_.size())});
}

}  // namespace quire::grammar
