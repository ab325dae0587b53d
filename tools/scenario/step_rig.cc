#include "tools/scenario/step_rig.h"

#include "core/base/check.h"

namespace quire::tools {
namespace {

RigOptions rig_options(const StepRigOptions& options) {
  RigOptions out;
  out.scheduler = options.scheduler;
  out.vocab = StepRig::kVocab;
  out.max_model_len = options.num_blocks * options.block_tokens;
  out.prefix_caching = options.prefix_caching;
  out.cut_by_time = false;
  return out;
}

SeqId seq_of(std::size_t job) { return SeqId(job + 1); }

}  // namespace

StepRig::StepRig(const StepRigOptions& options)
    : pool_(options.num_blocks, options.block_tokens),
      runner_(pool_, kVocab),
      rig_(rig_options(options), pool_, runner_, clock_) {
  clock_.advance(time_of_step(0) - clock_.now());
}

std::vector<StepOutcome> StepRig::run(std::span<const Job> jobs,
                                      const std::function<void(const StepState&)>& after_step) {
  const auto begin_next = [this](std::uint64_t step) {
    clock_.advance(time_of_step(step) - clock_.now());
    runner_.begin_step(step);
  };
  std::vector<bool> ended(jobs.size(), false);
  begin_next(0);
  const std::vector<Outcome> outcomes =
      rig_.run(jobs, [&](std::uint64_t step, std::span<const Outcome> so_far, std::size_t num_done) {
        const auto running = static_cast<std::uint32_t>(rig_.metrics().requests_running.value());
        if (after_step) after_step({step, runner_.held_blocks(), runner_.stored_tokens(), running, num_done});
        for (std::size_t i = 0; i < jobs.size(); ++i) {
          if (ended[i] || so_far[i].num_tokens < jobs[i].max_tokens) continue;
          ended[i] = true;
          runner_.forget(seq_of(i));
        }
        num_steps_ = step + 1;
        begin_next(step + 1);
      });

  std::vector<StepOutcome> out(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CHECK_EQ(outcomes[i].num_tokens, jobs[i].max_tokens);
    const DryRunner::Seen& seen = runner_.seen(seq_of(i));
    out[i] = {jobs[i].arrival_step, seen.first_step,        outcomes[i].finished_step, seen.num_rows,
              seen.num_recomputed,  outcomes[i].num_tokens, outcomes[i].cached_tokens};
  }
  return out;
}

}  // namespace quire::tools
