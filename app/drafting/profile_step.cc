#include "app/drafting/profile_step.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/kv/layout.h"
#include "core/model/run/decoder_runner.h"

namespace quire::app {
namespace {

// Maximum number of logits rows in a step, with those of drafts.
std::uint32_t logit_rows(const Config& config, const speculate::SpeculativeConfig& speculation) {
  const bool drafts = speculation.method != speculate::Method::kNone;
  const std::uint64_t each = 1 + (drafts ? speculation.num_speculative_tokens : 0);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(config.max_num_seqs * each, config.max_num_batched_tokens));
}

std::uint32_t num_blocks(const flow::StepPlan& plan) { return static_cast<std::uint32_t>(plan.block_tables.size()); }

}  // namespace

flow::StepPlan fullest_step(const Config& config, std::uint32_t max_model_len, std::uint32_t vocab) {
  flow::StepPlan plan;
  const std::uint32_t most = std::min(config.max_num_seqs, config.max_num_batched_tokens);
  std::uint32_t left = config.max_num_batched_tokens;
  for (std::uint32_t s = 0; s < most && left > 0; ++s) {
    flow::PlannedSequence sequence;
    sequence.seq = SeqId(s + 1);
    sequence.first_row = static_cast<std::uint32_t>(plan.tokens.size());
    sequence.num_rows = std::min((left + most - s - 1) / (most - s), max_model_len);
    sequence.first_table = num_blocks(plan);
    sequence.num_table = kv::blocks_for(sequence.num_rows, config.block_size);
    sequence.samples = true;
    sequence.residual_group = s;
    sequence.sampling.temperature = 0;
    for (std::uint32_t i = 0; i < sequence.num_table; ++i) plan.block_tables.push_back(BlockId(num_blocks(plan)));
    for (std::uint32_t position = 0; position < sequence.num_rows; ++position) {
      const BlockId block = plan.block_tables[sequence.first_table + position / config.block_size];
      plan.tokens.push_back(static_cast<TokenId>(plan.tokens.size() % vocab));
      plan.positions.push_back(position);
      plan.slots.push_back(kv::slot_of(block, position, config.block_size));
    }
    left -= sequence.num_rows;
    plan.sequences.push_back(sequence);
  }
  return plan;
}

std::uint64_t free_behind_step(const Config& config, const LoadedModel& model,
                               const speculate::SpeculativeConfig& speculation) {
  CHECK(model.device->has_own_memory());
  const flow::StepPlan plan = fullest_step(config, model.decoder->max_model_len(), model.config.vocab);
  const std::uint64_t before = model.device->free_bytes().value_or(0);
  model::RunnerLimits limits;
  limits.max_rows = config.max_num_batched_tokens;
  limits.max_sequences = config.max_num_seqs;
  limits.max_logits_rows = logit_rows(config, speculation);
  limits.block_tokens = config.block_size;
  limits.num_blocks = num_blocks(plan);
  limits.kv_dtype = model.kv_dtype;
  model::DecoderRunner runner(*model.ops, *model.decoder, limits);
  runner.submit(plan);
  runner.collect();
  const std::uint64_t behind = model.device->free_bytes().value_or(0) + runner.kv_bytes() / model.device->num_ranks();
  const bool drafts = speculation.method != speculate::Method::kNone;
  const std::uint64_t row_buffers = drafts ? before - std::min(before, behind) : 0;
  return behind - std::min(behind, row_buffers);
}

}  // namespace quire::app
