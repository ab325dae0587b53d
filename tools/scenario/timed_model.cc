#include "tools/scenario/timed_model.h"

#include <fmt/format.h>

#include <utility>

#include "app/model/embedded_model.h"
#include "app/model/engine_settings.h"
#include "core/base/start_error.h"
#include "core/kv/layout.h"

namespace quire::tools {
namespace {

constexpr const char* kLongShape = "135m";

std::uint32_t num_blocks(const TimedModel& model, const TimedOptions& options) {
  return options.max_num_seqs * kv::blocks_for(options.length, model.block_tokens);
}

model::RunnerLimits runner_limits(const TimedModel& model, const TimedOptions& options) {
  model::RunnerLimits limits;
  limits.max_rows = options.max_num_batched_tokens;
  limits.max_sequences = options.max_num_seqs;
  limits.block_tokens = model.block_tokens;
  limits.num_blocks = num_blocks(model, options);
  limits.kv_dtype = model.loaded.kv_dtype;
  return limits;
}

RigOptions rig_options(const TimedModel& model, const TimedOptions& options) {
  RigOptions out;
  out.scheduler.max_num_seqs = options.max_num_seqs;
  out.scheduler.max_num_batched_tokens = options.max_num_batched_tokens;
  app::set_model_options(model.loaded.kv_dtype, out.scheduler);
  out.vocab = model.vocab();
  out.max_model_len = options.length;
  out.prefix_caching = options.prefix_caching;
  return out;
}

}  // namespace

TimedModel timed_model(const ScenarioSetup& setup, std::uint32_t min_length) {
  static constexpr std::uint32_t kMaxRows = 512;
  setup.progress("packing the weights");
  const std::string& name = setup.config.model;
  const bool is_embedded = name.empty() || name == app::kEmbeddedModel;
  std::string shape = setup.random_shape;
  app::ModelSource source;
  if (shape.empty()) {
    source = app::open_model(name);
    const std::uint32_t length = model::load_config(*source.files).max_model_len();
    if (length < min_length && !is_embedded) {
      throw StartError(fmt::format("this scenario needs sequences of {} tokens; the maximum of MODEL {} is {}",
                                   min_length, name, length));
    }
    if (length < min_length) shape = kLongShape;
  }
  TimedModel out;
  if (!shape.empty()) {
    out.random = std::make_unique<RandomModel>(shape);
    source = {out.random->files(), {"random weights, " + shape}};
  }
  out.loaded = load_model(setup.config, std::move(source), kMaxRows);
  out.block_tokens = setup.config.block_size;
  return out;
}

TimedEngine::TimedEngine(TimedModel& model, const TimedOptions& options)
    : runner_(*model.loaded.ops, *model.loaded.decoder, runner_limits(model, options)),
      pool_(num_blocks(model, options), model.block_tokens, app::cache_groups(model::one_group(model.loaded.config))),
      rig_(rig_options(model, options), pool_, runner_, clock_) {}

}  // namespace quire::tools
