// The rule by which the draft tokens of a sequence are accepted (acceptance.h).
//   match   a draft token is accepted if the row samples that same token: the output is the one without speculation
//   ratio   rejection sampling: a draft token is accepted with a probability computed from its draft distribution and
//           the row's distribution; after a rejection, the token is sampled from the rest of the row's distribution
//   block   block verification: ratio for a chain as a whole, which accepts more of it
// Under ratio and block the distribution of the output is guaranteed, not its tokens. Greedy requests always use match.
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
