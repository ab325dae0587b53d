// After start no step allocates, from its plan to its choices: operator new is counted while steps of many sizes run on
// the CPU backend.
#include <gtest/gtest.h>

#include "core/cpu/cpu_ops.h"
#include "core/model/run/decoder_runner.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/support/allocation_counter.h"

namespace quire::model::runner_allocation_test {
namespace {

constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint32_t kBlocksEach = 4;
constexpr std::uint32_t kSequences = 6;

// The next `rows` tokens of every sequence, of which some speak and the others are pooled; sequence s holds blocks [4s,
// 4s + 4).
flow::StepPlan next_step(std::uint32_t first_position, std::uint32_t rows) {
  flow::StepPlan plan;
  for (std::uint32_t s = 0; s < kSequences; ++s) {
    flow::PlannedSequence planned;
    planned.seq = SeqId(s + 1);
    planned.first_row = static_cast<std::uint32_t>(plan.tokens.size());
    planned.num_rows = rows;
    planned.first_position = first_position;
    planned.first_table = static_cast<std::uint32_t>(plan.block_tables.size());
    planned.num_table = kBlocksEach;
    planned.samples = s % 3 != 0;
    planned.num_pooled = s % 3 == 0 ? rows : 0;
    planned.residual_group = s;
    planned.sampling.temperature = s % 2 == 0 ? 0.0f : 1.0f;
    planned.sampling.logprob = true;
    planned.sampling.num_top = 5;
    for (std::uint32_t i = 0; i < kBlocksEach; ++i) plan.block_tables.emplace_back(s * kBlocksEach + i);
    for (std::uint32_t p = first_position; p < first_position + rows; ++p) {
      plan.tokens.push_back(static_cast<TokenId>((s + p) % 7));
      plan.positions.push_back(p);
      plan.slots.push_back((s * kBlocksEach + p / kBlockTokens) * kBlockTokens + p % kBlockTokens);
    }
    plan.sequences.push_back(planned);
  }
  plan.block_ops.push_back({flow::BlockOp::Kind::kCopy, kSequences * kBlocksEach, kSequences * kBlocksEach + 1});
  return plan;
}

const char* const kTinyMixture = R"({"model_type": "qwen2_moe", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 20,
  "max_position_embeddings": 64, "num_experts": 5, "num_experts_per_tok": 3, "moe_intermediate_size": 48,
  "shared_expert_intermediate_size": 32})";

class DecoderRunnerSteps : public ::testing::TestWithParam<const char*> {};

TEST_P(DecoderRunnerSteps, AllocateNothingNotEvenTheFirst) {
  const RoleScope role(engine_role);
  for (const backend::KvType kv : {backend::KvType::kBF16, backend::KvType::kInt4}) {
    for (const std::uint32_t threads : {1u, 3u}) {
      const ModelSpec config = parse_config(GetParam(), "config.json");
      const testing::TempDir dir;
      dir.write("config.json", GetParam());
      dir.write("model.safetensors", testing::safetensors_file(testing::fitting_tensors(config, "BF16")));
      const auto files = ModelFiles::directory(dir.path());
      const auto ops = cpu::make_cpu_ops({.num_threads = threads, .max_rows = 256});
      const Decoder decoder(*ops, config, *files, kBlocksEach * kBlockTokens);
      RunnerLimits limits;
      limits.max_rows = 256;
      limits.max_sequences = kSequences;
      limits.num_blocks = kSequences * kBlocksEach + 2;
      limits.kv_dtype = kv;
      DecoderRunner runner(*ops, decoder, limits);

      std::uint32_t position = 0;
      for (const std::uint32_t rows : {30u, 1u, 1u, 17u, 14u, 1u}) {
        const flow::StepPlan plan = next_step(position, rows);
        const long before = quire::testing::num_allocations.load();
        runner.submit(plan);
        const std::span<const flow::StepChoice> choices = runner.collect();
        ASSERT_EQ(quire::testing::num_allocations.load(), before) << rows << " rows at " << position;
        ASSERT_EQ(choices.size(), kSequences - 2);
        ASSERT_EQ(runner.pooled(3).size(), rows * runner.hidden_width());
        for (const flow::StepChoice& choice : choices) ASSERT_EQ(choice.top.size(), 5u);
        position += rows;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DecoderRunnerSteps, ::testing::Values(testing::kTinyLlama.c_str(), kTinyMixture),
                         [](const auto& model) { return model.index == 0 ? "Llama" : "Mixture"; });

}  // namespace
}  // namespace quire::model::runner_allocation_test
