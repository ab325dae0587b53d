// The number of KV blocks and the maximum sequence length, from memory, the model's length and the number of sequences
// that run at the same time.
//   a block takes the bytes that the backend states; a sequence of n tokens takes ceil(n / P) blocks of each group of
//   layers, or those of a window and a step (kv::CacheGroup).
// The pool always holds one sequence of maximum length, so that one sequence can always finish. Blocks of pinned
// prefixes are never free: they are added to that. Drafts have K and V of their own for every block, and scratch
// blocks, out of the same memory.
// Shape   blocks · P fits 32 bits: a slot is a 32-bit number.
// Thread  any; pure.
// Fails   StartError if nothing fits, or less than was asked for: the text says what is needed and what to change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/tensors.h"
#include "core/kv/cache_group.h"

namespace quire::app {

// Result of draft_memory().
struct DraftMemory {
  std::uint64_t weight_bytes = 0;
  std::uint64_t block_bytes = 0;    // per block of the pool
  std::uint64_t scratch_bytes = 0;  // K and V of draft tokens
  std::uint64_t states_bytes = 0;   // captured hidden states of the target

  friend bool operator==(const DraftMemory&, const DraftMemory&) = default;
};

struct MemoryRequest {
  std::uint64_t block_bytes = 0;
  std::uint64_t fixed_bytes = 0;  // besides the blocks: int4's residual groups
  std::uint32_t block_tokens = 16;
  std::vector<kv::CacheGroup> groups{kv::CacheGroup{}};  // of the model's layers, with blocks of their own each
  std::uint32_t step_tokens = 0;                         // most rows of a step
  std::uint32_t max_num_seqs = 64;
  std::uint32_t model_len = 0;                  // the model's own maximum
  std::optional<std::uint32_t> max_model_len;   // --max-model-len
  std::optional<std::uint64_t> kv_cache_bytes;  // --kv-cache-memory
  std::optional<std::uint64_t> free_bytes;      // after the weights; empty: unknown
  // The device has its own memory, in which nothing else needs the rest.
  bool own_memory = false;
  std::uint64_t swap_bytes = 0;  // main memory for blocks of preempted sequences
  std::uint32_t pinned_blocks = 0;
  std::uint32_t longest_pinned = 0;  // tokens of the longest pinned prefix; a sequence must be longer
  DraftMemory drafts{};

  // Most blocks that a sequence of so many tokens holds at a time.
  std::uint32_t most_blocks(std::uint32_t num_tokens) const;
  // The longest sequence, of at most `most_tokens` tokens, that never holds more blocks.
  std::uint32_t longest_in(std::uint64_t num_blocks, std::uint32_t most_tokens) const;
};

struct MemoryPlan {
  std::uint32_t num_blocks = 0;     // pinned ones included
  std::uint32_t pinned_blocks = 0;  // sequences cannot use these
  std::uint32_t max_model_len = 0;
  std::uint64_t bytes = 0;        // of the target's blocks and fixed_bytes
  std::uint64_t draft_bytes = 0;  // of drafts, their weights included
  std::uint32_t num_swap_blocks = 0;
  std::vector<std::string> notes;  // one if less is used than was asked for or would be possible
};

// Memory that auto takes of the free memory. On the host: half. On a device with its own memory: all except 1.5 GiB, or
// 2 % if that is more, which is left to the driver and to later allocations.
std::uint64_t kv_share(std::uint64_t free_bytes, bool own_memory);

// --max-model-len, or the model's own length. StartError if it is more than that.
std::uint32_t wanted_length(const MemoryRequest& request);

MemoryPlan plan_memory(const MemoryRequest& request);

// Rounded up.
std::uint64_t bytes_per_token(std::uint64_t block_bytes, std::uint32_t block_tokens);

// The number of sequences of `num_tokens` tokens that fit at the same time.
std::uint64_t sequences_that_fit(const MemoryPlan& plan, const MemoryRequest& request, std::uint32_t num_tokens);

// "device memory: 61.2 GiB free after weights and a step of 512 rows, 59.7 GiB of it for K and V; 1.50 GiB stay
// free"; empty if the device has no memory of its own.
std::string device_memory_line(const MemoryPlan& plan, const MemoryRequest& request, std::uint32_t max_rows);

// "swap: 512 blocks in 4.00 GiB of main memory, for preempted sequences"; empty if there is no swap space.
std::string swap_line(const MemoryPlan& plan, const MemoryRequest& request);

// "KV cache: 2048 blocks of 16 tokens, 32768 tokens, 64.0 sequences of 512; 192.0 MiB as f32, 6144 bytes a token"
std::string kv_line(const MemoryPlan& plan, const MemoryRequest& request, backend::KvType type);

}  // namespace quire::app
