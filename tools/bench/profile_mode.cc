// quire bench --mode profile: time of a step by op, for prefill and decode through the runner.
//   Every figure is the median over the runs of an op's time per step; the rest of the step is planning and checks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/model/machine.h"
#include "core/kv/layout.h"
#include "tools/bench/bench.h"
#include "tools/bench/plan.h"
#include "tools/bench/timed_ops.h"
#include "tools/common/figures.h"
#include "tools/common/progress.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kPrompt = 512;   // tokens of prefill
constexpr std::uint32_t kContext = 480;  // tokens before a decode step
constexpr std::uint32_t kMaxSequences = 32;
constexpr std::uint32_t kSteps = 8;  // per run

struct Profile {
  std::string what;
  double step = 0;                                  // seconds
  std::array<double, TimedOps::kNumParts> parts{};  // seconds
};

class ProfileBench {
 public:
  ProfileBench(const Config& config, const LoadedModel& model, TimedOps& ops, std::uint32_t runs)
      : runs_(runs),
        vocab_(model.config.vocab),
        block_tokens_(config.block_size),
        ops_(ops),
        runner_(*model.ops, *model.decoder, limits(model)) {}

  Profile prefill() REQUIRES(engine_role) { return measure(fmt::format("prefill, {} tokens", kPrompt), 1, kPrompt, 0); }

  Profile decode(std::uint32_t sequences) REQUIRES(engine_role) {
    for (std::uint32_t done = 0; done < kContext; done += kPrompt / kMaxSequences) {
      seconds_of_step(runner_, step(sequences, kPrompt / kMaxSequences, done));
    }
    return measure(fmt::format("decode, {} sequences", sequences), sequences, 1, kContext);
  }

 private:
  model::RunnerLimits limits(const LoadedModel& model) const {
    model::RunnerLimits limits;
    limits.max_rows = kPrompt;
    limits.max_sequences = kMaxSequences;
    limits.block_tokens = block_tokens_;
    limits.num_blocks = kMaxSequences * blocks_each();
    limits.kv_dtype = model.kv_dtype;
    return limits;
  }
  std::uint32_t blocks_each() const { return kv::blocks_for(kPrompt, block_tokens_); }
  flow::StepPlan step(std::uint32_t sequences, std::uint32_t rows, std::uint32_t first_position) const {
    return bench_plan(sequences, rows, first_position, blocks_each(), block_tokens_, vocab_);
  }

  Profile measure(std::string what, std::uint32_t sequences, std::uint32_t rows, std::uint32_t first_position)
      REQUIRES(engine_role) {
    const flow::StepPlan plan = step(sequences, rows, first_position);
    const std::uint32_t steps = rows == 1 ? kSteps : 1;
    seconds_of_step(runner_, plan);  // warm-up of pages and caches
    std::vector<double> seconds(runs_);
    std::vector<std::vector<double>> parts(TimedOps::kNumParts, std::vector<double>(runs_));
    for (std::uint32_t run = 0; run < runs_; ++run) {
      ops_.clear();
      for (std::uint32_t i = 0; i < steps; ++i) seconds[run] += seconds_of_step(runner_, plan) / steps;
      for (std::size_t part = 0; part < parts.size(); ++part) parts[part][run] = ops_.seconds()[part] / steps;
    }
    Profile profile{std::move(what), median(std::move(seconds))};
    for (std::size_t part = 0; part < parts.size(); ++part) profile.parts[part] = median(std::move(parts[part]));
    return profile;
  }

  const std::uint32_t runs_;
  const std::uint32_t vocab_;
  const std::uint32_t block_tokens_;
  TimedOps& ops_;
  model::DecoderRunner runner_;
};

double rest_of(const Profile& profile) {
  return std::max(0.0, std::accumulate(profile.parts.begin(), profile.parts.end(), profile.step, std::minus<>()));
}

void print_text(const std::vector<Profile>& profiles) {
  fmt::print("{:<28}", "ms, and share of the step");
  for (const Profile& profile : profiles) fmt::print(" {:>22}", profile.what);
  const auto row = [&](std::string_view name, auto seconds_of) {
    fmt::print("\n{:<28}", name);
    for (const Profile& profile : profiles) {
      const double seconds = seconds_of(profile);
      fmt::print(" {:>15.3f} {:>5.1f}%", 1e3 * seconds, 100 * seconds / profile.step);
    }
  };
  for (std::size_t part = 0; part < TimedOps::kNumParts; ++part) {
    row(TimedOps::kNames[part], [part](const Profile& profile) { return profile.parts[part]; });
  }
  row("the rest", rest_of);
  row("step", [](const Profile& profile) { return profile.step; });
  fmt::print("\n");
}

boost::json::array json_of(const std::vector<Profile>& profiles) {
  boost::json::array out;
  for (const Profile& profile : profiles) {
    boost::json::object parts;
    for (std::size_t part = 0; part < TimedOps::kNumParts; ++part) {
      parts[TimedOps::kNames[part]] = profile.parts[part];
    }
    parts["the rest"] = rest_of(profile);
    out.push_back({{"what", profile.what}, {"step_seconds", profile.step}, {"seconds", std::move(parts)}});
  }
  return out;
}

}  // namespace

int bench_profile(const Config& config, const BenchOptions& options) {
  const Progress progress("bench --mode profile");
  progress.say("packing the weights");
  TimedOps* ops = nullptr;  // owned by the model
  const BenchModel model = bench_model(config, options, kPrompt, kPrompt, [&](std::unique_ptr<backend::Ops> inner) {
    auto timed = std::make_unique<TimedOps>(std::move(inner));
    ops = timed.get();
    return timed;
  });

  const RoleScope role(engine_role);
  ProfileBench bench(config, model.loaded, *ops, options.runs);
  progress.say("prefill");
  std::vector<Profile> profiles = {bench.prefill()};
  for (const std::uint32_t sequences : {1u, 8u, kMaxSequences}) {
    progress.say(fmt::format("decode, {} sequences", sequences));
    profiles.push_back(bench.decode(sequences));
  }
  if (options.json) {
    print_json({{"mode", "profile"},
                {"model", model_line(model.loaded)},
                {"backend", ops->description()},
                {"runs", options.runs},
                {"context_tokens", kContext},
                {"rows", json_of(profiles)}});
  } else {
    fmt::print("{}\n{}; medians of {} runs; decode after {} tokens each\n\n", model_line(model.loaded), app::cpu_name(),
               options.runs, kContext);
    print_text(profiles);
  }
  return 0;
}

}  // namespace quire::tools
