// Philox4x32-10: four random words from a counter and a key. A pure function without generator state.
// Shape   counter 4 x u32, key 2 x u32 -> 4 x u32. Integers only, so the same bits everywhere.
// Thread  any.
// Source  Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"; tested with the known
//         answers of Random123.
#pragma once

#include <cstdint>

namespace quire::sample {

struct PhiloxCounter {
  std::uint32_t words[4];
};

struct PhiloxKey {
  std::uint32_t words[2];
};

inline constexpr int kPhiloxRounds = 10;

constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  auto [c0, c1, c2, c3] = counter.words;
  auto [k0, k1] = key.words;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xd2511f53u} * c0;
    const std::uint64_t product1 = std::uint64_t{0xcd9e8d57u} * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(product0);
    k0 += 0x9e3779b9u;  // golden ratio
    k1 += 0xbb67ae85u;  // sqrt(3) - 1
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace quire::sample
