// What the modes of `quire bench` share: the model, what the machine gives in the same run, time taken as a median.
//   runner   prefill and decode          micro   each kernel       step     the cost of a step by its rows
//   profile  where a step's time goes      serve  the engine with its streams      compare  two servers, the same load
//   speculate  what verifying guesses brings
// Thread  main, which is the engine's thread where a runner or ops are driven by hand.
// Fails   StartError: a model that is too short, or whatever loading refuses.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/loaded_model.h"
#include "core/base/thread_role.h"
#include "tools/bench/options.h"
#include "tools/random_model.h"

namespace quire::tools {

using app::LoadedModel;
using app::ModelSource;
using app::OpsWrapper;

// What quire-bench does: returns the process's exit code.
int bench(const Config& config, const BenchOptions& options);

int bench_runner(const Config& config, const BenchOptions& options);
int bench_micro(const Config& config, const BenchOptions& options);
int bench_step(const Config& config, const BenchOptions& options);
int bench_profile(const Config& config, const BenchOptions& options);
int bench_serve(const Config& config, const BenchOptions& options);
int bench_compare(const BenchOptions& options);
int bench_speculate(const Config& config, const BenchOptions& options);

// The model asked for, or random weights. `random` holds the bytes of those: keep it as long as the files.
struct BenchSource {
  std::unique_ptr<RandomModel> random;
  ModelSource source;
};
BenchSource bench_source(const Config& config, const BenchOptions& options);

struct BenchModel {
  std::unique_ptr<RandomModel> random;
  LoadedModel loaded;
};
// Throws StartError where the model is shorter than `min_length`.
BenchModel bench_model(const Config& config, const BenchOptions& options, std::uint32_t max_rows,
                       std::uint32_t min_length, const OpsWrapper& wrap = nullptr);

// Weights that a step reads: everything but an embedding table that is not also the output matrix.
std::uint64_t weight_bytes_of_step(const LoadedModel& model);

inline constexpr std::uint64_t kReadBytes = std::uint64_t{512} << 20;  // much more than caches hold

// What this machine gives, measured now: what the figures beside it are parts of.
struct MachineFigures {
  std::uint32_t threads = 0;
  double read_best = 0;    // bytes a second
  double read_median = 0;  // bytes a second
};
// Taken one by one, each beside what is measured with it.
class MemoryReads {
 public:
  explicit MemoryReads(std::uint32_t threads) : threads_(threads) {}
  double measure();                // bytes a second
  MachineFigures figures() const;  // of all so far, one at least

 private:
  std::uint32_t threads_;
  std::vector<double> all_;
};
MachineFigures measure_machine(const Config& config, std::uint32_t runs, std::uint64_t buffer_bytes = kReadBytes);
std::string machine_line(const MachineFigures& machine);
void add_machine(const MachineFigures& machine, boost::json::object& out);

// Seconds that one call of `work` takes: calibrated to calls of `least` together, then the median of `runs` such.
double median_seconds(const std::function<void()>& work, std::uint32_t runs,
                      std::chrono::duration<double> least = std::chrono::milliseconds(5));

double seconds_of_step(model::DecoderRunner& runner, const flow::StepPlan& plan) REQUIRES(engine_role);

void print_json(const boost::json::object& report);

}  // namespace quire::tools
