// quire bench: prefill and decode through the runner, without scheduler or HTTP, beside the speed at which this machine
// reads memory with the same threads in the same run. Every figure is a median.
//   decode reads all weights and every sequence's K and V once a step: bytes a second of that, over the bandwidth read.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "app/bench_plan.h"
#include "app/commands.h"
#include "app/loaded_model.h"
#include "app/machine.h"
#include "app/random_model.h"
#include "app/scenario/figures.h"
#include "app/scenario/scenario.h"
#include "app/units.h"
#include "core/base/start_error.h"
#include "core/base/thread_role.h"
#include "core/kv/layout.h"

namespace quire::app {
namespace {

constexpr std::uint32_t kPrefills[] = {128, 512};
constexpr std::uint32_t kDecodes[] = {1, 8, 32};
constexpr std::uint32_t kContext = 128;  // tokens before the first decode step
constexpr std::uint32_t kSteps = 32;     // decode steps of a run
constexpr std::uint32_t kMaxRows = 512;
constexpr std::uint32_t kMaxSequences = 32;
constexpr std::uint32_t kLongest = std::max(kMaxRows, kContext + kSteps);
constexpr std::uint64_t kBandwidthBytes = std::uint64_t{512} << 20;  // far larger than any cache

struct Row {
  std::string what;  // "prefill" or "decode"
  std::uint32_t size;
  double tokens_per_s;
  double bytes_per_s;  // weights, K and V read
};

struct Report {
  std::string model;
  std::string cpu;
  std::string backend;
  std::uint32_t threads = 0;
  std::uint32_t runs = 0;
  std::uint64_t weight_bytes = 0;  // read by one step
  double bandwidth_best = 0;
  double bandwidth_median = 0;
  std::vector<Row> rows;
};

double seconds_of_step(model::DecoderRunner& runner, const flow::StepPlan& plan) REQUIRES(engine_role) {
  const auto start = std::chrono::steady_clock::now();
  runner.submit(plan);
  runner.collect();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Weights that a step reads: everything but an embedding table that is not also the output matrix.
std::uint64_t weight_bytes_of_step(const LoadedModel& model) {
  const std::uint64_t table =
      std::uint64_t{model.config.vocab} * model.config.hidden * backend::bytes_of(model.decoder->weight_dtype());
  return model.decoder->packed_bytes() - (model.config.tied_head ? 0 : table);
}

class Bench {
 public:
  Bench(const Config& config, const LoadedModel& model, std::uint32_t runs)
      : model_(model), runs_(runs), block_tokens_(config.block_size), runner_(*model.ops, *model.decoder, limits()) {}

  Row prefill(std::uint32_t tokens) REQUIRES(engine_role) {
    const flow::StepPlan plan = step(1, tokens, 0);
    seconds_of_step(runner_, plan);  // pages and caches are warm from the second step on
    std::vector<double> seconds(runs_);
    for (double& run : seconds) run = seconds_of_step(runner_, plan);
    const double once = median(seconds);
    return {"prefill", tokens, tokens / once, bytes_of_step(1, tokens) / once};
  }

  Row decode(std::uint32_t sequences) REQUIRES(engine_role) {
    for (std::uint32_t done = 0; done < kContext; done += kMaxRows / sequences) {
      const std::uint32_t rows = std::min(kMaxRows / sequences, kContext - done);
      seconds_of_step(runner_, step(sequences, rows, done));
    }
    std::vector<double> seconds(runs_);
    for (double& run : seconds) {
      for (std::uint32_t i = 0; i < kSteps; ++i) run += seconds_of_step(runner_, step(sequences, 1, kContext + i));
    }
    const double once = median(seconds) / kSteps;
    return {"decode", sequences, sequences / once, bytes_of_step(sequences, kContext + kSteps / 2) / once};
  }

 private:
  model::RunnerLimits limits() const {
    model::RunnerLimits limits;
    limits.max_rows = kMaxRows;
    limits.max_sequences = kMaxSequences;
    limits.block_tokens = block_tokens_;
    limits.num_blocks = kMaxSequences * kv::blocks_for(kLongest, block_tokens_);
    limits.kv_dtype = model_.kv_dtype;
    return limits;
  }

  flow::StepPlan step(std::uint32_t sequences, std::uint32_t rows, std::uint32_t first_position) const {
    return bench_plan(sequences, rows, first_position, kv::blocks_for(kLongest, block_tokens_), block_tokens_,
                      model_.config.vocab);
  }

  double bytes_of_step(std::uint32_t sequences, std::uint32_t context) const {
    const std::uint64_t kv = std::uint64_t{sequences} * context * runner_.block_bytes() / block_tokens_;
    return static_cast<double>(weight_bytes_of_step(model_) + kv);
  }

  const LoadedModel& model_;
  const std::uint32_t runs_;
  const std::uint32_t block_tokens_;
  model::DecoderRunner runner_;
};

void print_text(const Report& report) {
  fmt::print("{}\n{}; {}; medians of {} runs\n", report.model, report.cpu, report.backend, report.runs);
  fmt::print("memory reads with {} threads: best {:.1f} GB/s, median {:.1f} GB/s\n\n", report.threads,
             report.bandwidth_best * 1e-9, report.bandwidth_median * 1e-9);
  fmt::print("{:<24} {:>12} {:>22} {:>22}\n", "", "tokens/s", "weights + KV, GB/s", "of the read bandwidth");
  for (const Row& row : report.rows) {
    const std::string what = row.what == "prefill" ? fmt::format("prefill, {} tokens", row.size)
                                                   : fmt::format("decode, {} sequences", row.size);
    fmt::print("{:<24} {:>12.1f} {:>22.2f} {:>21.0f}%\n", what, row.tokens_per_s, row.bytes_per_s * 1e-9,
               100 * row.bytes_per_s / report.bandwidth_median);
  }
}

void print_json(const Report& report) {
  boost::json::array rows;
  for (const Row& row : report.rows) {
    rows.push_back({{"what", row.what},
                    {row.what == "prefill" ? "tokens" : "sequences", row.size},
                    {"tokens_per_s", row.tokens_per_s},
                    {"bytes_per_s", row.bytes_per_s},
                    {"part_of_bandwidth", row.bytes_per_s / report.bandwidth_median}});
  }
  const boost::json::object out = {{"model", report.model},
                                   {"cpu", report.cpu},
                                   {"backend", report.backend},
                                   {"threads", report.threads},
                                   {"runs", report.runs},
                                   {"context_tokens", kContext},
                                   {"decode_steps", kSteps},
                                   {"weight_bytes_per_step", report.weight_bytes},
                                   {"read_bandwidth_best", report.bandwidth_best},
                                   {"read_bandwidth_median", report.bandwidth_median},
                                   {"rows", rows}};
  fmt::print("{}\n", boost::json::serialize(out));
}

}  // namespace

int bench(const Config& given, const BenchOptions& options) {
  Config config = given;
  config.max_model_len.reset();  // what is run is fixed
  if (!options.scenario.empty()) return run_scenario(config, options);
  std::unique_ptr<RandomModel> random;
  ModelSource source;
  if (options.random_shape.empty()) {
    source = open_model(config.model);
  } else {
    random = std::make_unique<RandomModel>(options.random_shape);
    source = {random->files(), {"random weights, " + options.random_shape}};
  }
  const LoadedModel model = load_model(config, std::move(source), kMaxRows);
  if (model.decoder->max_model_len() < kMaxRows) {
    throw StartError(fmt::format("bench runs prompts of {} tokens; this model goes up to {}", kMaxRows,
                                 model.decoder->max_model_len()));
  }

  Report report;
  report.model = model_line(model);
  report.cpu = cpu_name();
  report.backend = model.ops->description();
  report.threads = config.threads.value_or(usable_cpus());
  report.runs = options.runs;
  report.weight_bytes = weight_bytes_of_step(model);
  const std::vector<double> bandwidth = measure_read_bandwidth(report.threads, kBandwidthBytes, options.runs);
  report.bandwidth_best = *std::max_element(bandwidth.begin(), bandwidth.end());
  report.bandwidth_median = median(bandwidth);

  const RoleScope role(engine_role);
  Bench bench(config, model, options.runs);
  for (const std::uint32_t tokens : kPrefills) report.rows.push_back(bench.prefill(tokens));
  for (const std::uint32_t sequences : kDecodes) report.rows.push_back(bench.decode(sequences));
  options.json ? print_json(report) : print_text(report);
  return 0;
}

}  // namespace quire::app
