#include "app/instance.h"

#include <random>
#include <utility>

#include "app/version.h"
#include "core/model/numeric_mode.h"

namespace quire::app {
namespace {

std::string_view text_of(model::FileBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::shared_ptr<const text::Tokenizer> load_tokenizer(const model::ModelFiles& files) {
  const auto config = files.find("tokenizer_config.json");
  return text::Tokenizer::load(text_of(files.require("tokenizer.json")),
                               config ? text_of(*config) : std::string_view());
}

observe::MetricsInfo metrics_info(const std::string& name, const std::string& mode, const MemoryPlan& plan,
                                  std::uint32_t block_size) {
  observe::MetricsInfo info;
  info.model_name = name;
  info.version = kVersion;
  info.numeric_mode = mode;
  info.block_size = block_size;
  info.num_blocks = plan.num_blocks;
  info.max_model_len = plan.max_model_len;
  return info;
}

model::RunnerLimits runner_limits(const Config& config, const MemoryPlan& plan, backend::DType kv_dtype) {
  model::RunnerLimits limits;
  limits.max_rows = config.max_num_batched_tokens;
  limits.max_sequences = config.max_num_seqs;
  limits.block_tokens = config.block_size;
  limits.num_blocks = plan.num_blocks;
  limits.kv_dtype = kv_dtype;
  return limits;
}

engine::EngineOptions engine_options(const Config& config, const MemoryPlan& plan, std::uint32_t vocab) {
  engine::EngineOptions options;
  options.scheduler.max_num_seqs = config.max_num_seqs;
  options.scheduler.max_num_batched_tokens = config.max_num_batched_tokens;
  options.vocab = vocab;
  options.max_model_len = plan.max_model_len;
  options.stall_timeout = config.stall_timeout;
  options.prefix_caching = config.prefix_caching == "on";
  std::random_device device;  // nobody outside knows which prompts share a bucket
  options.prefix_index.hash_key = std::uint64_t{device()} << 32 | device();
  return options;
}

}  // namespace

Instance::Instance(const Config& config)
    : loaded_(load_model(config, open_model(config.model), config.max_num_batched_tokens)),
      names_(config.served_model_name.empty() ? loaded_.source.names : config.served_model_name),
      tokenizer_(load_tokenizer(*loaded_.source.files)),
      numeric_mode_(model::numeric_mode(loaded_.config, loaded_.decoder->checkpoint_digest(),
                                        loaded_.ops->description(), loaded_.decoder->weight_dtype(), loaded_.kv_dtype)),
      request_(memory_request(config, loaded_.config, loaded_.kv_dtype)),
      plan_(plan_memory(request_)),
      queue_({config.max_queue, config.max_queue_tokens}, doorbell_),
      metrics_(metrics_info(names_.front(), numeric_mode_, plan_, config.block_size)),
      runner_(*loaded_.ops, *loaded_.decoder, runner_limits(config, plan_, loaded_.kv_dtype)),
      pool_(plan_.num_blocks, config.block_size),
      engine_(engine_options(config, plan_, loaded_.config.vocab),
              {runner_, pool_, queue_, doorbell_, status_, metrics_, clock_}) {
  read_generation_defaults(config);
}

void Instance::read_generation_defaults(const Config& config) {
  const model::GenerationDefaults given = model::load_generation_defaults(*loaded_.source.files, loaded_.config);
  eos_ = given.eos.empty() ? loaded_.config.eos : given.eos;
  if (config.generation_config == "none") return;
  defaults_.temperature = given.temperature.value_or(defaults_.temperature);
  defaults_.top_p = given.top_p.value_or(defaults_.top_p);
  defaults_.min_p = given.min_p.value_or(defaults_.min_p);
  defaults_.top_k = given.top_k.value_or(defaults_.top_k);
}

void Instance::start(std::function<void()> on_failure) {
  thread_ = std::make_unique<engine::EngineThread>(engine_, doorbell_, status_, std::move(on_failure));
  thread_->start();
}

std::vector<std::string> Instance::description() const {
  std::vector<std::string> lines = {model_line(loaded_), "numeric mode: " + numeric_mode_,
                                    kv_line(plan_, request_, loaded_.kv_dtype)};
  lines.insert(lines.end(), plan_.notes.begin(), plan_.notes.end());
  return lines;
}

}  // namespace quire::app
