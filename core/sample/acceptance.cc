#include "core/sample/acceptance.h"

#include <algorithm>
#include <cstddef>

#include "core/base/check.h"

namespace quire::sample {
namespace {

// The residual distribution of a row: scratch.weights, not normalised, and scratch.z, their logarithms.
class Residual {
 public:
  Residual(const RowDistribution& odds, Scratch& scratch);

  double total() const { return static_cast<double>(mass_) / kMassOfOne; }
  double weight(TokenId token) const {
    const auto at = static_cast<std::size_t>(token);
    return at < odds_.vocab ? static_cast<double>(scratch_.weights[at]) : 0.0;
  }
  // True if the draft token is accepted. If not, its distribution q is subtracted from the residual.
  bool take(const DraftToken& draft_token, double coin);
  // weight = max(weight - scale · q, 0). Returns false and changes nothing if that would leave no mass.
  bool remove(const DraftToken& draft_token, double scale);
  void remove(TokenId token) { set(token, 0.0f); }
  TokenId draw(const Params& params, std::uint32_t position, std::uint32_t depth);

 private:
  void set(TokenId token, float weight);

  RowDistribution odds_;
  Scratch& scratch_;
  std::uint64_t mass_ = 0;
};

// Calls body(likelihood) for each token of the draft token's distribution q.
template <typename Body>
void for_each_of(const DraftToken& draft_token, const Body& body) {
  if (draft_token.distribution.empty()) return body(TokenProbability{draft_token.token, 1.0f});
  for (const TokenProbability& one : draft_token.distribution) body(one);
}

double chance_of(const DraftToken& draft_token) {
  double chance = 0.0;
  for_each_of(draft_token, [&](const TokenProbability& one) {
    if (one.token == draft_token.token) chance = static_cast<double>(one.chance);
  });
  return chance;
}

double coin_at(const Params& params, std::uint32_t index, std::uint32_t position, std::uint32_t depth) {
  return coin(params.seed, index, position, params.choice_index, ahead(Domain::kCoin, depth));
}

RowDistribution odds_of_row(const VerifiedRow& row, const Params& params, Scratch& scratch) {
  return distribution_of(row.logits, row.highest, params, row.edits, scratch);
}

// The number of draft tokens of the chain that are accepted, and P after the last of them.
struct Taken {
  std::size_t num = 0;
  double part = 1.0;
};
Taken take_block(std::span<const VerifiedRow> rows, std::span<const DraftToken> chain, const Params& params,
                 Scratch& scratch);

}  // namespace

SampledToken accept_or_resample(const VerifiedRow& row, std::span<const DraftToken> draft_tokens, std::uint32_t depth,
                                const Params& params, Scratch& scratch) {
  const RowDistribution odds = odds_of_row(row, params, scratch);
  if (odds.likeliest < 0) return {-1, false};
  SampledToken drawn;
  if (draft_tokens.empty()) {
    drawn.token = draw_from(odds, params, row.position, ahead(Domain::kResidual, depth), scratch);
  } else {
    Residual left(odds, scratch);
    for (std::uint32_t i = 0; i < draft_tokens.size() && drawn.token < 0; ++i) {
      if (left.take(draft_tokens[i], coin_at(params, i, row.position, depth))) drawn.token = draft_tokens[i].token;
    }
    if (drawn.token < 0) drawn.token = left.draw(params, row.position, depth);
  }
  describe(drawn, row.logits, row.highest, params, scratch, row.room);
  return drawn;
}

void verify_chain(std::span<const VerifiedRow> rows, std::span<const DraftToken> chain, const Params& params,
                  Scratch& scratch, std::span<SampledToken> drawn) {
  CHECK_EQ(rows.size(), chain.size() + 1);
  CHECK_EQ(drawn.size(), rows.size());
  const Taken taken = take_block(rows, chain, params, scratch);
  std::ranges::fill(drawn, SampledToken{});
  for (std::size_t i = 0; i < taken.num; ++i) {
    drawn[i].token = chain[i].token;
    describe(drawn[i], rows[i].logits, rows[i].highest, params, scratch, rows[i].room);
  }
  const VerifiedRow& last = rows[taken.num];
  SampledToken& said = drawn[taken.num];
  const RowDistribution odds = odds_of_row(last, params, scratch);
  said.finite = odds.likeliest >= 0;
  if (!said.finite) return;
  const auto depth = static_cast<std::uint32_t>(taken.num) + 1;
  if (taken.num == chain.size()) {
    said.token = draw_from(odds, params, last.position, ahead(Domain::kResidual, depth), scratch);
  } else {
    Residual left(odds, scratch);
    left.remove(chain[taken.num], left.total() / taken.part);
    left.remove(chain[taken.num].token);  // its weight is 0 but for rounding
    said.token = left.draw(params, last.position, depth);
  }
  describe(said, last.logits, last.highest, params, scratch, last.room);
}

namespace {

Taken take_block(std::span<const VerifiedRow> rows, std::span<const DraftToken> chain, const Params& params,
                 Scratch& scratch) {
  Taken taken;
  double part = 1.0;
  const auto settle = [&](std::size_t num, double chance) {
    const auto depth = static_cast<std::uint32_t>(num);
    if (num > 0 && coin_at(params, 0, rows[num - 1].position, depth) < chance) taken = {num, part};
  };
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const RowDistribution odds = odds_of_row(rows[i], params, scratch);
    if (odds.likeliest < 0) {
      settle(i, part);
      return taken;
    }
    const Residual row(odds, scratch);
    const double total = row.total();
    double common = 0.0;
    for_each_of(chain[i], [&](const TokenProbability& one) {
      common += std::min(part * row.weight(one.token) / total, static_cast<double>(one.chance));
    });
    const double rest = std::max(part - common, 0.0);
    settle(i, part >= 1.0 ? 1.0 : rest / (rest + 1.0 - part));
    const double weight = row.weight(chain[i].token);
    if (!(weight > 0.0)) return taken;
    part = std::min(1.0, part * weight / (chance_of(chain[i]) * total));
  }
  settle(chain.size(), part);
  return taken;
}

Residual::Residual(const RowDistribution& odds, Scratch& scratch) : odds_(odds), scratch_(scratch) {
  float* z = scratch.z.data();
  float* weights = scratch.weights.data();
  for (std::size_t i = 0; i < odds.vocab; ++i) {
    if (z[i] < odds.range.lowest || z[i] > odds.range.highest) z[i] = kMasked;
    weights[i] = z[i];
  }
  odds_.range = {};
  scratch.exp_each(weights, odds.vocab);
  for (std::size_t i = 0; i < odds.vocab; ++i) mass_ += mass_of(weights[i]);
}

bool Residual::take(const DraftToken& draft_token, double coin) {
  if (coin * chance_of(draft_token) * total() < weight(draft_token.token)) return true;
  // If p and q differ by rounding alone, no mass would be left: accept, unless p(x) is 0.
  return !remove(draft_token, total()) && weight(draft_token.token) > 0.0;
}

bool Residual::remove(const DraftToken& draft_token, double scale) {
  const auto after = [&](const TokenProbability& one) {
    const double rest = weight(one.token) - static_cast<double>(one.chance) * scale;
    return rest > 0.0 ? static_cast<float>(rest) : 0.0f;
  };
  std::uint64_t left = mass_;
  for_each_of(draft_token, [&](const TokenProbability& one) {
    left -= mass_of(static_cast<float>(weight(one.token))) - mass_of(after(one));
  });
  if (left == 0) return false;
  for_each_of(draft_token, [&](const TokenProbability& one) { set(one.token, after(one)); });
  return true;
}

void Residual::set(TokenId token, float weight) {
  const auto at = static_cast<std::size_t>(token);
  if (at >= odds_.vocab) return;
  mass_ -= mass_of(scratch_.weights[at]) - mass_of(weight);
  scratch_.weights[at] = weight;
  scratch_.z[at] = weight > 0.0f ? log_f32(weight) : kMasked;
}

TokenId Residual::draw(const Params& params, std::uint32_t position, std::uint32_t depth) {
  const auto z = std::span(scratch_.z).first(odds_.vocab);
  odds_.likeliest = static_cast<TokenId>(std::ranges::max_element(z) - z.begin());
  CHECK_GT(z[static_cast<std::size_t>(odds_.likeliest)], kMasked);
  return draw_from(odds_, params, position, ahead(Domain::kResidual, depth), scratch_);
}

}  // namespace
}  // namespace quire::sample
