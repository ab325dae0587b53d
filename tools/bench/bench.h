// Shared parts of the modes of `quire bench`: the model, measured limits of the machine, medians of times.
//   runner   prefill and decode           micro   each kernel              step     cost of a step by its rows
//   profile  time of a step by op         serve   the engine with streams  compare  two servers, the same load
//   speculate  speedup of verifying draft tokens
// Thread  main, in the engine's role where it calls a runner or ops itself.
// Fails   StartError: a model that is too short, or a failure to load it.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/model/loaded_model.h"
#include "core/base/thread_role.h"
#include "tools/common/options.h"
#include "tools/common/random_model.h"

namespace quire::tools {

using app::LoadedModel;
using app::ModelSource;
using app::OpsWrapper;

// Runs quire-bench and returns the process's exit code.
int bench(const Config& config, const BenchOptions& options);

int bench_runner(const Config& config, const BenchOptions& options);
int bench_micro(const Config& config, const BenchOptions& options);
int bench_step(const Config& config, const BenchOptions& options);
int bench_profile(const Config& config, const BenchOptions& options);
int bench_serve(const Config& config, const BenchOptions& options);
int bench_compare(const BenchOptions& options);
int bench_speculate(const Config& config, const BenchOptions& options);

// The configured model, or random weights. `random` owns their bytes and must outlive the files.
struct BenchSource {
  std::unique_ptr<RandomModel> random;
  ModelSource source;
};
BenchSource bench_source(const Config& config, const BenchOptions& options);

struct BenchModel {
  std::unique_ptr<RandomModel> random;
  LoadedModel loaded;
};
// StartError if the model's maximum length is less than `min_length`.
BenchModel bench_model(const Config& config, const BenchOptions& options, std::uint32_t max_rows,
                       std::uint32_t min_length, const OpsWrapper& wrap = nullptr);

// Bytes of the weights that a step reads: all of them, except an embedding table that is not also the output matrix.
std::uint64_t weight_bytes_of_step(const LoadedModel& model);

inline constexpr std::uint64_t kReadBytes = std::uint64_t{512} << 20;  // much larger than any cache

// Read bandwidth of this machine, measured in the same run as the figures that are compared with it.
struct MachineFigures {
  std::uint32_t threads = 0;
  double read_best = 0;    // bytes a second
  double read_median = 0;  // bytes a second
};
// Single measurements of read bandwidth, each taken next to the run that is compared with it.
class MemoryReads {
 public:
  explicit MemoryReads(std::uint32_t threads) : threads_(threads) {}
  double measure();                // bytes a second
  MachineFigures figures() const;  // of all measurements so far; at least one

 private:
  std::uint32_t threads_;
  std::vector<double> all_;
};
MachineFigures measure_machine(const Config& config, std::uint32_t runs, std::uint64_t buffer_bytes = kReadBytes);
std::string machine_line(const MachineFigures& machine);
void add_machine(const MachineFigures& machine, boost::json::object& out);

// Seconds per call of `work`: the median of `runs` batches, each of as many calls as take about `least` together.
double median_seconds(const std::function<void()>& work, std::uint32_t runs,
                      std::chrono::duration<double> least = std::chrono::milliseconds(5));

double seconds_of_step(model::DecoderRunner& runner, const flow::StepPlan& plan) REQUIRES(engine_role);

void print_json(const boost::json::object& report);

}  // namespace quire::tools
