// Time of a step: of each kind of op on the device, idle time between the ops of a step, and time between steps.
//   Marks are events in the device's queue and take some time themselves: sums are slightly too high.

#include "tools/gpu_measure/measured_model.h"
#include "tools/gpu_measure/rows.h"
#include "tools/gpu_measure/timing.h"

namespace quire::gpu::measure {
namespace {

struct Times {
  std::array<std::vector<double>, MeasuredOps::kNumParts> parts;
  std::vector<double> steps;  // from the begin of the first op to the end of the last
  std::vector<double> idle;   // sum between the ops of a step
  std::vector<double> wall;
};

void add(const std::vector<MeasuredOps::Seen>& seen, Times& times) {
  std::array<double, MeasuredOps::kNumParts> sums{};
  double idle = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    sums[seen[i].part] += seen[i].end_s - seen[i].begin_s;
    if (i > 0) idle += seen[i].begin_s - seen[i - 1].end_s;
  }
  for (std::size_t part = 0; part < sums.size(); ++part) times.parts[part].push_back(sums[part]);
  times.steps.push_back(seen.back().end_s - seen.front().begin_s);
  times.idle.push_back(idle);
}

boost::json::object times_of(const Setup& setup, MeasuredModel& model, std::uint32_t sequences, std::uint32_t context)
    REQUIRES(engine_role) {
  const std::uint32_t steps = setup.tiny ? 2 : 50;
  const auto runner = model.runner(sequences, context + steps);
  const std::uint32_t vocab = model.shape().vocab;
  Times times;
  for (std::uint32_t i = 0; i < steps; ++i) {
    const flow::StepPlan plan = plan_alike(sequences, 1, context + i, context + steps, vocab);
    times.wall.push_back(seconds_of_step(*runner, plan));
    model.ops().watch();
    seconds_of_step(*runner, plan);
    add(model.ops().seen(), times);
  }
  boost::json::object parts;
  for (std::size_t part = 0; part < times.parts.size(); ++part) {
    parts[MeasuredOps::kNames[part]] = median(times.parts[part]);
  }
  return {{"sequences", sequences},
          {"context", context},
          {"step_s", median(times.wall)},
          {"device_s", median(times.steps)},
          {"idle_s", median(times.idle)},
          {"idle_p99_s", percentile(times.idle, 99)},
          {"between_steps_s", std::max(0.0, median(times.wall) - median(times.steps))},
          {"parts", std::move(parts)}};
}

}  // namespace

boost::json::object gaps(const Setup& setup) {
  const std::uint32_t most = setup.tiny ? 2 : std::max(64u, setup.sequences);
  MeasuredModel model(setup, most, setup.tiny ? 64 : setup.context + 1024, most * (setup.context / 16 + 64));
  const std::vector<std::uint32_t> counts = setup.sequences != 0 ? std::vector{setup.sequences} : std::vector{1u, most};
  Rows rows;
  for (const std::uint32_t sequences : counts) {
    rows.add(times_of(setup, model, sequences, setup.tiny ? 20 : setup.context));
  }
  return {{"device", model.device().name()}, {"model", model.shape().name}, {"rows", rows.take()}, {"failed", 0}};
}

}  // namespace quire::gpu::measure
