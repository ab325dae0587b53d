// What the tools that run draft heads for the golden tests share: a prompt from a file, and where its rows lie.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/start_error.h"

namespace quire::golden {

inline constexpr std::uint32_t kBlockTokens = 16;

inline std::vector<TokenId> read_tokens(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<TokenId> tokens(bytes.size() / sizeof(TokenId));
  std::copy_n(bytes.data(), tokens.size() * sizeof(TokenId), reinterpret_cast<char*>(tokens.data()));
  if (tokens.size() < 2) throw StartError(path + " holds fewer than two tokens");
  return tokens;
}

// Blocks in descending order, so that a mistake between positions and slots shows.
struct Place {
  explicit Place(std::uint32_t num_blocks) {
    for (std::uint32_t i = 0; i < num_blocks; ++i) table.emplace_back(num_blocks - 1 - i);
  }
  std::uint32_t slot(std::uint32_t position) const {
    return table[position / kBlockTokens].value * kBlockTokens + position % kBlockTokens;
  }
  std::vector<BlockId> table;
};

}  // namespace quire::golden
