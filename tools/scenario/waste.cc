// Fraction of the allocated KV memory that holds tokens: in blocks as the engine allocates them, and in contiguous
// reservations for the same sequences in the same steps.
// Source  PagedAttention (Kwon et al. 2023), figure 2: reservations of the known answer length, of its next power of
//         two, and of the model's whole length. The mix is ours.
#include <array>
#include <bit>
#include <vector>

#include "core/kv/layout.h"
#include "tools/scenario/scenario.h"
#include "tools/scenario/step_rig.h"

namespace quire::tools {
namespace {

constexpr std::uint32_t kModelLength = 2048;
constexpr std::uint32_t kRequests = 200;
constexpr std::uint32_t kMaxSequences = 32;
constexpr std::uint32_t kEverySteps = 8;  // steps between two samples
// Deciles of prompt and answer lengths of a chat, in tokens: a few are long, most are short.
constexpr std::array<std::uint32_t, 11> kPrompts = {4, 12, 24, 40, 64, 100, 150, 230, 360, 600, 1024};
constexpr std::array<std::uint32_t, 11> kAnswers = {8, 40, 90, 140, 200, 260, 330, 420, 560, 760, 1024};

std::vector<Job> chat_mix() {
  Random random(96);
  std::vector<Job> jobs;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    const std::uint32_t prompt = random.from_deciles(kPrompts);
    jobs.push_back(
        {12 * i + random.between(0, 11), random.tokens(prompt, StepRig::kVocab), random.from_deciles(kAnswers)});
  }
  return jobs;
}

// Tokens that were stored, and that allocated blocks have room for, in a step.
struct Room {
  std::uint64_t step = 0;
  std::uint32_t running = 0;
  std::uint64_t stored = 0;
  std::uint64_t paged = 0;
};

struct Run {
  std::vector<Room> steps;
  std::vector<StepOutcome> outcomes;
};

Run run(const std::vector<Job>& jobs, std::uint32_t block_tokens) REQUIRES(engine_role) {
  const std::uint32_t num_blocks = kMaxSequences * kv::blocks_for(kModelLength, block_tokens);
  StepRig rig({num_blocks, block_tokens, false, {.max_num_seqs = kMaxSequences, .max_num_batched_tokens = 2048}});
  Run out;
  out.outcomes = rig.run(jobs, [&](const StepState& now) {
    if (now.step % kEverySteps != 0) return;
    out.steps.push_back({now.step, now.running, now.stored_tokens, std::uint64_t{now.held_blocks} * block_tokens});
  });
  CHECK_EQ(rig.num_preemptions(), 0u);
  return out;
}

struct Reserved {
  std::uint32_t num_sequences = 0;
  std::uint64_t exact = 0;    // the answer length is known in advance
  std::uint64_t doubled = 0;  // the answer's length rounded up to a power of two
  std::uint64_t whole = 0;    // the model's length
};

Reserved reserved_in(std::uint64_t step, const std::vector<Job>& jobs, const std::vector<StepOutcome>& outcomes) {
  Reserved out;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (outcomes[i].first_step > step || outcomes[i].finished_step < step) continue;
    ++out.num_sequences;
    out.exact += jobs[i].final_length();
    out.doubled += jobs[i].prompt.size() + std::bit_ceil(jobs[i].max_tokens);
    out.whole += kModelLength;
  }
  return out;
}

std::string share_line(std::string_view what, std::uint64_t stored, std::uint64_t allocated) {
  return fmt::format("{:<44} {:5.1f} % holds tokens", what,
                     100.0 * static_cast<double>(stored) / static_cast<double>(allocated));
}

}  // namespace

ScenarioReport waste_scenario(const ScenarioSetup&) {
  ScenarioReport report{Table({"step", "running", "stored_tokens", "paged_16_tokens", "paged_64_tokens",
                               "static_exact_tokens", "static_doubled_tokens", "static_whole_tokens"}),
                        {}};
  const std::vector<Job> jobs = chat_mix();
  const Run small = run(jobs, 16);
  const Run large = run(jobs, 64);
  CHECK_EQ(small.steps.size(), large.steps.size());
  std::uint64_t stored = 0, paged_16 = 0, paged_64 = 0;
  Reserved sum;
  for (std::size_t i = 0; i < small.steps.size(); ++i) {
    const Room& now = small.steps[i];
    // The pool is large enough for all in both runs, so the same sequences run.
    CHECK_EQ(now.stored, large.steps[i].stored);
    const Reserved reserved = reserved_in(now.step, jobs, small.outcomes);
    CHECK_EQ(reserved.num_sequences, now.running);
    report.table.row(now.step, now.running, now.stored, now.paged, large.steps[i].paged, reserved.exact,
                     reserved.doubled, reserved.whole);
    stored += now.stored;
    paged_16 += now.paged;
    paged_64 += large.steps[i].paged;
    sum.exact += reserved.exact;
    sum.doubled += reserved.doubled;
    sum.whole += reserved.whole;
  }
  report.summary = {share_line("blocks of 16 tokens:", stored, paged_16),
                    share_line("blocks of 64 tokens:", stored, paged_64),
                    share_line("reserved, the answer's length known:", stored, sum.exact),
                    share_line("reserved, the answer to a power of two:", stored, sum.doubled),
                    share_line(fmt::format("reserved, the model's {} tokens:", kModelLength), stored, sum.whole)};
  return report;
}

}  // namespace quire::tools
