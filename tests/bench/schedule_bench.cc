// What a step costs besides its arithmetic, with 1, 64 and 1,024 sequences that decode behind 128 tokens of prompt and
// up to 512 of answer.
//   Scheduler  plan, commit and publish: scheduler, pool and prefix index alone. Targets: 20 us, 60 us, 1 ms.
//   BlockEnds  of those the dearest: every sequence fills a block in it, which enters the index.
//   Waiting    plan, commit and publish of 64 that decode while 1,024 wait for a place, by policy.
//   Admitting  under fair: one of so many that wait comes in, and another comes to the line.
//   Engine     a whole turn, with its queue and its streams, on a runner that answers at once.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/decoding_crowd.h"

namespace quire::testing {
namespace {

constexpr std::uint32_t kWarmUp = 2;  // the prompts, and the first token behind them
constexpr std::uint32_t kReadEvery = 32;

CrowdOptions crowd_of(const benchmark::State& state) {
  return {.num_sequences = static_cast<std::uint32_t>(state.range(0)), .prefix_caching = state.range(1) != 0};
}

void decode(benchmark::State& state, const CrowdOptions& options) {
  const RoleScope role(engine_role);
  std::unique_ptr<ScheduledCrowd> crowd;
  std::uint32_t steps_left = 0;
  for (auto _ : state) {
    if (steps_left == 0) {
      state.PauseTiming();
      crowd = std::make_unique<ScheduledCrowd>(options);
      for (std::uint32_t i = 0; i < kWarmUp; ++i) crowd->step();
      CHECK_EQ(crowd->num_planned(), options.num_sequences);
      steps_left = options.max_tokens - kWarmUp;
      state.ResumeTiming();
    }
    crowd->step();
    --steps_left;
  }
}

void Scheduler(benchmark::State& state) { decode(state, crowd_of(state)); }

void Waiting(benchmark::State& state, schedule::Policy policy) {
  decode(state, {.num_sequences = 64, .num_waiting = 1024, .policy = policy});
}

void Admitting(benchmark::State& state) {
  const RoleScope role(engine_role);
  const schedule::SchedulerOptions options{.policy = schedule::Policy::kFair};
  kv::BlockPool pool(4, 16);
  kv::PrefixIndex index(pool, {.hash_key = 1});
  schedule::WaitingQueue line(options, index);
  std::vector<std::unique_ptr<schedule::Sequence>> sequences;
  const auto come = [&] {
    flow::Request request;
    request.prompt.assign(8, 1);
    request.max_tokens = 8;
    request.tenant = static_cast<std::uint32_t>(sequences.size() % static_cast<std::size_t>(state.range(1)));
    request.priority = static_cast<std::int32_t>(sequences.size() % 3);
    sequences.push_back(std::make_unique<schedule::Sequence>(SeqId(sequences.size() + 1), std::move(request), pool));
    line.add(*sequences.back());
  };
  for (std::int64_t i = 0; i < state.range(0); ++i) come();
  for (auto _ : state) {
    line.begin_plan();
    line.admit(*line.next());
    come();
  }
}

void BlockEnds(benchmark::State& state) {
  const RoleScope role(engine_role);
  const CrowdOptions options = crowd_of(state);
  std::unique_ptr<ScheduledCrowd> crowd;
  std::uint32_t stored = 0;
  for (auto _ : state) {
    if (stored == 0) {
      crowd = std::make_unique<ScheduledCrowd>(options);
      crowd->step();
      stored = options.prompt_tokens;  // whole blocks
    }
    for (std::uint32_t i = 1; i < options.block_tokens; ++i) crowd->step();
    const auto start = std::chrono::steady_clock::now();
    crowd->step();
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    CHECK_EQ(crowd->num_planned(), options.num_sequences);
    stored += options.block_tokens;
    if (stored + options.block_tokens > options.length()) stored = 0;
  }
}

void Engine(benchmark::State& state) {
  const RoleScope role(engine_role);
  const CrowdOptions options = crowd_of(state);
  std::unique_ptr<EngineCrowd> crowd;
  std::uint32_t steps_left = 0;
  for (auto _ : state) {
    if (steps_left == 0 || steps_left % kReadEvery == 0) {
      state.PauseTiming();
      if (crowd) crowd->read_all();
      if (steps_left == 0) {
        crowd = std::make_unique<EngineCrowd>(options);
        for (std::uint32_t i = 0; i < kWarmUp; ++i) crowd->step();
        CHECK_EQ(crowd->num_running(), options.num_sequences);
        steps_left = options.max_tokens - kWarmUp - 1;  // the last one says the end
      }
      state.ResumeTiming();
    }
    crowd->step();
    --steps_left;
  }
}

void crowds(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"sequences", "prefix_cache"})->ArgsProduct({{1, 64, 1024}, {0, 1}})->Unit(benchmark::kMicrosecond);
}

BENCHMARK(Scheduler)->Apply(crowds);
BENCHMARK(BlockEnds)->Apply(crowds)->UseManualTime();
BENCHMARK_CAPTURE(Waiting, fcfs, schedule::Policy::kFcfs)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Waiting, priority, schedule::Policy::kPriority)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Waiting, deadline, schedule::Policy::kDeadline)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Waiting, fair, schedule::Policy::kFair)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Waiting, cache, schedule::Policy::kCache)->Unit(benchmark::kMicrosecond);
BENCHMARK(Admitting)
    ->ArgNames({"waiting", "tenants"})
    ->ArgsProduct({{64, 1024, 16384}, {1, 64, 4096}})
    ->Iterations(2000)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(Engine)->Apply(crowds);

}  // namespace
}  // namespace quire::testing

BENCHMARK_MAIN();
