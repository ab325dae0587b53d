// A row of numbers as a hash key: for sets of states, and signatures of states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::grammar {

using NumberRow = std::vector<std::uint32_t>;

struct NumberRowHash {
  std::size_t operator()(const NumberRow& row) const {
    std::uint64_t hash = 0x9E3779B97F4A7C15;
    for (const std::uint32_t number : row) {
      hash = (hash ^ number) * 0xFF51AFD7ED558CCD;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

}  // namespace quire::grammar
