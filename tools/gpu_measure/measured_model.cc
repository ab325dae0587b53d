#include "tools/gpu_measure/measured_model.h"

#include "core/model/arch/config.h"
#include "gpu/gpu_ops.h"
#include "tools/gpu_measure/kernel_shapes.h"
#include "tools/gpu_measure/step_batch.h"
#include "tools/gpu_measure/timing.h"

namespace quire::gpu::measure {
namespace {

constexpr std::uint32_t kBlockTokens = StepBatch::kBlockTokens;
constexpr std::uint32_t kStepsInFlight = 2;  // as in `quire serve`

std::uint32_t blocks_for(std::uint32_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

backend::Format main_type(const Setup& setup) { return setup.quantize.value_or(backend::Format::kBF16); }

}  // namespace

MeasuredModel::MeasuredModel(const Setup& setup, std::uint32_t max_rows, std::uint32_t max_positions,
                             std::uint32_t max_table_entries, std::uint32_t capture)
    : setup_(setup), shape_(model_shape(setup.tiny ? "tiny" : setup.model)), max_rows_(max_rows) {
  std::unique_ptr<Device> made = setup.make_device();
  device_ = made.get();
  auto plain = make_gpu_ops(std::move(made), {.max_rows = max_rows,
                                              .max_table_entries = max_table_entries,
                                              .depth = kStepsInFlight,
                                              .capture = capture,
                                              .linear_warpgroups = setup.linear_warpgroups,
                                              .overlap = setup.overlap,
                                              .carveout = setup.carveout});
  ops_ = std::make_unique<MeasuredOps>(std::move(plain), *device_);
  const HollowModel hollow(shape_);
  const auto files = hollow.files();
  decoder_ = std::make_unique<model::Decoder>(*ops_, model::load_config(*files), *files, max_positions,
                                              model::LoadOptions{.quantize = setup.quantize});
}

std::unique_ptr<model::DecoderRunner> MeasuredModel::runner(std::uint32_t sequences, std::uint32_t length) {
  model::RunnerLimits limits;
  limits.max_rows = max_rows_;
  limits.max_sequences = sequences;
  limits.max_logits_rows = sequences;
  limits.block_tokens = kBlockTokens;
  limits.num_blocks = sequences * blocks_for(length);
  limits.kv_dtype = setup_.kv;
  auto runner = std::make_unique<model::DecoderRunner>(*ops_, *decoder_, limits);
  ops_->random().fill_cache(runner->cache());
  return runner;
}

std::uint64_t MeasuredModel::kv_bytes(std::uint32_t sequences, std::uint32_t length) const {
  return sequences * blocks_for(length) * kv_block_bytes(decoder_->config().kv_shape(kBlockTokens, 1, setup_.kv));
}

Cost MeasuredModel::cost_of_step(std::uint32_t sequences, std::uint32_t rows_each, std::uint32_t positions) const {
  const std::uint32_t rows = sequences * rows_each;
  const HeadsOfShape heads{shape_.num_heads, shape_.num_kv_heads, shape_.head_dim};
  Cost all = shape_.num_layers * attend_cost(heads, sequences, rows_each, positions, setup_.kv);
  for (const auto& [name, n, k] : shape_.matrices()) {
    const std::string_view matrix = name;
    if (matrix == "head") {
      const backend::Format type =
          model::quantize_of(model::Role::kHead, decoder_->config(), setup_.quantize).value_or(backend::Format::kBF16);
      all += norm_cost(k, sequences) + linear_rows_cost(type, k, sequences, false) + linear_cost(type, n, k, sequences);
      continue;
    }
    const bool is_normed = matrix == "qkv" || matrix == "gate_up";
    const Finish finish = matrix == "qkv" ? Finish::kStore : matrix == "gate_up" ? Finish::kGate : Finish::kAdd;
    all += shape_.num_layers * (linear_rows_cost(main_type(setup_), k, rows, is_normed) +
                                linear_cost(main_type(setup_), n, k, rows, finish));
  }
  return all;
}

flow::StepPlan plan_of(std::span<const PlannedRows> rows, std::uint32_t length, std::uint32_t vocab) {
  flow::StepPlan plan;
  for (const PlannedRows& one : rows) {
    flow::PlannedSequence planned;
    planned.seq = SeqId(one.sequence + 1);
    planned.first_row = static_cast<std::uint32_t>(plan.tokens.size());
    planned.num_rows = one.num_rows;
    planned.first_position = one.positions - one.num_rows;
    planned.first_table = static_cast<std::uint32_t>(plan.block_tables.size());
    planned.num_table = blocks_for(one.positions);
    planned.samples = true;
    planned.residual_group = one.sequence;
    planned.sampling.temperature = 0;
    const std::uint32_t first_block = one.sequence * blocks_for(length);
    for (std::uint32_t i = 0; i < planned.num_table; ++i) plan.block_tables.push_back(BlockId(first_block + i));
    for (std::uint32_t p = planned.first_position; p < one.positions; ++p) {
      plan.tokens.push_back(static_cast<TokenId>((one.sequence * 7919u + p * 104729u) % vocab));
      plan.positions.push_back(p);
      plan.slots.push_back(first_block * kBlockTokens + p);
    }
    plan.sequences.push_back(planned);
  }
  return plan;
}

flow::StepPlan plan_alike(std::uint32_t sequences, std::uint32_t rows_each, std::uint32_t positions,
                          std::uint32_t length, std::uint32_t vocab) {
  std::vector<PlannedRows> rows;
  for (std::uint32_t s = 0; s < sequences; ++s) rows.push_back({s, rows_each, positions});
  return plan_of(rows, length, vocab);
}

double seconds_of_step(model::DecoderRunner& runner, const flow::StepPlan& plan) {
  const Deadline watch(0);
  runner.submit(plan);
  runner.collect();
  return watch.passed();
}

}  // namespace quire::gpu::measure
