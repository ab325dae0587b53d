// Test support: texts at random, and what follows somewhere, written down: what drafters that look texts up are compared with.
#pragma once

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/speculate/lookup/continuations.h"

namespace quire::test {

using Tokens = std::vector<TokenId>;

inline Tokens random_tokens(std::size_t count, int vocab, unsigned seed) {
  std::mt19937 random(seed);
  Tokens out(count);
  for (TokenId& token : out) token = static_cast<TokenId>(random() % vocab);
  return out;
}

class Listed final : public speculate::Followers {
 public:
  Listed() = default;
  explicit Listed(std::vector<Tokens> listed) : texts(std::move(listed)) {}
  TokenId after(std::uint32_t i, std::uint32_t ahead) const override {
    return ahead < texts[i].size() ? texts[i][ahead] : kNothing;
  }
  std::vector<Tokens> texts;
};

}  // namespace quire::test
