#include "app/model/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/config/units.h"
#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/base/start_error.h"
#include "core/kv/layout.h"

namespace quire::app {
namespace {

constexpr std::uint64_t kMaxSlots = std::uint64_t{1} << 32;
constexpr std::uint64_t kLeastKeptFree = std::uint64_t{3} << 29;

// Memory for K and V of the target and of drafts.
struct KvBytes {
  explicit KvBytes(const MemoryRequest& request)
      : block(request.block_bytes + request.drafts.block_bytes),
        fixed(request.fixed_bytes + request.drafts.scratch_bytes) {}
  std::uint64_t of(std::uint64_t num_blocks) const { return num_blocks * block + fixed; }

  std::uint64_t block;
  std::uint64_t fixed;
};

std::uint64_t less(std::uint64_t bytes, std::uint64_t taken) { return bytes - std::min(bytes, taken); }

// The number of blocks that fit in the swap space, together with the drafts' blocks.
std::uint32_t swap_blocks(const MemoryRequest& request) {
  const std::uint64_t block = request.block_bytes + request.drafts.block_bytes;
  const std::uint64_t blocks = std::min(request.swap_bytes / block, (kMaxSlots - 1) / request.block_tokens);
  if (request.swap_bytes == 0 || blocks > 0) return static_cast<std::uint32_t>(blocks);
  throw StartError(fmt::format("--swap-space {}: one block of the KV cache takes {}; raise it, or leave it out",
                               bytes_text(request.swap_bytes), bytes_text(block)));
}

}  // namespace

std::uint32_t MemoryRequest::most_blocks(std::uint32_t num_tokens) const {
  std::uint32_t most = 0;
  for (const kv::CacheGroup& group : groups) {
    most += group.most_blocks(num_tokens, step_tokens, std::max(kGroupTokens, block_tokens), block_tokens);
  }
  return most;
}

std::uint32_t MemoryRequest::longest_in(std::uint64_t num_blocks, std::uint32_t most_tokens) const {
  std::uint32_t fits = 0;
  for (std::uint32_t beyond = most_tokens + 1; beyond - fits > 1;) {
    const std::uint32_t middle = fits + (beyond - fits) / 2;
    (most_blocks(middle) <= num_blocks ? fits : beyond) = middle;
  }
  return fits;
}

std::uint64_t kv_share(std::uint64_t free_bytes, bool own_memory) {
  return own_memory ? less(free_bytes, std::max(kLeastKeptFree, free_bytes / 50)) : free_bytes / 2;
}

std::uint32_t wanted_length(const MemoryRequest& request) {
  if (!request.max_model_len) return request.model_len;
  if (*request.max_model_len > request.model_len) {
    throw StartError(
        fmt::format("--max-model-len {}: the maximum of this model is {} tokens; lower it, or leave it out",
                    *request.max_model_len, request.model_len));
  }
  return *request.max_model_len;
}

MemoryPlan plan_memory(const MemoryRequest& request) {
  CHECK_GT(request.block_bytes, 0u);
  MemoryPlan plan;
  plan.max_model_len = wanted_length(request);
  const std::uint32_t per_sequence = request.most_blocks(plan.max_model_len);
  // The cache keeps what sequences give back.
  const std::uint64_t all_of_one =
      std::uint64_t{kv::blocks_for(plan.max_model_len, request.block_tokens)} * request.groups.size();
  const KvBytes cost(request);
  plan.pinned_blocks = request.pinned_blocks;
  const std::uint64_t least = std::uint64_t{per_sequence} + request.pinned_blocks;
  const std::uint64_t useful =
      std::min(all_of_one * request.max_num_seqs + request.pinned_blocks, (kMaxSlots - 1) / request.block_tokens);

  const std::string pinned = request.pinned_blocks == 0 ? "" : " and the pinned prefixes";
  std::uint64_t blocks = useful;
  if (request.kv_cache_bytes) {
    blocks = std::min(useful, less(*request.kv_cache_bytes, cost.fixed) / cost.block);
    if (blocks == useful && *request.kv_cache_bytes > cost.of(useful)) {
      plan.notes.push_back(fmt::format("--kv-cache-memory {}: {} sequences of {} tokens{} can use only {} of it",
                                       bytes_text(*request.kv_cache_bytes), request.max_num_seqs, plan.max_model_len,
                                       pinned, bytes_text(cost.of(useful))));
    }
  } else if (request.free_bytes) {
    blocks = std::min(useful, less(kv_share(*request.free_bytes, request.own_memory), cost.fixed) / cost.block);
  }

  if (blocks < least) {
    const std::uint64_t left = blocks - std::min<std::uint64_t>(blocks, request.pinned_blocks);
    const std::string given =
        request.kv_cache_bytes
            ? fmt::format("--kv-cache-memory {}", bytes_text(*request.kv_cache_bytes))
            : fmt::format("{} {} of free memory", request.own_memory ? "the usable part of the" : "half of the",
                          bytes_text(request.free_bytes.value_or(0)));
    const std::string needed =
        fmt::format("one sequence of {} tokens{} {} {} of KV cache{}; {} has room for {} tokens", plan.max_model_len,
                    pinned, pinned.empty() ? "takes" : "take", bytes_text(cost.of(least)),
                    cost.of(least) == least * request.block_bytes + request.fixed_bytes ? "" : ", drafts included",
                    given, request.longest_in(blocks, static_cast<std::uint32_t>(blocks * request.block_tokens)));
    const std::uint32_t longest = request.longest_in(left, plan.max_model_len);
    if (request.max_model_len || longest <= request.longest_pinned) {
      throw StartError(needed + ": raise --kv-cache-memory, use a smaller --kv-cache-dtype, or lower --max-model-len");
    }
    plan.max_model_len = longest;
    plan.notes.push_back(fmt::format("{}: --max-model-len is lowered to {}", needed, plan.max_model_len));
  }
  plan.num_blocks = static_cast<std::uint32_t>(blocks);
  plan.num_swap_blocks = swap_blocks(request);
  plan.bytes = blocks * request.block_bytes + request.fixed_bytes;
  plan.draft_bytes = cost.of(blocks) - plan.bytes + request.drafts.weight_bytes + request.drafts.states_bytes;
  return plan;
}

std::uint64_t bytes_per_token(std::uint64_t block_bytes, std::uint32_t block_tokens) {
  return (block_bytes + block_tokens - 1) / block_tokens;
}

std::uint64_t sequences_that_fit(const MemoryPlan& plan, const MemoryRequest& request, std::uint32_t num_tokens) {
  return (plan.num_blocks - plan.pinned_blocks) / request.most_blocks(num_tokens);
}

std::string device_memory_line(const MemoryPlan& plan, const MemoryRequest& request, std::uint32_t max_rows) {
  if (!request.own_memory || !request.free_bytes) return "";
  return fmt::format("device memory: {} free after weights and a step of {} rows, {} of it for K and V; {} stay free",
                     bytes_text(*request.free_bytes), max_rows, bytes_text(plan.bytes),
                     bytes_text(*request.free_bytes - kv_share(*request.free_bytes, true)));
}

std::string swap_line(const MemoryPlan& plan, const MemoryRequest& request) {
  if (plan.num_swap_blocks == 0) return "";
  const std::uint64_t block = request.block_bytes + request.drafts.block_bytes;
  return fmt::format("swap: {} blocks in {} of main memory, for preempted sequences", plan.num_swap_blocks,
                     bytes_text(plan.num_swap_blocks * block));
}

std::string kv_line(const MemoryPlan& plan, const MemoryRequest& request, backend::KvType type) {
  const std::size_t num_groups = request.groups.size();  // a token is in a block of each
  const std::uint64_t tokens = std::uint64_t{plan.num_blocks} * request.block_tokens / num_groups;
  const double sequences =
      static_cast<double>(plan.num_blocks - plan.pinned_blocks) / request.most_blocks(plan.max_model_len);
  return fmt::format(
      "KV cache: {} blocks of {} tokens, {} tokens, {:.1f} sequences of {}; {} as {}, {} bytes a token{}",
      plan.num_blocks, request.block_tokens, tokens, sequences, plan.max_model_len, bytes_text(plan.bytes),
      backend::name_of(type), bytes_per_token(request.block_bytes * num_groups, request.block_tokens),
      plan.pinned_blocks == 0 ? "" : fmt::format("; {} blocks are pinned", plan.pinned_blocks));
}

}  // namespace quire::app
