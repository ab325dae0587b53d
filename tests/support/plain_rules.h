// A request's rules applied to a row of logits as rules.h says it, from the tokens alone and token by token of the
// vocabulary: what the incremental way is compared with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/rules.h"

namespace quire::testing {

inline bool plainly_forbidden(const sample::Rules& rules, TokenId token, std::span<const TokenId> answer,
                              std::span<const TokenId> ends) {
  if (!rules.allowed.empty() && std::ranges::count(rules.allowed, token) == 0) return true;
  if (answer.size() < rules.min_tokens && std::ranges::count(ends, token) != 0) return true;
  std::vector<TokenId> then(answer.begin(), answer.end());
  then.push_back(token);
  return std::ranges::any_of(rules.bad_words, [&](const std::vector<TokenId>& word) {
    return word.size() <= then.size() && std::equal(word.rbegin(), word.rend(), then.rbegin());
  });
}

inline std::vector<float> plainly_adjusted(std::span<const float> logits, const sample::Rules& rules,
                                           std::span<const TokenId> prompt, std::span<const TokenId> answer,
                                           std::span<const TokenId> ends) {
  std::vector<float> row(logits.begin(), logits.end());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    float& x = row[i];
    const auto times = std::ranges::count(answer, token);
    if (times + std::ranges::count(prompt, token) != 0) {
      x = x > 0 ? x / rules.repetition_penalty : x * rules.repetition_penalty;
    }
    x -= rules.frequency_penalty * static_cast<float>(times);
    if (times != 0) x -= rules.presence_penalty;
    for (const sample::Bias& bias : rules.bias) x += bias.token == token ? bias.add : 0.0f;
    if (plainly_forbidden(rules, token, answer, ends)) x = -std::numeric_limits<float>::infinity();
  }
  return row;
}

}  // namespace quire::testing
