// Typed ids, which do not convert into each other or from integers: BlockId, SeqId, CacheNamespace; and TokenId.
// Thread  any; values.
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

// Key of the prefix cache: requests share cached blocks only if theirs are equal. A digest of everything besides the
// tokens that K and V, or the right to see them, depend on (numeric mode, adapter, tenant, salt).
struct CacheNamespace {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(CacheNamespace, CacheNamespace) = default;
};

// Index of a token in the vocabulary. A plain integer, because kernels index with it; validated against the logits
// width at admission.
using TokenId = std::int32_t;

// True if all ids are valid. A tokenizer may have more tokens than the model has logits.
inline bool all_below(std::span<const TokenId> ids, std::uint32_t logits_width) {
  return std::ranges::all_of(ids, [=](TokenId id) { return id >= 0 && static_cast<std::uint32_t>(id) < logits_width; });
}

}  // namespace quire

template <typename Tag, typename Rep>
struct std::hash<quire::Id<Tag, Rep>> {
  std::size_t operator()(quire::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>()(id.value); }
};
