#include <fmt/format.h>

#include "tools/gpu_measure/measured_model.h"
#include "tools/gpu_measure/rows.h"
#include "tools/gpu_measure/timing.h"

namespace quire::gpu::measure {
namespace {

struct Point {
  std::uint32_t sequences;
  std::uint32_t context;
};

constexpr std::uint32_t kMaxRows = 512;
constexpr std::uint32_t kLongest = 32768 + 64;

// The most informative points come first, as the time may run out.
std::vector<Point> points(bool tiny) {
  if (tiny) return {{1, 20}, {2, 20}};
  std::vector<Point> out;
  for (const std::vector<std::uint32_t>& counts :
       {std::vector{1u, 8u, 64u, 256u}, std::vector{32u, 128u, 2u, 4u, 16u}}) {
    for (const std::uint32_t context : {512u, 4096u, 32768u}) {
      for (const std::uint32_t sequences : counts) out.push_back({sequences, context});
    }
  }
  return out;
}

void add_least(const Cost& cost, const Rates& rates, double seconds, boost::json::object& row) {
  if (rates.bytes_per_s <= 0 || rates.flops_per_s <= 0) return;
  const double least = least_seconds(cost, {rates.bytes_per_s, rates.flops_per_s, 0});
  row["least_s"] = least;
  row["of_least"] = least / seconds;
}

boost::json::object decoded(const Setup& setup, MeasuredModel& model, const Point& point) REQUIRES(engine_role) {
  const std::uint32_t steps = setup.tiny ? 2 : 32;
  const std::uint32_t length = point.context + steps;
  const auto runner = model.runner(point.sequences, length);
  const std::uint32_t vocab = model.shape().vocab;
  seconds_of_step(*runner, plan_alike(point.sequences, 1, point.context, length, vocab));
  // Time from one step's result to the next one's, with another step in flight, as when serving.
  std::vector<double> seconds;
  const Deadline patience(setup.seconds / 20);
  runner->submit(plan_alike(point.sequences, 1, point.context + 1, length, vocab));
  for (std::uint32_t i = 2; i <= steps && !(patience.over() && i > 4); ++i) {
    const Deadline watch(0);
    runner->submit(plan_alike(point.sequences, 1, point.context + i, length, vocab));
    runner->collect();
    seconds.push_back(watch.passed());
  }
  runner->collect();
  const double once = median(seconds);
  boost::json::object row = {
      {"what", "decode"}, {"sequences", point.sequences},          {"context", point.context},
      {"step_s", once},   {"step_p99_s", percentile(seconds, 99)}, {"tokens_per_s", point.sequences / once}};
  add_least(model.cost_of_step(point.sequences, 1, length), setup.rates, once, row);
  return row;
}

boost::json::object prefilled(const Setup& setup, MeasuredModel& model, std::uint32_t rows, std::uint32_t positions)
    REQUIRES(engine_role) {
  const auto runner = model.runner(1, positions);
  const flow::StepPlan plan = plan_alike(1, rows, positions, positions, model.shape().vocab);
  seconds_of_step(*runner, plan);
  std::vector<double> seconds;
  const Deadline patience(setup.seconds / 20);
  for (int i = 0; i < (setup.tiny ? 1 : 5) && !(patience.over() && i > 0); ++i)
    seconds.push_back(seconds_of_step(*runner, plan));
  const double once = median(seconds);
  boost::json::object row = {
      {"what", "prefill"}, {"rows", rows}, {"context", positions}, {"step_s", once}, {"tokens_per_s", rows / once}};
  add_least(model.cost_of_step(1, rows, positions), setup.rates, once, row);
  return row;
}

}  // namespace

boost::json::object decode(const Setup& setup) {
  const Deadline deadline(setup.seconds);
  const std::uint32_t most = setup.tiny ? 2 : 256;
  MeasuredModel model(setup, setup.tiny ? 8 : kMaxRows, setup.tiny ? 64 : kLongest, most * (kLongest / 16 + 1), most);
  const double loaded_s = deadline.passed();
  Rows rows;
  bool all = true;
  for (const std::uint32_t positions : setup.tiny ? std::vector{8u} : std::vector{512u, 4096u}) {
    rows.add(prefilled(setup, model, setup.tiny ? 8 : kMaxRows, positions));
  }
  for (const Point& point : points(setup.tiny)) {
    const std::uint64_t kv = model.kv_bytes(point.sequences, point.context + 64);
    if (kv + (std::uint64_t{2} << 30) > model.device().free_bytes()) continue;  // too large for the free memory
    if (deadline.over()) {
      all = false;
      break;
    }
    rows.add(decoded(setup, model, point));
  }
  return {{"device", model.device().name()},
          {"model", fmt::format("{} {}", model.shape().name, name_of(setup.quantize.value_or(backend::Format::kBF16)))},
          {"loaded_s", loaded_s},
          {"rows", rows.take()},
          {"failed", 0},
          {"all", all}};
}

}  // namespace quire::gpu::measure
