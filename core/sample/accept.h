// By which rule guesses at a sequence's tokens are taken (acceptance.h).
//   match   the row's own draw is said, and a guess is right where it is that: the tokens are those of no guesses at all
//   ratio   a guess is taken with a chance, from what it was drawn from and what the row says; else what is left is drawn from
//   block   ratio for a chain as a whole: more of it is taken
// Under ratio and block what is promised is the law that tokens are drawn from, not the tokens. A greedy request matches.
// Thread  any; pure.
// Source  match: ours. ratio: Leviathan et al. 2023, Chen et al. 2023. block: Sun et al. 2024.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quire::sample {

enum class Accept : std::uint8_t { kMatch, kRatio, kBlock };

inline constexpr std::array<std::string_view, 3> kAcceptNames = {"match", "ratio", "block"};

constexpr std::string_view name_of(Accept accept) { return kAcceptNames[static_cast<std::size_t>(accept)]; }

constexpr std::optional<Accept> accept_named(std::string_view name) {
  for (std::size_t i = 0; i < kAcceptNames.size(); ++i) {
    if (kAcceptNames[i] == name) return static_cast<Accept>(i);
  }
  return std::nullopt;
}

}  // namespace quire::sample
