// One schedule of the simulator, as numbers: a world (pool, limits, policies) and what arrives in it. Whatever happens
// is a function of it, and it is written and read as one line of text:
//   blocks=6 p=4 rows=5 | at=0 len=9 gen=3 | at=1 len=7 gen=12 cancel=4
// Shape   fields that are not named have their defaults. valid() makes any numbers a schedule that the server would
//         accept.
// Thread  any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/kv/cache_group.h"

namespace quire::sim {

struct World {
  int blocks = 8;
  int p = 4;           // tokens per block
  int max_len = 0;     // 0: what the pool holds
  int seqs = 4;        // max_num_seqs
  int rows = 16;       // max_num_batched_tokens
  int logits = 0;      // rows of logits beside one for each of the seqs
  int policy = 0;      // schedule::Policy
  int victim = 0;      // schedule::Victim
  int overtakes = 64;  // max_overtakes
  int swap = 0;        // num_swap_blocks
  // Its layers' groups, by what they keep: 0 everything, n > 0 a window of n, n < 0 a chunk of -n.
  int layers = 1;  // so many groups
  int window = 0;
  int window2 = 0;
  int window3 = 0;
  int window4 = 0;
  int restore = 1024;  // multiples of it are restore points
  int cache = 1;       // prefix caching
  int bits = 64;       // of the index's hash
  int poison = 0;      // fresh blocks are filled with NaN
  int vocab = 61;
  int spoilt = 0;          // token 0 spoils whatever sees it
  int partial_blocks = 1;  // part of a block may be shared
  int groups = 0;          // unfinished groups of 16 are kept apart, as int4 does it
  int pin = 0;             // so many tokens of stem 0 are pinned, for root 1
  int row_ms = 0;          // the time that a row takes: prompts are cut by it
  int jump = 1;            // tokens that a grammar leaves no choice of are run ahead
  int draft =
      0;  // nodes of a draft, at most; 0: nobody guesses. Right often, wrong often, by multiples of 5 impossible
  int save = -1;   // before this turn the cache is saved,
  int load = -1;   // and before this one loaded again
  int storm = 0;   // before every so-manieth turn all that have spoken are sent back; 0: never
  int stop = -1;   // before this turn the engine stops,
  int broken = 0;  // because its device failed
  int depth = 1;   // steps in flight at a time, at most
  bool operator==(const World&) const = default;
};

// One HTTP request.
struct Arrival {
  int at = 0;               // before this turn
  int len = 1;              // of the prompt
  int gen = 1;              // max_tokens; 0: only its prompt is scored
  int cache_namespace = 1;  // 0: never shared
  int stem = 0;             // the first `shared` tokens are those of this stem,
  int shared = 0;
  int from = -1;    // or, if >= 0, those of that earlier arrival's prompt and first answer
  int partial = 0;  // the others are this tail's
  int seed = 0;     // 0: greedy
  int n = 1;
  int logprob = 0;  // wants log probabilities
  int top = 0;      // and so many candidates
  int score = 0;    // its prompt is scored
  int pool = 0;     // flow::Pooling: its prompt is pooled, and that is all
  int rules = 0;    // which it has, by a number; 0: none
  int grammar = 0;  // which of the toy's it has; 0: none
  int stop = 0;     // its so-manieth token is a stop token; 0: none is
  int tenant = 0;
  int prio = 0;
  int deadline = -1;  // turn in which the first token is hoped for; -1: none
  int beam = 0;       // width
  int best = 1;       // of the beams
  int penalty = 2;    // halves
  int kv = 0;         // flow::KvPolicy::Kind
  int sinks = 1;      // groups of 16
  int recent = 1;     // spans of 256
  int budget = 0;     // groups of 16
  int cancel = -1;    // so many turns after its arrival its client leaves; -1: never
  int cancels = 1;    // so many of its n streams do
  int read = 1;       // it reads every so many turns; 0: never
  bool operator==(const Arrival&) const = default;
};

struct Scenario {
  World world;
  std::vector<Arrival> arrivals;
  bool operator==(const Scenario&) const = default;
};

// A field by its name in the text.
template <typename Record>
struct Field {
  const char* name;
  int Record::*member;
};
std::span<const Field<World>> world_fields();
std::span<const Field<Arrival>> arrival_fields();

// The groups of the model's layers.
std::vector<kv::CacheGroup> groups_of(const World& world);

std::string to_text(const Scenario& scenario);
// Throws std::invalid_argument, naming the word.
Scenario parse(const std::string& text);

// The nearest schedule whose numbers fit together: the pool holds the longest sequence, prompts have a token, and so
// on.
Scenario valid(Scenario scenario);

Scenario random_scenario(std::uint64_t seed);

}  // namespace quire::sim
