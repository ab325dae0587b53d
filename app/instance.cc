#include "app/instance.h"

#include <algorithm>
#include <random>
#include <utility>

#include "app/version.h"
#include "core/base/start_error.h"
#include "core/model/numeric_mode.h"

namespace quire::app {
namespace {

std::string_view text_of(model::FileBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::shared_ptr<const text::Tokenizer> load_tokenizer(const model::ModelFiles& files) {
  const auto config = files.find("tokenizer_config.json");
  return text::Tokenizer::load(text_of(files.require("tokenizer.json")),
                               config ? text_of(*config) : std::string_view());
}

model::GenerationDefaults generation_of(const ReadModel& read) {
  model::GenerationDefaults given = model::load_generation_defaults(*read.source.files, read.config);
  if (given.eos.empty()) given.eos = read.config.eos;
  return given;
}

sample::Params default_params(const Config& config, const model::GenerationDefaults& given) {
  sample::Params params;
  if (config.generation_config == "none") return params;
  params.temperature = given.temperature.value_or(params.temperature);
  params.top_p = given.top_p.value_or(params.top_p);
  params.min_p = given.min_p.value_or(params.min_p);
  params.top_k = given.top_k.value_or(params.top_k);
  return params;
}

// What the weights will take is no longer free; packed they are about as large as stored.
MemoryRequest request_before_packing(const Config& config, const ReadModel& read) {
  if (read.kv_dtype == backend::KvType::kInt4) {
    throw StartError("--kv-cache-dtype int4: sequences are not yet given open groups of their own; take int8");
  }
  MemoryRequest request = memory_request(config, read.config, read.kv_dtype);
  if (request.free_bytes) *request.free_bytes -= std::min(*request.free_bytes, read.weight_bytes);
  return request;
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

model::RunnerLimits runner_limits(const Config& config, const MemoryPlan& plan, backend::KvType kv_dtype) {
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

Instance::Instance(const Config& config) : Instance(config, read_model(config, open_model(config.model))) {}

Instance::Instance(const Config& config, ReadModel read)
    : names_(config.served_model_name.empty() ? read.source.names : config.served_model_name),
      tokenizer_(load_tokenizer(*read.source.files)),
      generation_(generation_of(read)),
      defaults_(default_params(config, generation_)),
      request_(request_before_packing(config, read)),
      plan_(plan_memory(request_)),
      loaded_(pack_model(config, std::move(read), config.max_num_batched_tokens, plan_.max_model_len)),
      numeric_mode_(model::numeric_mode(loaded_.config, loaded_.decoder->checkpoint_digest(),
                                        loaded_.ops->description(), loaded_.decoder->weight_dtype(), loaded_.kv_dtype)),
      queue_({config.max_queue, config.max_queue_tokens}, doorbell_),
      metrics_(metrics_info(names_.front(), numeric_mode_, plan_, config.block_size)),
      runner_(*loaded_.ops, *loaded_.decoder, runner_limits(config, plan_, loaded_.kv_dtype)),
      pool_(plan_.num_blocks, config.block_size),
      engine_(engine_options(config, plan_, loaded_.config.vocab),
              {runner_, pool_, queue_, doorbell_, status_, metrics_, clock_}) {}

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
