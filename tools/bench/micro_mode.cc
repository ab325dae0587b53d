// quire bench --mode micro: each kernel against the machine's memory bandwidth and arithmetic, measured in the same
// run.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <memory>
#include <vector>

#include "app/model/machine.h"
#include "core/cpu/cpu_ops.h"
#include "tools/bench/bench.h"
#include "tools/bench/fma_peak.h"
#include "tools/bench/kernel_bench.h"
#include "tools/common/figures.h"
#include "tools/common/progress.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kMaxRows = 256;

struct Peaks {
  MachineFigures machine;
  double fma = 0;  // operations per second
};

void print_text(const std::vector<KernelFigure>& figures, const Peaks& peaks) {
  fmt::print("{:<8} {:<20} {:<44} {:>5} {:>11} {:>8} {:>5} {:>9} {:>5} {:>7} {:>7}\n", "kernel", "", "", "rows", "us",
             "GB/s", "%", "GFLOP/s", "%", "gather", "shared");
  for (const KernelFigure& one : figures) {
    fmt::print("{:<8} {:<20} {:<44} {:>5} {:>11.1f} {:>8.2f} {:>5.0f}", one.kernel, one.what, one.shape, one.rows,
               1e6 * one.seconds, 1e-9 * one.bytes_per_s(), 100 * one.bytes_per_s() / peaks.machine.read_median);
    if (one.flops > 0) fmt::print(" {:>9.2f} {:>5.0f}", 1e-9 * one.flops_per_s(), 100 * one.flops_per_s() / peaks.fma);
    if (one.over_contiguous > 0) fmt::print(" {:>7.3f}", one.over_contiguous);
    if (one.over_private > 0) fmt::print(" {:>15.3f}", one.over_private);
    fmt::print("\n");
  }
}

boost::json::array json_of(const std::vector<KernelFigure>& figures, const Peaks& peaks) {
  boost::json::array rows;
  for (const KernelFigure& one : figures) {
    boost::json::object row = {{"kernel", one.kernel},
                               {"what", one.what},
                               {"shape", one.shape},
                               {"rows", one.rows},
                               {"seconds", one.seconds},
                               {"bytes_per_s", one.bytes_per_s()},
                               {"part_of_bandwidth", one.bytes_per_s() / peaks.machine.read_median}};
    if (one.flops > 0) {
      row["flops_per_s"] = one.flops_per_s();
      row["part_of_fma_peak"] = one.flops_per_s() / peaks.fma;
    }
    if (one.over_contiguous > 0) row["over_contiguous"] = one.over_contiguous;
    if (one.over_private > 0) row["over_private"] = one.over_private;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

int bench_micro(const Config& config, const BenchOptions& options) {
  const Progress progress("bench --mode micro");
  progress.say("memory and arithmetic");
  Peaks peaks{measure_machine(config, options.runs, 2 * options.working_set_bytes), 0};
  peaks.fma = median(measure_fma_peak(peaks.machine.threads, options.runs));

  const RoleScope role(engine_role);
  const std::unique_ptr<backend::Ops> ops =
      cpu::make_cpu_ops({.num_threads = peaks.machine.threads, .isa = config.isa, .max_rows = kMaxRows});
  const std::vector<KernelFigure> figures = bench_kernels(
      *ops, {options.working_set_bytes, options.runs, [&](const std::string& what) { progress.say(what); }});
  if (options.json) {
    boost::json::object out = {{"mode", "micro"},          {"backend", ops->description()},
                               {"runs", options.runs},     {"working_set_bytes", options.working_set_bytes},
                               {"fma_width", fma_width()}, {"fma_peak", peaks.fma}};
    add_machine(peaks.machine, out);
    out["rows"] = json_of(figures, peaks);
    print_json(out);
  } else {
    fmt::print("{}; {}; medians of {} runs\n{}\nf32 multiply-adds in registers ({}): {:.0f} GFLOP/s\n\n",
               app::cpu_name(), ops->description(), options.runs, machine_line(peaks.machine), fma_width(),
               1e-9 * peaks.fma);
    print_text(figures, peaks);
  }
  return 0;
}

}  // namespace quire::tools
