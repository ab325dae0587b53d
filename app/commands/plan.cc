// quire serve --plan: prints the memory that serving would take, from file headers or config.json alone: packs nothing,
// opens no port.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "app/commands/commands.h"
#include "app/config/units.h"
#include "app/config/version.h"
#include "app/drafting/draft_memory.h"
#include "app/drafting/draft_settings.h"
#include "app/instance/pinned_prefixes.h"
#include "app/model/chat_templates.h"
#include "app/model/engine_settings.h"
#include "app/model/loaded_model.h"
#include "app/model/speed_estimate.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

void print_model(const ReadModel& read) {
  fmt::print("{}: a plan only: no weights are packed, no port is opened\n", version_text());
  fmt::print("{}: {}, {:.1f} M parameters\n", read.source.name, read.config.architecture,
             static_cast<double>(read.num_parameters) * 1e-6);
  if (read.device->num_ranks() > 1) {
    fmt::print("tensor parallel: {} devices; all sizes below are per device\n", read.device->num_ranks());
  }
  fmt::print("weights: {} as stored, {} packed{}\n", bytes_text(read.weight_bytes), bytes_text(read.packed_bytes),
             read.has_weights ? "" : ", by config.json: there are no weights here");
  if (const std::string experts = experts_text(read.config); !experts.empty()) {
    fmt::print("experts of a token: {}; {} of the packed weights are active\n", experts, bytes_text(read.step_bytes));
  }
  const auto free = read.device->free_bytes();
  fmt::print("memory free now: {}\n", free ? bytes_text(*free) : "unknown");
}

void print_cache(const MemoryPlan& plan, const MemoryRequest& request, const ReadModel& read, std::uint32_t max_rows,
                 const std::string& groups) {
  fmt::print("{}\n", kv_line(plan, request, read.kv_dtype));
  fmt::print("a block: {} ({} bytes)\n", bytes_text(request.block_bytes), request.block_bytes);
  if (!groups.empty()) fmt::print("{}\n", groups);
  if (request.fixed_bytes != 0) {
    fmt::print("residual groups of {} sequences, in full precision: {}\n", request.max_num_seqs,
               bytes_text(request.fixed_bytes));
  }
  if (const std::string own = device_memory_line(plan, request, max_rows); !own.empty()) {
    fmt::print("{}, by the files' sizes: row buffers not yet subtracted\n", own);
  }
  if (const std::string drafts = drafts_line(plan, request); !drafts.empty()) fmt::print("{}\n", drafts);
  if (const std::string swap = swap_line(plan, request); !swap.empty()) fmt::print("{}\n", swap);
  for (const std::string& note : plan.notes) fmt::print("{}\n", note);
  fmt::print("weights{} and KV cache: {}\n", plan.draft_bytes == 0 ? "" : ", drafts",
             bytes_text(read.packed_bytes + plan.bytes + plan.draft_bytes));
}

// Prints how many sequences fit, for common lengths and the maximum.
void print_concurrency(const MemoryPlan& plan, const MemoryRequest& request) {
  std::vector<std::uint32_t> lengths;
  for (std::uint64_t length = 1024; length < plan.max_model_len; length *= 4) {
    lengths.push_back(static_cast<std::uint32_t>(length));
  }
  lengths.push_back(plan.max_model_len);
  fmt::print("\n{:>10} {:>18} {:>22}\n", "tokens", "sequences that fit", "run at the same time");
  for (const std::uint32_t length : lengths) {
    const std::uint64_t fit = sequences_that_fit(plan, request, length);
    fmt::print("{:>10} {:>18} {:>22}\n", length, fit, std::min<std::uint64_t>(fit, request.max_num_seqs));
  }
}

void print_speed(const MemoryPlan& plan, const MemoryRequest& request, const ReadModel& read) {
  const SpeedEstimate speed = estimate_speed(read.step_bytes, read.device->free_bytes());
  const std::uint64_t kv_bytes = request.most_blocks(plan.max_model_len) * request.block_bytes;
  fmt::print("decoding speed: {} ({})\n", speed_text(speed, plan.max_model_len, kv_bytes), speed_source_text(speed));
}

// Anything in the files that would make a start fail must fail here, too.
std::vector<PinnedPrefix> check_texts(const Config& config, const ReadModel& read, const MemoryRequest& request) {
  load_chat_model(config, *read.source.files);
  const auto tokenizer = load_tokenizer(*read.source.files);
  model::load_generation_defaults(*read.source.files, read.config);
  return read_pinned_prefixes(config.pin_prefix, *tokenizer, read.config.vocab, wanted_length(request));
}

}  // namespace

int plan(const Config& given, const std::vector<std::string>& notes) {
  const Config config = with_embedded_head(given);
  for (const std::string& note : notes) log_info("note", "{}", note);
  const ReadModel read = read_model(config, open_model(config.model), WeightFiles::kPlanned);
  print_model(read);
  std::fflush(stdout);  // if planning fails below, this output explains it
  const MemoryRequest request = with_drafts(request_before_packing(config, read), draft_memory(config, read));
  const MemoryPlan plan =
      plan_memory(read.has_weights ? with_pinned(request, check_texts(config, read, request)) : request);
  print_cache(plan, request, read, config.max_num_batched_tokens, kv_groups(config, read.config).describe());
  if (!read.device->has_own_memory()) print_speed(plan, request, read);
  print_concurrency(plan, request);
  return 0;
}

}  // namespace quire::app
