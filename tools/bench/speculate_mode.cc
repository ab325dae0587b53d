// quire bench --mode speculate: speedup of verifying draft tokens on this machine, independent of a real drafter: a
// synthetic one knows the answers, drafts each token correctly with probability --draft-alpha, and takes --draft-cost
// of a step per draft token.
//   T(n)/T(1): a step of one sequence with n rows, all logits rows, over a step of one row in the same round.
//   Then each number of streams without drafts, with --draft-tokens draft tokens in every step, and with as many of
//   them as depth control chooses: alternating, with ratios per round. All answers must be equal.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "app/drafting/step_prior.h"
#include "app/model/machine.h"
#include "core/base/check.h"
#include "core/kv/layout.h"
#include "core/speculate/depth/depth_control.h"
#include "core/speculate/synthetic_drafter.h"
#include "tools/bench/bench.h"
#include "tools/bench/draft_run.h"
#include "tools/bench/load.h"
#include "tools/bench/plan.h"
#include "tools/common/figures.h"
#include "tools/common/progress.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kMostVerified = 16;  // maximum K of T(K+1)/T(1)
constexpr std::uint32_t kContext = 128;
constexpr double kLeastSeconds = 0.02;  // per size and round

enum Way : std::uint8_t { kNone, kFixed, kAdaptive, kNumWays };
constexpr std::string_view kWays[kNumWays] = {"none", "fixed", "adaptive"};

struct Verified {
  std::uint32_t nodes = 0;
  std::vector<double> seconds;   // [runs]
  std::vector<double> over_one;  // [runs]
};

struct Row {
  std::uint32_t streams = 0;
  std::array<std::vector<double>, kNumWays> tokens_per_s;   // [runs]
  std::array<std::vector<double>, kNumWays> over_none;      // [runs]
  std::array<std::vector<double>, kNumWays> tokens_a_step;  // [runs] per stream
  double estimated_speedup = 0;                             // as depth control computes it
  bool same_answers = true;
};

class SpeculateBench {
 public:
  SpeculateBench(const Config& config, const BenchOptions& options, const LoadedModel& model)
      : options_(options),
        model_(model),
        block_tokens_(config.block_size),
        threads_(config.threads.value_or(app::usable_cpus())),
        most_(*std::max_element(options.streams.begin(), options.streams.end())),
        runner_(*model.ops, *model.decoder, limits()) {}

  std::vector<Verified> measure_verifying() REQUIRES(engine_role) {
    const std::uint32_t blocks = kv::blocks_for(kContext + 1 + kMostVerified, block_tokens_);
    seconds_of_step(runner_, bench_plan(1, kContext, 0, blocks, block_tokens_, model_.config.vocab));
    sample::TokenTree chain;
    for (std::uint32_t i = 0; i < kMostVerified; ++i) chain.add(static_cast<TokenId>(i), static_cast<int>(i) - 1);
    std::vector<Verified> out(kMostVerified + 1);
    for (std::uint32_t run = 0; run <= options_.runs; ++run) {
      for (std::uint32_t nodes = 0; nodes <= kMostVerified; ++nodes) {
        flow::StepPlan plan = bench_plan(1, 1 + nodes, kContext, blocks, block_tokens_, model_.config.vocab);
        if (nodes > 0) {
          plan.sequences[0].draft = &chain;
          plan.sequences[0].num_nodes = nodes;
        }
        const double seconds = measure(plan);
        if (run == 0) continue;  // the first run is a warm-up of pages and caches
        out[nodes].nodes = nodes;
        out[nodes].seconds.push_back(seconds);
        out[nodes].over_one.push_back(seconds / out[0].seconds.back());
      }
    }
    return out;
  }

  Row measure_streams(std::uint32_t streams, double step_seconds, const Progress& progress) REQUIRES(engine_role) {
    Row row;
    row.streams = streams;
    speculate::DepthControl depth({}, speculate::StepCosts(app::step_prior(model_, threads_)),
                                  speculate::DraftCosts({}));
    for (std::uint32_t run = 0; run < options_.runs; ++run) {
      progress.say(fmt::format("{} streams, round {} of {}", streams, run + 1, options_.runs));
      std::vector<std::vector<TokenId>> prompts;
      for (std::uint32_t i = 0; i < streams; ++i) {
        prompts.push_back(load_prompt({options_.prompt_tokens, 0, model_.config.vocab}, run, i));
      }
      const std::vector<std::vector<TokenId>> answers =
          run_drafts(shape(), prompts, runner_, nullptr, nullptr).answers;  // also a warm-up
      speculate::SyntheticDrafter drafter({.alpha = options_.draft_alpha,
                                           .seconds_per_node = options_.draft_cost * step_seconds,
                                           .vocab = model_.config.vocab,
                                           .seed = run + 1});
      for (std::uint32_t i = 0; i < streams; ++i) drafter.add_answer(prompts[i], answers[i]);
      std::array<double, kNumWays> tokens_per_s{};
      for (std::uint32_t turn = 0; turn < kNumWays; ++turn) {
        const std::uint32_t way = (turn + run) % kNumWays;  // the order changes from run to run
        const DraftRunFigures figures = run_drafts(shape(), prompts, runner_, way == kNone ? nullptr : &drafter,
                                                   way == kAdaptive ? &depth : nullptr);
        row.same_answers = row.same_answers && figures.answers == answers;
        tokens_per_s[way] = figures.tokens_per_s;
        row.tokens_a_step[way].push_back(figures.tokens_per_step);
      }
      for (std::uint32_t way = 0; way < kNumWays; ++way) {
        row.tokens_per_s[way].push_back(tokens_per_s[way]);
        row.over_none[way].push_back(tokens_per_s[way] / tokens_per_s[kNone]);
      }
    }
    row.estimated_speedup = depth.estimated_speedup();
    return row;
  }

 private:
  std::uint32_t length() const { return options_.prompt_tokens + options_.answer_tokens; }
  std::uint32_t rows_of_drafts() const { return most_ * (1 + std::max(options_.draft_tokens, kMostVerified)); }

  model::RunnerLimits limits() const {
    model::RunnerLimits limits;
    limits.max_rows = std::max(512u, rows_of_drafts());
    limits.max_sequences = most_;
    limits.max_logits_rows = rows_of_drafts();
    limits.block_tokens = block_tokens_;
    // One extra block per sequence for draft tokens beyond the answer.
    limits.num_blocks = std::max(most_ * (kv::blocks_for(length() + options_.draft_tokens, block_tokens_) + 1),
                                 kv::blocks_for(kContext + 1 + kMostVerified, block_tokens_));
    limits.kv_dtype = model_.kv_dtype;
    return limits;
  }

  DraftRunShape shape() const {
    const model::RunnerLimits all = limits();
    return {.num_blocks = all.num_blocks,
            .block_tokens = block_tokens_,
            .max_rows = all.max_rows,
            .max_logits_rows = all.max_logits_rows,
            .vocab = model_.config.vocab,
            .max_model_len = length(),
            .max_draft_nodes = options_.draft_tokens,
            .answer_tokens = options_.answer_tokens,
            .residual_groups = model_.kv_dtype == backend::KvType::kInt4};
  }

  // Seconds per step, averaged over as many as take kLeastSeconds.
  double measure(const flow::StepPlan& plan) REQUIRES(engine_role) {
    double sum = 0;
    std::uint32_t steps = 0;
    while (sum < kLeastSeconds) {
      sum += seconds_of_step(runner_, plan);
      ++steps;
    }
    return sum / steps;
  }

  const BenchOptions& options_;
  const LoadedModel& model_;
  const std::uint32_t block_tokens_;
  const std::uint32_t threads_;
  const std::uint32_t most_;
  model::DecoderRunner runner_;
};

// Expected tokens of a step with K draft tokens: (1 - alpha^(K+1)) / (1 - alpha).
// Source  Leviathan, Kalman and Matias 2023, equation 1.
double expected_tokens(double alpha, std::uint32_t nodes) {
  return alpha >= 1 ? nodes + 1 : (1 - std::pow(alpha, nodes + 1)) / (1 - alpha);
}

double expected_speedup(const BenchOptions& options, const Verified& one) {
  return expected_tokens(options.draft_alpha, one.nodes) / (median(one.over_one) + one.nodes * options.draft_cost);
}

void print_text(const BenchOptions& options, const std::vector<Verified>& verified, const std::vector<Row>& rows) {
  fmt::print("{:>6} | {:>10} {:>12} {:>22}\n", "K", "ms", "T(K+1)/T(1)", "expected speedup");
  for (const Verified& one : verified) {
    fmt::print("{:>6} | {:>10.3f} {:>12.3f} {:>22.2f}\n", one.nodes, 1e3 * median(one.seconds), median(one.over_one),
               expected_speedup(options, one));
  }
  fmt::print("\n{:>8} | {:>9} tokens/s | {:>9} {:>6} {:>12} | {:>9} {:>6} {:>12} {:>9} | {}\n", "streams", "none",
             "fixed", "x", "tokens/step", "adaptive", "x", "tokens/step", "estimate", "answers");
  for (const Row& row : rows) {
    fmt::print("{:>8} | {:>18.2f} | {:>9.2f} {:>6.3f} {:>12.2f} | {:>9.2f} {:>6.3f} {:>12.2f} {:>9.2f} | {}\n",
               row.streams, median(row.tokens_per_s[kNone]), median(row.tokens_per_s[kFixed]),
               median(row.over_none[kFixed]), median(row.tokens_a_step[kFixed]), median(row.tokens_per_s[kAdaptive]),
               median(row.over_none[kAdaptive]), median(row.tokens_a_step[kAdaptive]), row.estimated_speedup,
               row.same_answers ? "the same" : "DIFFERENT");
  }
}

boost::json::array json_of(const BenchOptions& options, const std::vector<Verified>& verified) {
  boost::json::array out;
  for (const Verified& one : verified) {
    out.push_back({{"nodes", one.nodes},
                   {"seconds", median(one.seconds)},
                   {"over_one_row", median(one.over_one)},
                   {"expected_speedup", expected_speedup(options, one)}});
  }
  return out;
}

boost::json::array json_of(const std::vector<Row>& rows) {
  boost::json::array out;
  for (const Row& row : rows) {
    boost::json::object one = {{"streams", row.streams}};
    for (std::uint32_t way = 0; way < kNumWays; ++way) {
      one[kWays[way]] = {{"tokens_per_s", median(row.tokens_per_s[way])},
                         {"over_none", median(row.over_none[way])},
                         {"tokens_per_step", median(row.tokens_a_step[way])}};
    }
    one["estimated_speedup"] = row.estimated_speedup;
    one["same_answers"] = row.same_answers;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

int bench_speculate(const Config& config, const BenchOptions& options) {
  const Progress progress("bench --mode speculate");
  progress.say("packing the weights");
  const std::uint32_t most = *std::max_element(options.streams.begin(), options.streams.end());
  const std::uint32_t max_rows = std::max(512u, most * (1 + std::max(options.draft_tokens, kMostVerified)));
  const BenchModel model = bench_model(
      config, options, max_rows, std::max(options.prompt_tokens + options.answer_tokens, kContext + 1 + kMostVerified));
  const MachineFigures machine = measure_machine(config, options.runs);

  const RoleScope role(engine_role);
  SpeculateBench bench(config, options, model.loaded);
  progress.say("steps with drafts");
  const std::vector<Verified> verified = bench.measure_verifying();
  std::vector<Row> rows;
  for (const std::uint32_t streams : options.streams) {
    rows.push_back(bench.measure_streams(streams, median(verified[0].seconds), progress));
  }
  if (options.json) {
    boost::json::object out = {{"mode", "speculate"},
                               {"model", model_line(model.loaded)},
                               {"backend", model.loaded.ops->description()},
                               {"runs", options.runs},
                               {"prompt_tokens", options.prompt_tokens},
                               {"answer_tokens", options.answer_tokens},
                               {"draft_tokens", options.draft_tokens},
                               {"draft_alpha", options.draft_alpha},
                               {"draft_cost", options.draft_cost}};
    add_machine(machine, out);
    out["verify"] = json_of(options, verified);
    out["rows"] = json_of(rows);
    print_json(out);
  } else {
    fmt::print(
        "{}\n{}; medians of {} runs; prompts of {} tokens, answers of {}\n{} draft tokens, each accepted with "
        "probability {} at a cost of {} steps\n{}\n\n",
        model_line(model.loaded), app::cpu_name(), options.runs, options.prompt_tokens, options.answer_tokens,
        options.draft_tokens, options.draft_alpha, options.draft_cost, machine_line(machine));
    print_text(options, verified, rows);
  }
  return std::ranges::all_of(rows, &Row::same_answers) ? 0 : 1;
}

}  // namespace quire::tools
