// quire bench --mode step: cost of a step by its number of rows: the table from which draft sizes are chosen.
//   M rows as one token of each of M sequences (above 64 rows, several tokens of each of 64 sequences), and the same M
//   rows in one sequence. c(M) / c(1) is relative to one row in the same round. Only the last row of a sequence is a
//   logits row. Every sequence has a context of its own; a round runs every size once, so that a slower machine slows
//   all sizes.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>
#include <vector>

#include "app/model/machine.h"
#include "core/kv/layout.h"
#include "tools/bench/bench.h"
#include "tools/bench/plan.h"
#include "tools/common/figures.h"
#include "tools/common/progress.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kRows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512};
constexpr std::uint32_t kContext = 128;
constexpr std::uint32_t kMaxRows = 512;
constexpr std::uint32_t kMaxSequences = 64;
constexpr double kLeastSeconds = 0.02;  // per size and round

struct Cost {
  std::uint32_t rows = 0;
  std::uint32_t sequences = 0;
  std::vector<double> seconds;   // [runs]
  std::vector<double> over_one;  // [runs]
};

class StepBench {
 public:
  StepBench(const Config& config, const LoadedModel& model)
      : vocab_(model.config.vocab),
        block_tokens_(config.block_size),
        runner_(*model.ops, *model.decoder, limits(model)) {}

  void fill_contexts() REQUIRES(engine_role) {
    constexpr std::uint32_t kTogether = kMaxRows / kMaxSequences;
    for (std::uint32_t done = 0; done < kContext; done += kTogether) {
      seconds_of_step(runner_, step(kMaxSequences, kTogether, done));
    }
  }

  // Seconds per step, averaged over as many as take kLeastSeconds.
  double measure(std::uint32_t sequences, std::uint32_t rows_each) REQUIRES(engine_role) {
    const flow::StepPlan plan = step(sequences, rows_each, kContext);
    double sum = 0;
    std::uint32_t steps = 0;
    while (steps == 0 || sum < kLeastSeconds) {
      sum += seconds_of_step(runner_, plan);
      ++steps;
    }
    return sum / steps;
  }

 private:
  // Blocks per sequence. Only the first sequence may run all rows alone; the others have just the blocks that they
  // need.
  std::uint32_t blocks_each() const { return kv::blocks_for(kContext + kMaxRows / kMaxSequences, block_tokens_); }

  model::RunnerLimits limits(const LoadedModel& model) const {
    model::RunnerLimits limits;
    limits.max_rows = kMaxRows;
    limits.max_sequences = kMaxSequences;
    limits.block_tokens = block_tokens_;
    limits.num_blocks = std::max(kMaxSequences * blocks_each(), kv::blocks_for(kContext + kMaxRows, block_tokens_));
    limits.kv_dtype = model.kv_dtype;
    return limits;
  }

  flow::StepPlan step(std::uint32_t sequences, std::uint32_t rows_each, std::uint32_t first_position) const {
    return bench_plan(sequences, rows_each, first_position, blocks_each(), block_tokens_, vocab_);
  }

  const std::uint32_t vocab_;
  const std::uint32_t block_tokens_;
  model::DecoderRunner runner_;
};

// Measures the sizes with at most `max_each` rows per sequence.
std::vector<Cost> measure_all(StepBench& bench, std::uint32_t max_sequences, std::uint32_t max_each, std::uint32_t runs,
                              const Progress& progress) REQUIRES(engine_role) {
  std::vector<Cost> costs;
  for (const std::uint32_t rows : kRows) {
    const std::uint32_t sequences = std::min(rows, max_sequences);
    if (rows / sequences <= max_each) costs.push_back({rows, sequences, {}, {}});
  }
  for (std::uint32_t run = 0; run < runs; ++run) {
    for (Cost& cost : costs) {
      progress.say(fmt::format("run {} of {}, {} rows of {} sequences", run + 1, runs, cost.rows, cost.sequences));
      cost.seconds.push_back(bench.measure(cost.sequences, cost.rows / cost.sequences));
      cost.over_one.push_back(cost.seconds.back() / costs.front().seconds.back());
    }
  }
  return costs;
}

boost::json::array json_of(const std::vector<Cost>& costs) {
  boost::json::array out;
  for (const Cost& cost : costs) {
    out.push_back({{"rows", cost.rows},
                   {"sequences", cost.sequences},
                   {"seconds", median(cost.seconds)},
                   {"over_one_row", median(cost.over_one)}});
  }
  return out;
}

void print_text(const std::vector<Cost>& many, const std::vector<Cost>& one) {
  fmt::print("{:>6} | {:>10} {:>10} {:>10} {:>12} | {:>12} {:>10}\n", "rows", "sequences", "ms", "c(M)/c(1)", "rows/s",
             "one seq., ms", "c(M)/c(1)");
  for (std::size_t i = 0; i < many.size(); ++i) {
    const double seconds = median(many[i].seconds);
    fmt::print("{:>6} | {:>10} {:>10.3f} {:>10.2f} {:>12.1f} |", many[i].rows, many[i].sequences, 1e3 * seconds,
               median(many[i].over_one), many[i].rows / seconds);
    if (i < one.size()) fmt::print(" {:>12.3f} {:>10.2f}", 1e3 * median(one[i].seconds), median(one[i].over_one));
    fmt::print("\n");
  }
}

}  // namespace

int bench_step(const Config& config, const BenchOptions& options) {
  const Progress progress("bench --mode step");
  progress.say("packing the weights");
  const BenchModel model = bench_model(config, options, kMaxRows, kContext + kMaxRows / kMaxSequences);
  const std::uint32_t room = model.loaded.decoder->max_model_len() - kContext;  // maximum rows of one sequence
  const MachineFigures machine = measure_machine(config, options.runs);

  const RoleScope role(engine_role);
  StepBench bench(config, model.loaded);
  bench.fill_contexts();
  bench.measure(kMaxSequences, kMaxRows / kMaxSequences);  // warm-up of pages and caches
  const std::vector<Cost> many = measure_all(bench, kMaxSequences, kMaxRows, options.runs, progress);
  const std::vector<Cost> one = measure_all(bench, 1, room, options.runs, progress);
  if (options.json) {
    boost::json::object out = {{"mode", "step"},
                               {"model", model_line(model.loaded)},
                               {"backend", model.loaded.ops->description()},
                               {"runs", options.runs},
                               {"context_tokens", kContext}};
    add_machine(machine, out);
    out["rows"] = json_of(many);
    out["rows_of_one_sequence"] = json_of(one);
    print_json(out);
  } else {
    fmt::print("{}\n{}; medians of {} runs, after {} tokens each\n{}\n\n", model_line(model.loaded), app::cpu_name(),
               options.runs, kContext, machine_line(machine));
    print_text(many, one);
  }
  return 0;
}

}  // namespace quire::tools
