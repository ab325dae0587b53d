#include "app/drafting/drafting.h"

#include <algorithm>
#include <utility>

#include "app/drafting/datastore_texts.h"
#include "app/drafting/draft_settings.h"
#include "app/drafting/step_costs_file.h"
#include "app/drafting/step_prior.h"
#include "app/model/machine.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/gguf/gguf_files.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/weight_checks.h"
#include "core/speculate/heads/eagle_drafter.h"
#include "core/speculate/heads/hydra_drafter.h"
#include "core/speculate/heads/medusa_drafter.h"
#include "core/speculate/lookup/hybrid_drafter.h"
#include "core/speculate/lookup/lookahead_drafter.h"
#include "core/speculate/lookup/ngram_drafter.h"
#include "core/speculate/lookup/rest_drafter.h"
#include "core/speculate/lookup/suffix_drafter.h"
#include "core/speculate/models/merged_drafter.h"
#include "core/speculate/models/triforce_drafter.h"

namespace quire::app {

using speculate::Method;

Drafting::Drafting(const speculate::SpeculativeConfig& speculation, const Config& config, const LoadedModel& target,
                   const MemoryPlan& plan, const std::string& numeric_mode)
    : speculation_(speculation), config_(config), target_(target), max_model_len_(plan.max_model_len) {
  if (speculation.method == Method::kNone) return;
  limits_ = model_draft_limits(speculation, config, plan.num_blocks);
  head_limits_ = head_runner_limits(config, plan.num_blocks, plan.max_model_len);
  head_limits_.num_swap_blocks = plan.num_swap_blocks;
  const std::uint32_t threads = config.threads.value_or(usable_cpus());
  if (!target.packed_file.empty()) costs_file_ = target.packed_file + ".costs";
  costs_key_ = step_costs_key(numeric_mode, cpu_name(), threads);
  speculate::DepthOptions depth;
  depth.adaptive = speculation.adaptive;
  depth_ = std::make_unique<speculate::DepthControl>(depth, first_costs(step_prior(target, threads)),
                                                     speculate::DraftCosts(speculate::DraftPrior{}));
  num_scratch_blocks_ = num_target_scratch_blocks(speculation, config, target.config);
  if (speculate::drafts_with_target(speculation.method)) return;
  drafter_ = make_drafter(speculation.method);
  if (loaded_.empty() && drafter_->needs().any()) loaded_.push_back(drafter_.get());
}

speculate::StepCosts Drafting::first_costs(const speculate::StepPrior& prior) const {
  speculate::StepCosts costs(prior);
  if (costs_file_.empty()) return costs;
  if (const Result<Done> read = read_step_costs(costs_file_, costs_key_, costs); read) {
    log_info("step_costs", "loaded from {}", costs_file_);
  } else {
    log_info("step_costs", "{}; measured anew, and stored at exit", read.error().message);
  }
  return costs;
}

void Drafting::keep_costs() const {
  if (costs_file_.empty() || !depth_) return;
  const Result<Done> written = write_step_costs(costs_file_, costs_key_, depth_->step_costs());
  if (!written) log_warn("step_costs", "{}; the next start measures them anew", written.error().message);
}

model::Captures Drafting::captures() const {
  if (!drafter_) return {};
  const speculate::Needs needs = drafter_->needs();
  return {needs.boundaries, needs.final_norm};
}

// The larger of one full draft and up to four rows per sequence, as far as a step has rows: if all sequences drafted
// more, the step would be compute-bound and drafting would not pay.
std::uint32_t Drafting::num_logit_rows() const {
  if (speculation_.method == Method::kNone) return 0;
  const std::uint32_t some = config_.max_num_seqs * std::min(speculation_.num_speculative_tokens, 4u);
  const std::uint32_t wanted = std::max(some, speculation_.num_speculative_tokens);
  return std::min(wanted, config_.max_num_batched_tokens - config_.max_num_seqs);
}

std::unique_ptr<speculate::Drafter> Drafting::complete(backend::KvCache& cache) {
  if (!speculate::drafts_with_target(speculation_.method)) return std::move(drafter_);
  if (speculation_.method == Method::kTriforce) {
    const speculate::SparseContext context{speculation_.sinks, speculation_.window};
    return std::make_unique<speculate::TriforceDrafter>(*target_.ops, *target_.decoder, cache,
                                                        make_model_drafter(speculation_.models.front()), limits_,
                                                        context, speculation_.shared_noise);
  }
  return std::make_unique<speculate::ModelDrafter>(*target_.ops, *target_.decoder, cache, limits_,
                                                   self_draft_options(speculation_, target_.config));
}

std::unique_ptr<speculate::Drafter> Drafting::make_drafter(Method method) {
  switch (method) {
    case Method::kNgram: {
      speculate::NgramOptions options;
      options.prompt_lookup_min = speculation_.prompt_lookup_min;
      options.prompt_lookup_max = speculation_.prompt_lookup_max;
      return std::make_unique<speculate::NgramDrafter>(options);
    }
    case Method::kSuffix: {
      speculate::SuffixOptions options;
      options.max_tree_depth = speculation_.suffix_max_tree_depth;
      options.max_cached_tokens = speculation_.suffix_max_cached_tokens;
      options.max_spec_factor = speculation_.suffix_max_spec_factor;
      options.max_spec_offset = speculation_.suffix_max_spec_offset;
      options.min_token_prob = speculation_.suffix_min_token_prob;
      options.width = speculation_.topk;
      return std::make_unique<speculate::SuffixDrafter>(options);
    }
    case Method::kRest: {
      speculate::RestOptions options;
      options.datastore = speculation_.datastore;
      options.width = speculation_.topk;
      return std::make_unique<speculate::RestDrafter>(options, tokenizer_key(*target_.source.files));
    }
    case Method::kLookahead: {
      speculate::LookaheadOptions options;
      options.window = speculation_.lookahead_window;
      options.ngram_size = speculation_.lookahead_ngram_size;
      options.ngrams_per_token = speculation_.lookahead_ngrams;
      return std::make_unique<speculate::LookaheadDrafter>(options);
    }
    case Method::kHybrid:
      return std::make_unique<speculate::HybridDrafter>(make_drafter(Method::kSuffix), make_head(),
                                                        speculate::HybridOptions{});
    case Method::kEagle:
    case Method::kEagle3:  // draft_memory() has checked that the head is of this kind
      return make_head();
    case Method::kMedusa:
      return make_medusa();
    case Method::kHydra:
      return make_hydra();
    case Method::kDraftModel:
      return make_model_drafter(speculation_.models.front());
    case Method::kSpecinfer: {
      std::vector<std::unique_ptr<speculate::Drafter>> members;
      for (const std::string& path : speculation_.models) members.push_back(make_model_drafter(path));
      return std::make_unique<speculate::MergedDrafter>("specinfer", std::move(members));
    }
    default:
      CHECK(false);  // built_methods() has no other method
      return nullptr;
  }
}

std::unique_ptr<speculate::Drafter> Drafting::make_head() {
  const auto files = head_files(speculation_, target_.source);
  auto head = std::make_unique<speculate::EagleDrafter>(*target_.ops, *target_.decoder, *files,
                                                        eagle_options(speculation_), head_limits_);
  loaded_.push_back(head.get());
  return head;
}

std::unique_ptr<speculate::Drafter> Drafting::make_medusa() {
  const auto files = head_files(speculation_, target_.source);
  speculate::MedusaOptions options;
  options.width = speculation_.topk;
  options.max_depth = speculation_.num_speculative_tokens;
  options.shared_noise = speculation_.shared_noise;
  return std::make_unique<speculate::MedusaDrafter>(*target_.ops, *target_.decoder, *files, options,
                                                    config_.max_num_batched_tokens, config_.max_num_seqs);
}

std::unique_ptr<speculate::Drafter> Drafting::make_hydra() {
  const auto files = head_files(speculation_, target_.source);
  speculate::HydraOptions options;
  options.width = speculation_.topk;
  options.max_depth = speculation_.num_speculative_tokens;
  options.shared_noise = speculation_.shared_noise;
  return std::make_unique<speculate::HydraDrafter>(*target_.ops, *target_.decoder, *files, options, head_limits_);
}

std::unique_ptr<speculate::Drafter> Drafting::make_model_drafter(const std::string& path) {
  DraftModel& model = models_.emplace_back();
  model.files = model::open_model_files(path);
  model::ModelSpec config = model::fitted(model::load_config(*model.files), model::open_decoder(*model.files));
  config.copy_kv_heads(target_.device->num_ranks());
  model.decoder = std::make_unique<model::Decoder>(*target_.ops, config, *model.files,
                                                   std::min(max_model_len_, config.max_model_len()));
  speculate::ModelDraftOptions options = model_draft_options(speculation_);
  options.member = static_cast<std::uint32_t>(models_.size() - 1);
  auto drafter =
      std::make_unique<speculate::ModelDrafter>(*target_.ops, *model.decoder, target_.config.vocab, limits_, options);
  loaded_.push_back(drafter.get());
  return drafter;
}

}  // namespace quire::app
