#include "app/instance/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/routes/router.h"
#include "api/services/cache_namespace.h"
#include "app/config/version.h"
#include "app/drafting/draft_memory.h"
#include "app/drafting/profile_step.h"
#include "app/drafting/self_test.h"
#include "app/model/engine_settings.h"
#include "core/base/log.h"
#include "core/flow/request.h"
#include "core/model/run/numeric_mode.h"

namespace quire::app {
namespace {

// Adds the end tokens: those of generation_config.json, else of config.json, and the tokenizer's own. Many fine-tunes
// name their end token only in the tokenizer's files.
model::GenerationDefaults generation_of(const ReadModel& read, const text::Tokenizer& tokenizer) {
  model::GenerationDefaults given = model::load_generation_defaults(*read.source.files, read.config);
  if (given.eos.empty()) given.eos = read.config.eos;
  const std::optional<TokenId> end = tokenizer.eos();
  const bool is_model_s = end && static_cast<std::uint32_t>(*end) < read.config.vocab;
  if (is_model_s && std::ranges::find(given.eos, *end) == given.eos.end()) given.eos.push_back(*end);
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

observe::MetricsInfo metrics_info(const std::string& name, const std::string& mode, const MemoryPlan& plan,
                                  const Config& config, backend::KvType cache_dtype,
                                  const speculate::SpeculativeConfig& speculation) {
  observe::MetricsInfo info;
  info.model_name = name;
  info.version = kVersion;
  info.numeric_mode = mode;
  info.block_size = config.block_size;
  info.http_handlers = api::http::routes();
  info.num_blocks = plan.num_blocks;
  info.num_cpu_blocks = plan.num_swap_blocks;
  info.max_model_len = plan.max_model_len;
  info.cache_dtype = backend::name_of(cache_dtype);
  info.prefix_caching = config.prefix_caching == "on";
  if (speculation.method == speculate::Method::kNone) return info;
  info.speculative_method = name_of(speculation.method);
  info.num_speculative_tokens = speculation.num_speculative_tokens;
  return info;
}

model::RunnerLimits runner_limits(const Config& config, const model::ModelSpec& model, const MemoryPlan& plan,
                                  backend::KvType kv_dtype, const Drafting& drafting) {
  model::RunnerLimits limits;
  limits.max_rows = config.max_num_batched_tokens;
  limits.max_sequences = config.max_num_seqs;
  limits.block_tokens = config.block_size;
  limits.num_blocks = plan.num_blocks;
  limits.kv_dtype = kv_dtype;
  limits.max_logits_rows = std::min(config.max_num_seqs + drafting.num_logit_rows(), config.max_num_batched_tokens);
  limits.num_swap_blocks = plan.num_swap_blocks;
  limits.num_scratch_blocks = drafting.num_scratch_blocks();
  limits.captures = drafting.captures();
  limits.groups = kv_groups(config, model);
  return limits;
}

}  // namespace

Instance::Instance(const Config& config, const OnPacking& on_packing)
    : Instance(config, read_model(config, open_model(config.model)), on_packing) {}

Instance::Instance(const Config& config, ModelSource source)
    : Instance(config, read_model(config, std::move(source)), nullptr) {}

Instance::Instance(const Config& config, ReadModel read, const OnPacking& on_packing)
    : names_(config.served_model_name.empty() ? api::ModelNames({read.source.name}, read.source.path)
                                              : api::ModelNames(config.served_model_name)),
      tokenizer_(load_tokenizer(*read.source.files)),
      generation_(generation_of(read, *tokenizer_)),
      defaults_(default_params(config, generation_)),
      takes_defaults_(config.generation_config != "none"),
      speculation_(speculation_of(config)),
      request_(with_drafts(request_before_packing(config, read), draft_memory(config, read))),
      pinned_(read_pinned_prefixes(config.pin_prefix, *tokenizer_, read.config.vocab, wanted_length(request_))),
      plan_(plan_memory(with_pinned(request_, pinned_))),
      loaded_(pack(config, std::move(read), on_packing)),
      numeric_mode_(model::numeric_mode(loaded_.config, loaded_.decoder->checkpoint_digest(),
                                        loaded_.ops->description(), loaded_.decoder->weight_format(), loaded_.kv_dtype,
                                        loaded_.decoder->block_activation())),
      drafting_(speculation_, config, loaded_, plan_, numeric_mode_),
      queue_({config.max_queue, config.max_queue_tokens}, doorbell_),
      metrics_(metrics_info(names_.front(), numeric_mode_, plan_, config, loaded_.kv_dtype, speculation_)),
      runner_(*loaded_.ops, *loaded_.decoder,
              runner_limits(config, loaded_.config, plan_, loaded_.kv_dtype, drafting_)),
      drafter_(drafting_.complete(runner_.cache())),
      pool_(plan_.num_blocks, config.block_size, cache_groups(kv_groups(config, loaded_.config))),
      engine_(options_of_engine(config), parts_of_engine()) {}

std::string Instance::defaults_text() const {
  if (!takes_defaults_) return "";
  std::string text;
  const auto add = [&](const char* name, const auto& value) {
    if (value) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, *value);
  };
  add("temperature", generation_.temperature);
  add("top_p", generation_.top_p);
  add("top_k", generation_.top_k);
  add("min_p", generation_.min_p);
  add("repetition_penalty", generation_.repetition_penalty);
  add("max_new_tokens", generation_.max_new_tokens);
  return text;
}

LoadedModel Instance::pack(const Config& config, ReadModel read, const OnPacking& on_packing) {
  LoadedModel loaded =
      pack_model(config, std::move(read), config.max_num_batched_tokens, plan_.max_model_len, nullptr, on_packing);
  if (!loaded.device->has_own_memory()) return loaded;
  const RoleScope role(engine_role);  // until its own thread takes the engine over
  request_.free_bytes = free_behind_step(config, loaded, speculation_);
  request_ = with_drafts(request_, request_.drafts);     // drafts are not allocated yet
  request_.model_len = loaded.decoder->max_model_len();  // the rope table covers no more
  const std::vector<std::string> notes = std::move(plan_.notes);
  plan_ = plan_memory(with_pinned(request_, pinned_));
  if (plan_.notes.empty()) plan_.notes = notes;  // the notes on what the first plan lowered stay true
  return loaded;
}

engine::EngineOptions Instance::options_of_engine(const Config& config) const {
  engine::EngineOptions options = engine_options(config, loaded_.config, plan_, loaded_.kv_dtype, numeric_mode_);
  options.scheduler.max_logits_rows = config.max_num_seqs + drafting_.num_logit_rows();
  if (speculation_.method != speculate::Method::kNone) options.max_draft_nodes = speculation_.num_speculative_tokens;
  return options;
}

engine::EngineParts Instance::parts_of_engine() {
  return {.runner = runner_,
          .pool = pool_,
          .admission = queue_,
          .control = control_,
          .doorbell = doorbell_,
          .status = status_,
          .metrics = metrics_,
          .clock = clock_,
          .drafter = drafter_.get(),
          .depth = drafting_.depth()};
}

bridge::CacheFeed& Instance::feed_cache(std::size_t max_batches) {
  const RoleScope role(engine_role);  // until its own thread takes the engine over
  cache_feed_ = std::make_unique<bridge::CacheFeed>(max_batches);
  engine_.report_cache(*cache_feed_);
  return *cache_feed_;
}

void Instance::start(std::function<void()> on_failure) {
  {
    const RoleScope role(engine_role);  // until its own thread takes the engine over
    test_drafters();
    compute_pinned();
  }
  thread_ = std::make_unique<engine::EngineThread>(engine_, doorbell_, status_, std::move(on_failure));
  thread_->start();
}

void Instance::stop() {
  control_.close();  // a waiting order is rejected; a running one ends with the engine
  thread_.reset();
  drafting_.keep_costs();
}

void Instance::test_drafters() {
  if (speculation_.method == speculate::Method::kNone || !speculation_.self_test) return;
  if (drafting_.loaded().empty()) {
    log_info("draft_self_test", "skipped: {} uses no weights that could belong to another model",
             name_of(speculation_.method));
    return;
  }
  self_test(drafting_.loaded(), {.ops = *loaded_.ops,
                                 .target = *loaded_.decoder,
                                 .kv_dtype = loaded_.kv_dtype,
                                 .block_tokens = request_.block_tokens,
                                 .max_rows = runner_.limits().max_rows,
                                 .tokenizer = *tokenizer_,
                                 .max_model_len = plan_.max_model_len,
                                 .clock = clock_,
                                 .metrics = metrics_});
}

// Uses the namespace of requests without a tenant or salt, so that those find the prefixes.
void Instance::compute_pinned() {
  const std::string mode = model::fingerprint(numeric_mode_);
  const CacheNamespace cache_namespace = api::namespace_of_tenant(mode, /*tenant=*/{}, {});
  for (const PinnedPrefix& prefix : pinned_) engine_.pin_prefix(prefix.tokens, cache_namespace);
}

std::vector<std::string> Instance::description() const {
  std::vector<std::string> lines = {model_line(loaded_), weights_line(loaded_),
                                    arithmetic_line(loaded_, model::fingerprint(numeric_mode_)),
                                    "numeric mode: " + numeric_mode_, kv_line(plan_, request_, loaded_.kv_dtype)};
  if (speculation_.method != speculate::Method::kNone) {
    const bool by_rejection = speculation_.accept != sample::Accept::kMatch;
    lines.push_back(fmt::format("speculation: {}, up to {} draft tokens{}{}", name_of(speculation_.method),
                                speculation_.num_speculative_tokens, speculation_.adaptive ? ", adaptive" : "",
                                by_rejection ? fmt::format(", accepted by {}", name_of(speculation_.accept)) : ""));
    if (std::string drafts = drafts_line(plan_, request_); !drafts.empty()) lines.push_back(std::move(drafts));
  }
  const std::uint32_t max_rows = runner_.limits().max_rows;
  if (std::string own = device_memory_line(plan_, request_, max_rows); !own.empty()) lines.push_back(std::move(own));
  if (std::string swap = swap_line(plan_, request_); !swap.empty()) lines.push_back(std::move(swap));
  lines.insert(lines.end(), plan_.notes.begin(), plan_.notes.end());
  return lines;
}

}  // namespace quire::app
