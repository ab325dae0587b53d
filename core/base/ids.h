// Numbers that name things and do not mix: a BlockId is no SeqId is no int.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <span>

namespace quire {

template <typename Tag, typename Rep>
struct Id {
  Rep value = 0;

  constexpr Id() = default;
  constexpr explicit Id(Rep v) : value(v) {}
  friend constexpr auto operator<=>(Id, Id) = default;
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << +id.value; }
};

using BlockId = Id<struct BlockIdTag, std::uint32_t>;  // a physical KV block of the pool
using SeqId = Id<struct SeqIdTag, std::uint64_t>;      // a sequence inside the engine; never reused

// Who may share cached blocks with whom: prompts meet in the prefix cache only under equal roots. A digest of
// everything
// besides the tokens that K and V, or the right to see them, depend on (numeric mode, adapter, tenant, salt).
struct CacheRoot {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(CacheRoot, CacheRoot) = default;
};

// A token's number in the vocabulary. Plain, because kernels index with it; validated against the logits width at
// admission.
using TokenId = std::int32_t;

// A tokenizer may know more tokens than the model has rows for.
inline bool all_below(std::span<const TokenId> ids, std::uint32_t logits_width) {
  return std::ranges::all_of(ids, [=](TokenId id) { return id >= 0 && static_cast<std::uint32_t>(id) < logits_width; });
}

}  // namespace quire

template <typename Tag, typename Rep>
struct std::hash<quire::Id<Tag, Rep>> {
  std::size_t operator()(quire::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>()(id.value); }
};
