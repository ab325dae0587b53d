// Samples logits rows: the draw of core/sample/sampler.h, its log probabilities and likeliest tokens (logprob.h), the
// score of a given token, and draft verification by matching tokens (core/backend/batch.h). Tokens, numbers and lists
// are the host's, bit for bit.
//   Only a draft's nodes on the accepted path are sampled; the highest logits of all of them are known from
//   the first pass (choose_rows.h).
// Shape   said, tokens [R] by logits row of the step; lists: each row's from its own offset on.
// Launch  one thread block per verification.
// Order   none: masses and counts are integers, everything else is a maximum, ties to the lowest id; so the threads of
//         a block may share a row in any way. Noise is a function of seed, position and token.
// Reads   of a row: once for the draw, once for log probabilities. The first filter, and the likeliest tokens, read it
//         twice and use the list from then on; if the values do not fit there, each filter reads the row five times,
//         the likeliest seven.
// Thread  called by all threads of the block.
// Source  core/sample and core/backend/host_sampler.h.
#pragma once

#include "core/sample/logprob.h"
#include "gpu/kernels/choose/choose_select.h"

namespace quire::gpu {

struct ChooseVerified {
  struct Args {
    const LogitsRowArgs* rows = nullptr;
    const VerificationArgs* verifications = nullptr;
    const NodeToVerify* nodes = nullptr;
    const float* logits = nullptr;  // [R, width]
    std::uint32_t width = 0;
    std::uint32_t vocab = 0;
    const float* copies = nullptr;            // [copies, width] rows with their edits
    const HighestOfPiece* highest = nullptr;  // [rows, num_pieces]
    std::uint32_t num_pieces = 0;
    SampledRow* said = nullptr;
    TokenId* tokens = nullptr;
    sample::Candidate* lists = nullptr;
  };
  static constexpr unsigned kThreads = kChooseThreads;
  static constexpr std::size_t kSharedBytes = ChooseWork::kBytes;

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const ChooseWork work(shared);
    const VerificationArgs& verification = a.verifications[block().x];
    const NodeToVerify* nodes = a.nodes + verification.first_node;
    std::uint64_t visited = 0;
    std::int32_t at = -1;
    QUIRE_ROLLED do {
      const std::uint32_t row = verification.first_row + static_cast<std::uint32_t>(at + 1);
      const SampledRow said = sample_row(a, row, work);
      if (thread() == 0) emit(a, a.rows[row], said);
      at = said.token < 0 ? -1 : child(nodes, verification.num_nodes, at, said.token);
      if (at >= 0) visited |= std::uint64_t{1} << at;
    }
    while (at >= 0)
      ;
    for (std::uint32_t i = thread(); i < verification.num_nodes; i += kThreads) {
      if ((visited >> i & 1) != 0) continue;
      SampledRow said;
      if ((verification.lookahead_nodes >> i & 1) != 0) said.token = likeliest_of(a, verification.first_row + 1 + i);
      emit(a, a.rows[verification.first_row + 1 + i], said);
    }
  }

 private:
  QUIRE_DEVICE static void emit(const Args& a, const LogitsRowArgs& row, const SampledRow& said) {
    a.said[row.logits_row] = said;
    a.tokens[row.logits_row] = said.token;
  }

  // The first child that has the token; -1: none.
  QUIRE_DEVICE static std::int32_t child(const NodeToVerify* nodes, std::uint32_t num_nodes, std::int32_t parent,
                                         TokenId token) {
    for (std::uint32_t i = static_cast<std::uint32_t>(parent + 1); i < num_nodes; ++i) {
      if (nodes[i].parent == parent && nodes[i].token == token) return static_cast<std::int32_t>(i);
    }
    return -1;
  }

  QUIRE_DEVICE static HighestOfPiece highest_of(const Args& a, std::uint32_t row) {
    const HighestOfPiece* pieces = a.highest + std::size_t{row} * a.num_pieces;
    HighestOfPiece all = pieces[0];
    for (std::uint32_t i = 1; i < a.num_pieces; ++i) {
      if (pieces[i].raw > all.raw) all.raw = pieces[i].raw;
      if (pieces[i].edited > all.edited) all.edited = pieces[i].edited;
    }
    return all;
  }
  QUIRE_DEVICE static TokenId likeliest_of(const Args& a, std::uint32_t row) {
    const std::uint64_t key = highest_of(a, row).raw;
    return is_finite(key) ? token_of(key) : -1;
  }

  QUIRE_DEVICE static SampledRow sample_row(const Args& a, std::uint32_t index, const ChooseWork& work) {
    const LogitsRowArgs& row = a.rows[index];
    const float* logits = a.logits + std::size_t{row.logits_row} * a.width;
    const HighestOfPiece keys = highest_of(a, index);
    SampledRow said;
    if (!is_finite(keys.raw)) return not_finite();
    said.token = row.given;
    if (said.token < 0) {
      const bool has_edits = row.copy != LogitsRowArgs::kNoEdits;
      const std::uint64_t key = has_edits ? keys.edited : keys.raw;
      if (!is_finite(key)) return not_finite();
      said.token =
          drawn(row, has_edits ? a.copies + std::size_t{row.copy} * a.width : logits, a.vocab, token_of(key), work);
    }
    const bool is_given = row.given >= 0;
    if (!is_given && !row.params.logprob && row.params.num_top == 0) return said;

    const float highest = logits[token_of(keys.raw)];
    const double log_sum = log_sum_of(logits, a.vocab, highest, work);
    const float logit = logits[said.token];
    if (is_given || row.params.logprob) said.logprob = sample::logprob_of(logit, highest, log_sum);
    if (is_given) said.rank = 1 + num_above(logits, a.vocab, logit, work);
    said.num_top = row.params.num_top < a.vocab ? row.params.num_top : a.vocab;
    if (said.num_top > 0) list_likeliest(a, row.list, said.num_top, logits, highest, log_sum, work);
    return said;
  }
  QUIRE_DEVICE static SampledRow not_finite() {
    SampledRow said;
    said.finite = 0;
    return said;
  }

  // likeliest: the first of the row's highest logits.
  QUIRE_DEVICE static TokenId drawn(const LogitsRowArgs& row, const float* logits, std::uint32_t vocab,
                                    TokenId likeliest, const ChooseWork& work) {
    const sample::Params& params = row.params;
    if (params.temperature < sample::kGreedyTemperature) return likeliest;
    Values values;
    values.logits = logits;
    values.vocab = vocab;
    values.highest = logits[likeliest];
    values.temperature = params.temperature;
    const sample::KeptRange range = KeptOf::range(params, values, work);
    Draw draw{row, range, -kNoLogit, 0};
    // Starts with the likeliest token, so that most others need no noise; typical may have dropped it.
    if (range.highest >= 0.0f)
      draw.see(values.z(static_cast<std::uint32_t>(likeliest)), static_cast<std::uint32_t>(likeliest));
    if (values.is_listed) {
      values.each(work, [&](float z, std::uint32_t token) { draw.see(z, token); });
    } else {
      draw.see_row(values);
    }
    const std::uint64_t best = likely_key(draw.best_score, draw.best);
    return token_of(most_of_block<kThreads>(draw.best_score > -kNoLogit ? best : 0, work.slots));
  }

  // A thread's part of argmax z + noise, over the z in range. Most tokens are ruled out before their noise is computed,
  // or before its logarithms are.
  struct Draw {
    const LogitsRowArgs& row;
    sample::KeptRange range;
    float best_score;
    std::uint32_t best;

    QUIRE_DEVICE sample::PhiloxCounter noise(std::uint32_t block) const {
      return sample::noise_block(row.params.seed, block, row.position, row.params.choice_index, row.domain);
    }
    QUIRE_DEVICE void see(float z, std::uint32_t token) {
      if (z < range.lowest || z > range.highest || z + sample::kGumbelHighest < best_score) return;
      const sample::PhiloxCounter words = noise(token / sample::kTokensPerNoiseBlock);
      const std::uint32_t i = token % sample::kTokensPerNoiseBlock;
      const std::uint32_t low = i == 0 ? words.words[0] : words.words[1];
      const std::uint32_t high = i == 2 ? words.words[2] : words.words[3];
      see(z, token, i < 2 ? low : high);
    }
    QUIRE_DEVICE void see(float z, std::uint32_t token, std::uint32_t word) {
      if (z < range.lowest || z > range.highest || z + sample::gumbel_bound(word) < best_score) return;
      const float score = z + sample::gumbel_of_word(word);
      if (score < best_score || (score == best_score && token > best)) return;
      best_score = score;
      best = token;
    }
    // One noise block after another; the next one's logits are loaded before this one's are used.
    QUIRE_DEVICE void see_row(const Values& values) {
      Four next = four_of(values, thread());
      for (std::uint32_t at = thread(); at * kBlock < values.vocab; at += kThreads) {
        const Four logits = next;
        next = four_of(values, at + kThreads);
        float z[kBlock];
        float highest = -kNoLogit;
        for (std::uint32_t i = 0; i < kBlock; ++i) {
          z[i] = sample::z_of(logits.each[i], values.highest, values.temperature);
          highest = z[i] > highest ? z[i] : highest;
        }
        if (highest < range.lowest || highest + sample::kGumbelHighest < best_score) continue;
        const sample::PhiloxCounter words = noise(at);
        for (std::uint32_t i = 0; i < kBlock; ++i) see(z[i], at * kBlock + i, words.words[i]);
      }
    }

    static constexpr std::uint32_t kBlock = sample::kTokensPerNoiseBlock;
    struct Four {
      float each[kBlock];
    };
    QUIRE_DEVICE static Four four_of(const Values& values, std::uint32_t at) {
      Four four;
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        const std::uint32_t token = at * kBlock + i;
        four.each[i] = token < values.vocab ? values.logits[token] : -kNoLogit;
      }
      return four;
    }
  };

  QUIRE_DEVICE static double log_sum_of(const float* logits, std::uint32_t vocab, float highest,
                                        const ChooseWork& work) {
    std::uint64_t sum = 0;
    for (std::uint32_t i = thread(); i < vocab; i += kThreads) {
      sum += sample::log_mass_of(sample::exp_f32(logits[i] - highest));
    }
    return sample::log_of_mass(sum_of_block<kThreads>(sum, work.slots));
  }

  QUIRE_DEVICE static std::uint32_t num_above(const float* logits, std::uint32_t vocab, float logit,
                                              const ChooseWork& work) {
    std::uint64_t count = 0;
    for (std::uint32_t i = thread(); i < vocab; i += kThreads) count += logits[i] > logit ? 1 : 0;
    return static_cast<std::uint32_t>(sum_of_block<kThreads>(count, work.slots));
  }

  // Lists the first `num` tokens by ByLogit, each at its rank.
  QUIRE_DEVICE static void list_likeliest(const Args& a, std::uint32_t list, std::uint32_t num, const float* logits,
                                          float highest, double log_sum, const ChooseWork& work) {
    Values values;
    values.logits = logits;
    values.vocab = a.vocab;
    const ByLogit by{highest};
    const Selected last = select(
        values, by, [num](std::uint64_t) { return std::uint64_t{num}; }, work);
    if (thread() == 0) *work.count = 0;
    sync_block();
    values.each(work, [&](float logit, std::uint32_t token) {
      if (by.key(logit, token) > last.key) return;
      const std::uint32_t at = add_to(work.count, 1);
      work.top_values[at] = logit;
      work.top_tokens[at] = token;
    });
    sync_block();
    for (std::uint32_t i = thread(); i < num; i += kThreads) {
      const std::uint64_t key = by.key(work.top_values[i], work.top_tokens[i]);
      std::uint32_t place = 0;
      for (std::uint32_t j = 0; j < num; ++j) {
        if (by.key(work.top_values[j], work.top_tokens[j]) < key) ++place;
      }
      a.lists[list + place] = {static_cast<TokenId>(work.top_tokens[i]),
                               sample::logprob_of(work.top_values[i], highest, log_sum)};
    }
  }
};

}  // namespace quire::gpu
