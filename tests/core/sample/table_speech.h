// Test support: a model and a drafter that are tables, by the last two tokens, so that the law of what comes next can
// be written down in f64; and speech as a server makes it, a draft and a walk at a time. Flaws are what such servers
// got wrong: with one the same statistic must fail.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/sample/acceptance.h"
#include "core/sample/reference.h"
#include "tests/core/sample/rows.h"

namespace quire::sample {

enum class Flaw {
  kNone,
  kResidualsNoise,        // guesses are drawn with the noise that draws what is left
  kCoinsNoise,            // guesses are drawn with the coin that judges them
  kNoResidual,            // behind a guess that is not taken p is drawn from
  kDiscardThenStop,       // an unlikely guess is left out
  kZeroCoin,              // the coin is 0: every guess is taken
  kOldNoise,              // guesses at a position have one noise, whichever step guesses
  kAnothersDistribution,  // the law of another row
};

class TableSpeech {
 public:
  static constexpr std::uint32_t kDepth = 3;

  // `vocab` tokens; the drafter's logits are the target's, `apart` away.
  TableSpeech(std::uint32_t vocab, float apart, const Params& params)
      : vocab_(vocab), params_(params), scratch_(vocab) {
    for (std::uint32_t i = 0; i < vocab * vocab; ++i) {
      target_.push_back(bell_row(vocab, 4.0f, 1000 + i));
      distributions_.push_back(reference_distribution(target_.back(), params));
      std::vector<float> row = target_.back();
      const std::vector<float> away = bell_row(vocab, apart, 5000 + i);
      for (std::size_t k = 0; k < row.size(); ++k) row[k] += away[k];
      proposals_.emplace_back();
      const std::vector<double> distribution = reference_distribution(row, {.temperature = params.temperature});
      for (std::size_t k = 0; k < distribution.size(); ++k) {
        proposals_.back().push_back({static_cast<TokenId>(k), static_cast<float>(distribution[k])});
      }
    }
  }

  // By the first `count` tokens, as digits.
  std::vector<double> distribution(std::uint32_t count) const {
    std::vector<double> joint;
    extend_distribution({1, 0}, count, 1.0, joint);
    return joint;
  }
  std::vector<double> counts(std::uint32_t count, Flaw flaw, std::uint32_t num_seeds) {
    std::vector<double> cells(static_cast<std::size_t>(std::pow(vocab_, count) + 0.5));
    for (std::uint32_t seed = 0; seed < num_seeds; ++seed) {
      const std::vector<TokenId> text = tell(seed, count, flaw);
      std::size_t cell = 0;
      for (std::uint32_t i = 0; i < count; ++i) cell = cell * vocab_ + static_cast<std::size_t>(text[2 + i]);
      cells[cell] += 1.0;
    }
    return cells;
  }
  // The probability that a first draft token is accepted.
  double alpha() const {
    const std::size_t first = row_of(std::vector<TokenId>{1, 0});
    double sum = 0.0;
    for (std::size_t k = 0; k < vocab_; ++k) {
      sum += std::min(distributions_[first][k], static_cast<double>(proposals_[first][k].chance));
    }
    return sum;
  }
  std::uint64_t num_draft_tokens() const { return num_draft_tokens_; }
  std::uint64_t num_taken() const { return num_taken_; }
  double first_taken() const { return static_cast<double>(num_first_taken_) / static_cast<double>(num_tellings_); }

 private:
  std::size_t row_of(std::span<const TokenId> text) const {
    return static_cast<std::size_t>(text[text.size() - 2]) * vocab_ + static_cast<std::size_t>(text.back());
  }
  void extend_distribution(const std::vector<TokenId>& text, std::uint32_t count, double before,
                           std::vector<double>& out) const {
    if (count == 0) return out.push_back(before);
    for (std::size_t k = 0; k < vocab_; ++k) {
      std::vector<TokenId> longer = text;
      longer.push_back(static_cast<TokenId>(k));
      extend_distribution(longer, count - 1, before * distributions_[row_of(text)][k], out);
    }
  }

  std::vector<TokenId> tell(std::uint64_t seed, std::uint32_t count, Flaw flaw) {
    params_.seed = seed;
    std::vector<TokenId> text = {1, 0};
    ++num_tellings_;
    while (text.size() < 2 + count) step(text, flaw);
    return text;
  }

  TokenId propose(std::span<const TokenProbability> distribution, std::uint32_t position, std::uint32_t depth,
                  Flaw flaw) const {
    Domain domain = ahead(Domain::kProposal, depth);
    if (flaw == Flaw::kResidualsNoise) domain = ahead(Domain::kResidual, depth);
    if (flaw == Flaw::kOldNoise) domain = Domain::kProposal;
    if (flaw == Flaw::kCoinsNoise) {
      double left = coin(params_.seed, 0, position, 0, ahead(Domain::kCoin, depth));
      for (const TokenProbability& one : distribution) {
        left -= static_cast<double>(one.chance);
        if (left < 0.0) return one.token;
      }
      return distribution.back().token;
    }
    TokenId best = -1;
    float best_score = 0.0f;
    for (const TokenProbability& one : distribution) {
      const float score = log_f32(one.chance) + gumbel(params_.seed, one.token, position, 0, domain);
      if (best >= 0 && score <= best_score) continue;
      best = one.token;
      best_score = score;
    }
    return best;
  }

  // A draft of up to kDepth, and what becomes of it.
  void step(std::vector<TokenId>& text, Flaw flaw) {
    const auto root = static_cast<std::uint32_t>(text.size()) - 1;
    std::vector<TokenId> drafted = text;
    std::vector<DraftToken> chain;
    for (std::uint32_t depth = 1; depth <= kDepth; ++depth) {
      const std::vector<TokenProbability>& distribution = proposals_[row_of(drafted)];
      const TokenId token = propose(distribution, root + depth, depth, flaw);
      if (flaw == Flaw::kDiscardThenStop && distribution[static_cast<std::size_t>(token)].chance < 0.3f) break;
      chain.push_back({token, flaw == Flaw::kAnothersDistribution
                                  ? proposals_[(row_of(drafted) + 1) % proposals_.size()]
                                  : distribution});
      drafted.push_back(token);
    }
    std::vector<VerifiedRow> rows;
    for (std::size_t i = 0; i <= chain.size(); ++i) {
      const std::vector<float>& row = target_[row_of(std::span(drafted).first(text.size() + i))];
      rows.push_back({row, highest_of(row), root + 1 + static_cast<std::uint32_t>(i)});
    }
    num_draft_tokens_ += chain.size();
    const std::vector<TokenId> said = verified(rows, chain, flaw);
    num_taken_ += said.size() - 1;
    if (root == 1 && said.size() > 1) ++num_first_taken_;
    text.insert(text.end(), said.begin(), said.end());
  }

  std::vector<TokenId> verified(const std::vector<VerifiedRow>& rows, const std::vector<DraftToken>& chain, Flaw flaw) {
    std::vector<TokenId> said;
    std::vector<SampledToken> drawn(rows.size());
    const bool block = params_.accept == Accept::kBlock;
    if (block) verify_chain(rows, chain, params_, scratch_, drawn);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto draft_token = std::span(chain).subspan(i, i < chain.size() ? 1 : 0);
      if (!block)
        drawn[i] = accept_or_resample(rows[i], draft_token, static_cast<std::uint32_t>(i) + 1, params_, scratch_);
      TokenId token = drawn[i].token;
      const bool taken = !draft_token.empty() && token == draft_token[0].token;
      if (flaw == Flaw::kZeroCoin && !draft_token.empty()) token = draft_token[0].token;
      if (flaw == Flaw::kNoResidual && !draft_token.empty() && !taken) {
        token = draw(rows[i].logits, params_, rows[i].position, scratch_).token;
      }
      said.push_back(token);
      if (!taken && !(flaw == Flaw::kZeroCoin && !block && !draft_token.empty())) break;
    }
    return said;
  }

  const std::uint32_t vocab_;
  Params params_;
  Scratch scratch_;
  std::vector<std::vector<float>> target_;
  std::vector<std::vector<double>> distributions_;
  std::vector<std::vector<TokenProbability>> proposals_;
  std::uint64_t num_draft_tokens_ = 0;
  std::uint64_t num_taken_ = 0;
  std::uint64_t num_first_taken_ = 0;
  std::uint64_t num_tellings_ = 0;
};

// Distance of counts from a distribution: 1 is reached by chance once in a million times. Cells with an expected count
// below five are merged. Wilson & Hilferty 1931.
inline double strangeness(std::span<const double> counts, std::span<const double> distribution) {
  double num = 0.0;
  for (const double count : counts) num += count;
  double chi = 0.0, pooled = 0.0, pooled_expected = 0.0;
  int cells = 0;
  const auto add = [&](double got, double expected) {
    chi += (got - expected) * (got - expected) / expected;
    ++cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (distribution[i] * num < 5.0) {
      pooled += counts[i];
      pooled_expected += distribution[i] * num;
    } else {
      add(counts[i], distribution[i] * num);
    }
  }
  if (pooled > 0.0 && pooled_expected < 1e-9 * num) return 1e9;  // what cannot be was said
  if (pooled_expected >= 1.0) add(pooled, pooled_expected);
  const double freedom = cells - 1;
  const double spread = 2.0 / (9.0 * freedom);
  return chi / (freedom * std::pow(1.0 - spread + 4.753 * std::sqrt(spread), 3.0));
}

inline double total_variation(std::span<const double> counts, std::span<const double> distribution) {
  double num = 0.0;
  for (const double count : counts) num += count;
  double sum = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i) sum += std::abs(counts[i] / num - distribution[i]) / 2.0;
  return sum;
}

}  // namespace quire::sample
