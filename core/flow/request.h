// What api/ hands to the engine for one sequence, or for one beam search: validated, tokenised, final. Plain data.
// Owner   moved through the admission queue; then the Sequence holds it.
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

// Which K and V a sequence keeps when it grows long. Anything but kFull is lossy, asked for by the request, and never
// shared.
// Positions stay absolute; what is dropped is dropped in groups of 16 when a row opens a new span of 256 positions.
struct KvPolicy {
  enum class Kind : std::uint8_t {
    kFull,
    kSinkWindow,    // StreamingLLM (Xiao et al. 2023): the first `sinks` and the last `window` positions
    kHeavyHitters,  // H2O (Zhang et al. 2023): those, and of the others the `budget` that rows looked at most
  };
  Kind kind = Kind::kFull;
  std::uint32_t sinks = 0;   // a multiple of 16, >= 16
  std::uint32_t window = 0;  // a multiple of 256, >= 256: a row sees that many positions before its own span, at least
  std::uint32_t budget = 0;  // kHeavyHitters: a multiple of 16
};

// One search instead of one sequence: `width` hypotheses run, the `num_best` best are told, best first, one a stream.
struct BeamSearch {
  std::uint32_t width = 1;      // >= 1, <= max_num_seqs
  std::uint32_t num_best = 1;   // <= width
  double length_penalty = 1.0;  // score = sum of log probabilities / tokens ^ length_penalty
};

// Guesses at what it says next: they change when its tokens come, never which; under another rule than match (Params::accept)
// which, too, never by what law.
struct Speculation {
  bool enabled = true;
  std::uint32_t max_nodes = 0;  // of a draft, at most, and never more than the server's own; 0: those
  std::uint32_t drafter = 0;    // which of the server's methods, in their order
};

// What is wanted of a prompt instead of an answer: its rows' hidden states, as the model's final norm leaves them.
enum class Pooling : std::uint8_t {
  kNone,  // an answer
  kLast,  // the last row's
  kMean,  // the sum of all rows'
};

struct Request {
  TimePoint arrival;              // when its bytes were there: latencies count from here
  std::vector<TokenId> prompt;    // [>= 1] ids, each in [0, logits width)
  std::uint32_t max_tokens = 16;  // prompt + max_tokens <= max_model_len; 0 only where the prompt is scored or pooled
  sample::Params sampling;
  std::shared_ptr<const sample::Rules> rules{};  // null: none
  std::shared_ptr<const grammar::Grammar>
      grammar{};  // null: any text. What is generated is a text of it, or its beginning
  // Every token of the prompt but the first gets its log probability, rank and sampling.num_top candidates:
  // bridge::PromptScores. Such a prompt reads no cached blocks.
  bool scores_prompt = false;
  // bridge::PromptEmbedding, and nothing besides: max_tokens is 0. Under kMean the prompt reads no cached blocks.
  Pooling pooling = Pooling::kNone;
  std::vector<TokenId> stop_tokens;  // a choice in here ends the sequence (EOS list; empty with ignore_eos)
  // Blocks are shared with requests of the same root, at the same time and, where prefixes are cached, later. None:
  // never.
  std::optional<CacheRoot> cache_root{};
  std::uint32_t tenant = 0;             // whose share of the machine it takes
  std::uint32_t weight = 1;             // of that share: its tokens count this part; >= 1
  std::int32_t priority = 0;            // lower goes first, as in vLLM
  std::optional<TimePoint> deadline{};  // it ends then, whatever it has said
  // What its client hopes for: nothing ends because of it.
  std::optional<TimePoint> first_token_by{};
  std::optional<Duration> token_time{};  // the mean from one token to the next
  KvPolicy kv_policy{};
  Speculation speculation{};
  std::optional<BeamSearch> beam{};

  // Earlier goes first under the deadline policy.
  TimePoint due() const {
    return std::min(deadline.value_or(TimePoint::max()), first_token_by.value_or(TimePoint::max()));
  }
  bool embeds() const { return pooling != Pooling::kNone; }
  // Something is wanted of every row of the prompt.
  bool needs_every_row() const { return scores_prompt || pooling == Pooling::kMean; }
};

}  // namespace quire::flow
