// A validated and tokenised request of api/ to the engine, for one sequence or one beam search. Plain data.
// Owner   moved through the admission queue; then its Sequence owns it, shared with forks; immutable from then on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/grammar/grammar.h"
#include "core/sample/params.h"
#include "core/sample/rules.h"

namespace quire::flow {

// The K and V that a long sequence keeps. Any kind but kFull is lossy, is used only if the request asks for it, and
// shares no blocks. Positions stay absolute; groups of 16 positions are dropped when a row opens a new span of 256.
struct KvPolicy {
  enum class Kind : std::uint8_t {
    kFull,
    kSinkWindow,    // StreamingLLM (Xiao et al. 2023): the first `sinks` and the last `window` positions
    kHeavyHitters,  // H2O (Zhang et al. 2023): those, and the `budget` others with the most accumulated attention
  };
  Kind kind = Kind::kFull;
  std::uint32_t sinks = 0;   // a multiple of 16, >= 16
  std::uint32_t window = 0;  // a multiple of 256, >= 256: positions before a row's own span that it sees, at least
  std::uint32_t budget = 0;  // kHeavyHitters: a multiple of 16

  bool lossy() const { return kind != Kind::kFull; }
};

// Beam search instead of one sequence: `width` hypotheses run; the `num_best` best are emitted, best first, one per
// stream.
struct BeamSearch {
  std::uint32_t width = 1;      // >= 1, <= max_num_seqs
  std::uint32_t num_best = 1;   // <= width
  double length_penalty = 1.0;  // score = sum of log probabilities / tokens ^ length_penalty
};

// Speculative decoding of the request. Under acceptance `match` (Params::accept) drafts change when tokens are emitted,
// not the tokens; under `ratio` and `block` they change the tokens, not the distribution that these are drawn from.
struct Speculation {
  bool enabled = true;
  std::uint32_t max_nodes = 0;  // most nodes of a draft, capped by the server's limit; 0: that limit
  std::uint32_t drafter = 0;    // index of the drafter among the server's methods
};

// Pooling of a prompt into an embedding, instead of an answer: of its rows' hidden states, after the final norm.
enum class Pooling : std::uint8_t {
  kNone,  // no pooling: an answer is generated
  kLast,  // the last row's hidden state
  kMean,  // the sum of all rows' hidden states
};

struct Request {
  TimePoint arrival;              // when its last byte was received: latencies count from here
  std::vector<TokenId> prompt;    // [>= 1] ids, each in [0, logits width)
  std::uint32_t max_tokens = 16;  // prompt + max_tokens <= max_model_len; 0 only where the prompt is scored or pooled
  sample::Params sampling;
  std::shared_ptr<const sample::Rules> rules{};  // null: none
  // Null: any text. The answer is a text of the grammar, or the beginning of one.
  std::shared_ptr<const grammar::Grammar> grammar{};
  // Every prompt token but the first gets its log probability, rank and sampling.num_top candidates, in
  // bridge::PromptScores. Rows that are still to be scored use no cached block.
  bool scores_prompt = false;
  // The result is a bridge::PromptEmbedding alone: max_tokens is 0. Under kMean rows that are still to be
  // pooled use no cached block.
  Pooling pooling = Pooling::kNone;
  std::vector<TokenId> stop_tokens;  // a sampled token in this list ends the sequence (EOS; empty with ignore_eos)
  // Blocks are shared only with requests of an equal namespace: at the same time and, with prefix caching, later.
  // None: never.
  std::optional<CacheNamespace> cache_namespace{};
  std::uint32_t tenant = 0;             // the tenant that policy fair charges
  std::uint32_t weight = 1;             // policy fair divides its tokens by this; >= 1
  std::int32_t priority = 0;            // lower goes first, as in vLLM
  std::optional<TimePoint> deadline{};  // the sequence ends then, complete or not
  // SLOs of its client: missing them does not end the sequence.
  std::optional<TimePoint> first_token_by{};
  std::optional<Duration> token_time{};  // mean time from one token to the next
  KvPolicy kv_policy{};
  Speculation speculation{};
  std::optional<BeamSearch> beam{};

  // Key of policy deadline: earlier goes first.
  TimePoint due() const {
    return std::min(deadline.value_or(TimePoint::max()), first_token_by.value_or(TimePoint::max()));
  }
  bool embeds() const { return pooling != Pooling::kNone; }
  // True if a result is wanted of every row of the prompt.
  bool needs_every_row() const { return scores_prompt || pooling == Pooling::kMean; }
};

}  // namespace quire::flow
