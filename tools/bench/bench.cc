#include "tools/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <utility>

#include "app/model/machine.h"
#include "app/model/read_bandwidth.h"
#include "core/base/check.h"
#include "core/base/start_error.h"
#include "tools/common/figures.h"
#include "tools/scenario/scenario.h"

namespace quire::tools {

int bench(const Config& given, const BenchOptions& options) {
  Config config = given;
  config.max_model_len.reset();  // the bench sets the lengths itself
  if (!options.scenario.empty()) return run_scenario(config, options);
  switch (options.mode) {
    case BenchMode::kRunner:
      return bench_runner(config, options);
    case BenchMode::kMicro:
      return bench_micro(config, options);
    case BenchMode::kStep:
      return bench_step(config, options);
    case BenchMode::kProfile:
      return bench_profile(config, options);
    case BenchMode::kServe:
      return bench_serve(config, options);
    case BenchMode::kCompare:
      return bench_compare(options);
    case BenchMode::kSpeculate:
      return bench_speculate(config, options);
  }
  CHECK(false);
  return 0;
}

BenchSource bench_source(const Config& config, const BenchOptions& options) {
  if (options.random_shape.empty()) return {nullptr, app::open_model(config.model)};
  auto random = std::make_unique<RandomModel>(options.random_shape);
  ModelSource source{random->files(), "random weights, " + options.random_shape};
  return {std::move(random), std::move(source)};
}

BenchModel bench_model(const Config& config, const BenchOptions& options, std::uint32_t max_rows,
                       std::uint32_t min_length, const OpsWrapper& wrap) {
  BenchSource from = bench_source(config, options);
  BenchModel out{std::move(from.random), load_model(config, std::move(from.source), max_rows, wrap)};
  const std::uint32_t length = out.loaded.decoder->max_model_len();
  if (length < min_length) {
    throw StartError(
        fmt::format("bench needs sequences of {} tokens; the maximum of this model is {}", min_length, length));
  }
  return out;
}

std::uint64_t weight_bytes_of_step(const LoadedModel& model) { return model.decoder->step_bytes(); }

double MemoryReads::measure() {
  all_.push_back(app::measure_read_bandwidth(threads_, kReadBytes, 1).front());
  return all_.back();
}

MachineFigures MemoryReads::figures() const { return {threads_, percentile(all_, 100), median(all_)}; }

MachineFigures measure_machine(const Config& config, std::uint32_t runs, std::uint64_t buffer_bytes) {
  MachineFigures out;
  out.threads = config.threads.value_or(app::usable_cpus());
  const std::vector<double> reads = app::measure_read_bandwidth(out.threads, buffer_bytes, runs);
  out.read_best = percentile(reads, 100);
  out.read_median = median(reads);
  return out;
}

std::string machine_line(const MachineFigures& machine) {
  return fmt::format("memory reads with {} threads: best {:.1f} GB/s, median {:.1f} GB/s", machine.threads,
                     machine.read_best * 1e-9, machine.read_median * 1e-9);
}

void add_machine(const MachineFigures& machine, boost::json::object& out) {
  out["cpu"] = app::cpu_name();
  out["threads"] = machine.threads;
  out["read_bandwidth_best"] = machine.read_best;
  out["read_bandwidth_median"] = machine.read_median;
}

double median_seconds(const std::function<void()>& work, std::uint32_t runs, std::chrono::duration<double> least) {
  const auto seconds_of = [&work](std::uint64_t calls) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < calls; ++i) work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(calls);
  };
  seconds_of(1);  // warm-up of pages and caches
  const double once = std::max(seconds_of(1), 1e-9);
  const auto calls = static_cast<std::uint64_t>(std::clamp(std::ceil(least.count() / once), 1.0, 1e6));
  std::vector<double> seconds(runs);
  for (double& one : seconds) one = seconds_of(calls);
  return median(std::move(seconds));
}

double seconds_of_step(model::DecoderRunner& runner, const flow::StepPlan& plan) {
  const auto start = std::chrono::steady_clock::now();
  runner.submit(plan);
  runner.collect();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_json(const boost::json::object& report) { fmt::print("{}\n", boost::json::serialize(report)); }

}  // namespace quire::tools
