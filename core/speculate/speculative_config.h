// How the server speculates: what --speculative-config says, read and checked. make_drafter() makes a drafter of it.
// Shape   a JSON object: `method`, and keys of that method. Names are vLLM's where it has the key. A key that no method has, one
//         that belongs to another method, and a method that is not built are refused by name: nothing is passed over.
// Owner   a value. Thread  any; pure functions.
// Fails   kInvalidArgument; its param is the key, its message says what is there instead.
// Source  vLLM's SpeculativeConfig, as documented; keys of methods that it lacks are ours.
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

// "draft_model".
std::string_view name_of(Method method);
// Names of the methods that make_drafter() makes, `none` first.
std::span<const std::string_view> built_methods();

struct SpeculativeConfig {
  Method method = Method::kNone;
  std::uint32_t num_speculative_tokens = 4;  // 1..64 nodes of a draft, at most
  std::uint32_t topk = 1;                    // 1..16 children of a node, at most; 1: drafts are chains. Not triforce
  sample::Accept accept = sample::Accept::kMatch;  // of requests that say nothing else
  // From what was measured, each step decides how many nodes a sequence may have, 0 included. Else each has all of them.
  // Not with ratio and block: a draft's size must not depend on what was drawn.
  bool adaptive = true;
  bool shared_noise = true;  // guesses look at the target's own noise: better ones at temperatures above 0
  bool self_test = true;     // before anything is served, what was loaded guesses at the model's own text
  // Directories of draft models or heads; several for specinfer alone. None: the head that came with the served model.
  std::vector<std::string> models{};
  std::uint32_t prompt_lookup_min = 2;       // ngram: 1..32 tokens that must be alike; <= prompt_lookup_max
  std::uint32_t prompt_lookup_max = 4;       // 1..32
  std::uint32_t suffix_max_tree_depth = 24;  // 1..64 tokens of the longest match and guess
  // 0..2^31-1 tokens of past answers, remembered for others; 0: each has its own alone.
  std::uint32_t suffix_max_cached_tokens = 1u << 20;
  float suffix_max_spec_factor = 1.0f;       // 0..64: a match of n tokens drafts at most factor · n + offset
  std::uint32_t suffix_max_spec_offset = 0;  // 0..64
  float suffix_min_token_prob = 0.1f;        // 0..1: less likely tokens are not drafted
  std::string datastore{};                   // rest: file of `quire build-datastore`
  std::uint32_t exit_layer = 0;              // layer_skip: 1..1024 layers that draft; 0: half of them
  std::vector<std::uint32_t> skip_layers{};  // draft_verify: ascending; none: the drafter chooses
  std::uint32_t sinks = 64;                  // magicdec, triforce: 0..1048576 first positions that drafts look at
  std::uint32_t window = 1024;               // and last ones: 1..1048576
  // lookahead: columns of guesses; its key is `window`, too. Where there are some, drafts have a fixed size, 64 nodes if nothing is
  // said of it, and half of one is the most that window · (ngram_size - 1) may be.
  std::uint32_t lookahead_window = 0;      // 0..32
  std::uint32_t lookahead_ngram_size = 5;  // 2..8 tokens
  std::uint32_t lookahead_guesses = 7;     // 1..32 n-grams of a token
};

// Methods that are not among `built` are refused.
Result<SpeculativeConfig> parse_speculative_config(std::string_view json,
                                                   std::span<const std::string_view> built = built_methods());

}  // namespace quire::speculate
