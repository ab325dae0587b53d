// quire bench --mode runner: prefill and decode through the runner, without scheduler or HTTP, against the read
// bandwidth of this machine with the same threads. Every figure is a median.
//   A decode step reads all weights and every sequence's K and V once: these bytes per second are divided by the
//   bandwidth measured just before each run. The memory of a shared machine changes its speed from one second to the
//   next: only figures measured together can be compared.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <vector>

#include "app/model/machine.h"
#include "core/kv/layout.h"
#include "tools/bench/bench.h"
#include "tools/bench/plan.h"
#include "tools/common/figures.h"
#include "tools/common/progress.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kPrefills[] = {128, 512};
constexpr std::uint32_t kDecodes[] = {1, 8, 32};
constexpr std::uint32_t kContext = 128;  // tokens before the first decode step
constexpr std::uint32_t kSteps = 32;     // decode steps per run
constexpr std::uint32_t kMaxRows = 512;
constexpr std::uint32_t kMaxSequences = 32;
constexpr std::uint32_t kLongest = std::max(kMaxRows, kContext + kSteps);

struct Row {
  std::string what;  // "prefill" or "decode"
  std::uint32_t size;
  double tokens_per_s;
  double bytes_per_s;  // weights, K and V read
  double part;         // fraction of the read bandwidth
};

struct Report {
  std::string model;
  std::string backend;
  MachineFigures machine;
  std::uint32_t runs = 0;
  std::uint64_t weight_bytes = 0;  // read by each step
  std::vector<Row> rows;
};

class Bench {
 public:
  Bench(const Config& config, const LoadedModel& model, std::uint32_t runs)
      : model_(model),
        runs_(runs),
        block_tokens_(config.block_size),
        runner_(*model.ops, *model.decoder, limits()),
        reads_(config.threads.value_or(app::usable_cpus())) {}

  Row prefill(std::uint32_t tokens) REQUIRES(engine_role) {
    const flow::StepPlan plan = step(1, tokens, 0);
    seconds_of_step(runner_, plan);  // warm-up of pages and caches
    std::vector<double> seconds(runs_);
    std::vector<double> parts(runs_);
    const double bytes = bytes_of_step(1, tokens);
    for (std::uint32_t run = 0; run < runs_; ++run) {
      const double read = reads_.measure();
      seconds[run] = seconds_of_step(runner_, plan);
      parts[run] = bytes / seconds[run] / read;
    }
    const double once = median(seconds);
    return {"prefill", tokens, tokens / once, bytes / once, median(parts)};
  }

  Row decode(std::uint32_t sequences) REQUIRES(engine_role) {
    for (std::uint32_t done = 0; done < kContext; done += kMaxRows / sequences) {
      const std::uint32_t rows = std::min(kMaxRows / sequences, kContext - done);
      seconds_of_step(runner_, step(sequences, rows, done));
    }
    std::vector<double> seconds(runs_);
    std::vector<double> parts(runs_);
    const double bytes = kSteps * bytes_of_step(sequences, kContext + kSteps / 2);
    for (std::uint32_t run = 0; run < runs_; ++run) {
      const double read = reads_.measure();
      for (std::uint32_t i = 0; i < kSteps; ++i) {
        seconds[run] += seconds_of_step(runner_, step(sequences, 1, kContext + i));
      }
      parts[run] = bytes / seconds[run] / read;
    }
    const double all = median(seconds);
    return {"decode", sequences, kSteps * sequences / all, bytes / all, median(parts)};
  }

  MachineFigures machine() const { return reads_.figures(); }

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
    return static_cast<double>(model_.decoder->step_bytes() + kv);
  }

  const LoadedModel& model_;
  const std::uint32_t runs_;
  const std::uint32_t block_tokens_;
  model::DecoderRunner runner_;
  MemoryReads reads_;
};

void print_text(const Report& report) {
  fmt::print("{}\n{}; {}; medians of {} runs\n{}\n\n", report.model, app::cpu_name(), report.backend, report.runs,
             machine_line(report.machine));
  fmt::print("{:<24} {:>12} {:>22} {:>22}\n", "", "tokens/s", "weights + KV, GB/s", "of the read bandwidth");
  for (const Row& row : report.rows) {
    const std::string what = row.what == "prefill" ? fmt::format("prefill, {} tokens", row.size)
                                                   : fmt::format("decode, {} sequences", row.size);
    fmt::print("{:<24} {:>12.1f} {:>22.2f} {:>21.0f}%\n", what, row.tokens_per_s, row.bytes_per_s * 1e-9,
               100 * row.part);
  }
}

void write_json(const Report& report) {
  boost::json::array rows;
  for (const Row& row : report.rows) {
    rows.push_back({{"what", row.what},
                    {row.what == "prefill" ? "tokens" : "sequences", row.size},
                    {"tokens_per_s", row.tokens_per_s},
                    {"bytes_per_s", row.bytes_per_s},
                    {"part_of_bandwidth", row.part}});
  }
  boost::json::object out = {{"mode", "runner"},
                             {"model", report.model},
                             {"backend", report.backend},
                             {"runs", report.runs},
                             {"context_tokens", kContext},
                             {"decode_steps", kSteps},
                             {"weight_bytes_per_step", report.weight_bytes}};
  add_machine(report.machine, out);
  out["rows"] = std::move(rows);
  print_json(out);
}

}  // namespace

int bench_runner(const Config& config, const BenchOptions& options) {
  const Progress progress("bench");
  progress.say("packing the weights");
  const BenchModel model = bench_model(config, options, kMaxRows, kMaxRows);
  Report report;
  report.model = model_line(model.loaded);
  report.backend = model.loaded.ops->description();
  report.runs = options.runs;
  report.weight_bytes = model.loaded.decoder->step_bytes();

  const RoleScope role(engine_role);
  Bench bench(config, model.loaded, options.runs);
  for (const std::uint32_t tokens : kPrefills) {
    progress.say(fmt::format("prefill, {} tokens", tokens));
    report.rows.push_back(bench.prefill(tokens));
  }
  for (const std::uint32_t sequences : kDecodes) {
    progress.say(fmt::format("decode, {} sequences", sequences));
    report.rows.push_back(bench.decode(sequences));
  }
  report.machine = bench.machine();
  options.json ? write_json(report) : print_text(report);
  return 0;
}

}  // namespace quire::tools
