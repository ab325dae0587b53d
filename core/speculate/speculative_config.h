// Settings of speculative decoding: --speculative-config, parsed and checked. app/drafting/drafting.h makes the drafter
// from it.
// Shape   a JSON object: `method` and that method's keys, with vLLM's names where vLLM has the key. An unknown key, a
//         key of another method and a method that is not built are rejected by name; nothing is ignored.
// Owner   a value. Thread  any; pure functions.
// Fails   kInvalidArgument; param is the key, the message says what is allowed in its place.
// Source  vLLM's SpeculativeConfig, as documented; keys of methods that vLLM lacks are ours.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/sample/accept.h"

namespace quire::speculate {

enum class Method : std::uint8_t {
  kNone,
  kDraftModel,
  kEagle,
  kEagle3,
  kMedusa,
  kHydra,
  kSpecinfer,
  kNgram,
  kSuffix,
  kRest,
  kLookahead,
  kDraftVerify,
  kLayerSkip,
  kMagicdec,
  kTriforce,
  kHybrid,
};

// Name as in the JSON: "draft_model".
std::string_view name_of(Method method);
// True if the target model itself drafts, in its own KV cache.
constexpr bool drafts_with_target(Method method) {
  return method == Method::kLayerSkip || method == Method::kDraftVerify || method == Method::kMagicdec ||
         method == Method::kTriforce;
}
// Names of the methods that Drafting::make_drafter() can make, `none` first.
std::span<const std::string_view> built_methods();

struct SpeculativeConfig {
  Method method = Method::kNone;
  std::uint32_t num_speculative_tokens = 4;        // 1..64: most nodes of a draft
  std::uint32_t topk = 1;                          // 1..16: most children of a node; 1: chains. Not for triforce
  sample::Accept accept = sample::Accept::kMatch;  // of requests that name no rule
  // True: each step chooses each sequence's number of draft nodes (0 too) from measured acceptance and cost. False:
  // each may have num_speculative_tokens. Not with ratio and block: a draft's size must not depend on what was drawn.
  bool adaptive = true;
  bool shared_noise = true;  // draft with the target's sampling noise: more is accepted at temperature > 0
  bool self_test = true;     // before serving, loaded draft models and heads draft the model's own greedy text
  // Directories of draft models or heads; more than one only for specinfer. Empty: the head built in with the served
  // model.
  std::vector<std::string> models{};
  std::uint32_t prompt_lookup_min = 2;       // ngram: 1..32 tokens that must match; <= prompt_lookup_max
  std::uint32_t prompt_lookup_max = 4;       // 1..32
  std::uint32_t suffix_max_tree_depth = 24;  // 1..64: tokens of the longest match and of the longest draft
  // 0..2^31-1: tokens of past answers kept for other sequences. 0: each sequence uses its own text only.
  std::uint32_t suffix_max_cached_tokens = 1u << 20;
  float suffix_max_spec_factor = 1.0f;       // 0..64: a match of n tokens drafts at most factor · n + offset
  std::uint32_t suffix_max_spec_offset = 0;  // 0..64
  float suffix_min_token_prob = 0.1f;        // 0..1: less likely tokens are not drafted
  std::string datastore{};                   // rest: file written by `quire build-datastore`
  std::uint32_t exit_layer = 0;              // layer_skip: 1..1024 layers that draft; 0: half of them
  std::vector<std::uint32_t> skip_layers{};  // draft_verify: ascending; empty: the drafter chooses
  std::uint32_t sinks = 64;                  // magicdec, triforce: 0..1048576 first positions that drafts see
  std::uint32_t window = 1024;               // and 1..1048576 last positions
  // lookahead: columns of its Jacobi window; the JSON key is `window` too. With a window, drafts have a fixed size, 64
  // nodes by default, and window · (ngram_size - 1) must be at most half of it.
  std::uint32_t lookahead_window = 0;      // 0..32
  std::uint32_t lookahead_ngram_size = 5;  // 2..8 tokens
  std::uint32_t lookahead_ngrams = 7;      // 1..32 n-grams kept for each first token; the JSON key is `guesses`
};

// Rejects methods that are not among `built`.
Result<SpeculativeConfig> parse_speculative_config(std::string_view json,
                                                   std::span<const std::string_view> built = built_methods());

}  // namespace quire::speculate
