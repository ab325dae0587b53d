// How many KV blocks there are, and how long a sequence may be: from memory, the model's length and how many run at
// once.
//   a block takes what the backend says; a sequence of n tokens takes ceil(n / P) blocks.
// The pool always holds one sequence of maximum length, so that somebody always finishes. Blocks of pinned prefixes
// are never free: they come on top. Drafts have K and V of their own for every block, and scratch blocks: out of the same memory.
// Shape   blocks · P fits 32 bits: a slot is a 32-bit number.
// Thread  any; pure.
// Fails   StartError where nothing fits, or less than was asked for: what it would take, and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/tensors.h"

namespace quire::app {

// See draft_memory().
struct DraftMemory {
  std::uint64_t weight_bytes = 0;
  std::uint64_t block_bytes = 0;    // beside each of the pool's blocks
  std::uint64_t scratch_bytes = 0;  // K and V of guesses
  std::uint64_t states_bytes = 0;   // of the target, captured

  friend bool operator==(const DraftMemory&, const DraftMemory&) = default;
};

struct MemoryRequest {
  std::uint64_t block_bytes = 0;
  std::uint64_t fixed_bytes = 0;  // besides the blocks: int4's open groups
  std::uint32_t block_tokens = 16;
  std::uint32_t max_num_seqs = 64;
  std::uint32_t model_len = 0;                  // the longest the model can do
  std::optional<std::uint32_t> max_model_len;   // as asked for
  std::optional<std::uint64_t> kv_cache_bytes;  // as asked for
  std::optional<std::uint64_t> free_bytes;      // after the weights; empty: unknown
  bool own_memory = false;                      // a device's, where nobody else wants what is left
  std::uint64_t swap_bytes = 0;                 // of main memory, for blocks of preempted sequences
  std::uint32_t pinned_blocks = 0;
  std::uint32_t longest_pinned = 0;  // tokens of one pinned prefix; the longest sequence is longer
  DraftMemory drafts{};
};

struct MemoryPlan {
  std::uint32_t num_blocks = 0;     // pinned ones included
  std::uint32_t pinned_blocks = 0;  // no sequence can have these
  std::uint32_t max_model_len = 0;
  std::uint64_t bytes = 0;        // the target's blocks and what is fixed
  std::uint64_t draft_bytes = 0;  // weights and all
  std::uint32_t num_swap_blocks = 0;
  std::vector<std::string> notes;  // where less is given than was asked for or could be
};

// What auto may take of what is free: half of a host's memory; of a device's own all but 1.5 GiB, or a fiftieth where that is more,
// for the driver and for what is allocated behind the plan.
std::uint64_t kv_share(std::uint64_t free_bytes, bool own_memory);

// What --max-model-len says, or the model's own length.
std::uint32_t wanted_length(const MemoryRequest& request);

MemoryPlan plan_memory(const MemoryRequest& request);

// Rounded up.
std::uint64_t bytes_per_token(std::uint64_t block_bytes, std::uint32_t block_tokens);

// How many sequences of so many tokens have room at the same time.
std::uint64_t sequences_that_fit(const MemoryPlan& plan, const MemoryRequest& request, std::uint32_t num_tokens);

// "device memory: 61.2 GiB free behind weights and a step of 512 rows, 59.7 GiB of it for K and V; 1.50 GiB are kept free"; empty
// where the device has no memory of its own.
std::string device_memory_line(const MemoryPlan& plan, const MemoryRequest& request, std::uint32_t max_rows);

// "swap: 512 blocks in 4.00 GiB of main memory, for preempted sequences"; empty where there is none.
std::string swap_line(const MemoryPlan& plan, const MemoryRequest& request);

// "KV cache: 2048 blocks of 16 tokens, 32768 tokens, 64.0 sequences of 512; 192.0 MiB as f32, 6144 bytes a token"
std::string kv_line(const MemoryPlan& plan, const MemoryRequest& request, backend::KvType type);

}  // namespace quire::app
