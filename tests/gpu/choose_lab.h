// What the tests of choosing share: steps of random rows, and what host and device make of them, to be the same bit for
// bit.
// Shape   logits [R, width], of which [0, vocab) are the vocabulary and the rest NaN.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gpu/chooser.h"
#include "gpu/runtime/simulated_device.h"

namespace quire::gpu::test {

using backend::Choice;
using backend::LogitsRow;
using sample::Candidate;
using sample::TokenTree;

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine_() % n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  std::uint64_t bits() { return std::uint64_t{engine_()} << 32 | engine_(); }
  float uniform() { return static_cast<float>(engine_() >> 8) * 0x1p-23f - 1.0f; }  // [-1, 1)
  template <typename T>
  T of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::uint32_t>(values.size()))];
  }

 private:
  std::mt19937 engine_;
};

// Edits and what they are lists of.
struct OwnedEdits {
  std::vector<sample::Edit> each;
  std::vector<TokenId> forbidden;
  std::vector<std::uint32_t> allowed;
  sample::Edits view() const {
    sample::Edits edits;
    edits.each = each;
    edits.forbidden = forbidden;
    edits.allowed = allowed;
    return edits;
  }
};

struct Step {
  std::uint32_t vocab = 0;
  std::uint32_t width = 0;
  std::vector<float> logits;
  std::vector<LogitsRow> logits_rows;
  std::deque<OwnedEdits> edits;
  std::deque<TokenTree> trees;

  explicit Step(std::uint32_t vocab_, std::uint32_t padding = 0) : vocab(vocab_), width(vocab_ + padding) {}

  LogitsRow& add(const std::vector<float>& row) {
    logits.insert(logits.end(), row.begin(), row.end());
    logits.resize(logits.size() + width - vocab, kNan);
    LogitsRow logits_row;
    logits_row.row = static_cast<std::uint32_t>(logits_rows.size());
    logits_row.position = 10 + logits_row.row;
    logits_rows.push_back(logits_row);
    return logits_rows.back();
  }
  backend::Batch batch() const {
    backend::Batch batch;
    batch.logits_rows = logits_rows;
    return batch;
  }
};

// A choice with its list.
struct Reported {
  Choice choice;
  std::vector<Candidate> top;
};

inline std::vector<Reported> entry(std::span<const Choice> choices) {
  std::vector<Reported> all;
  for (const Choice& choice : choices) all.push_back({choice, {choice.top.begin(), choice.top.end()}});
  return all;
}

inline std::vector<Reported> of_host(const Step& step) {
  backend::HostSampler choices(static_cast<std::uint32_t>(step.logits_rows.size()));
  sample::Scratch scratch(step.vocab);
  const backend::Batch batch = step.batch();
  choices.begin(batch);
  const auto row_of = [&](std::uint32_t r) {
    const std::span<const float> row =
        std::span<const float>(step.logits).subspan(std::size_t{r} * step.width, step.vocab);
    return backend::LogitRow{row, sample::highest_of(row)};
  };
  for (std::uint32_t verification = 0; verification < choices.num_verifications(); ++verification)
    choices.run(verification, row_of, scratch);
  return entry(choices.each());
}

// A chooser on a simulated device, for steps of any kind one after another.
class ChooseLab {
 public:
  explicit ChooseLab(std::uint64_t seed = 1, std::uint32_t max_logits_rows = 600, std::uint32_t max_edited = 128,
                     std::size_t edit_bytes = std::size_t{1} << 20)
      : device_(make_simulated_device(seed)), chooser_(*device_, {max_logits_rows, max_edited, edit_bytes}) {}

  std::vector<Reported> choose(const Step& step) {
    const DeviceMemory logits(*device_, step.logits.size() * sizeof(float), "logits");
    device_->upload(logits.data(), step.logits.data(), logits.bytes());
    chooser_.make_room(step.width);
    const backend::Batch batch = step.batch();
    chooser_.choose(batch, logits.as<const float>(), step.width, step.vocab);
    std::vector<Choice> choices(step.logits_rows.size());
    chooser_.collect(choices);
    tokens_.resize(choices.size());
    device_->download(tokens_.data(), chooser_.chosen(), tokens_.size() * sizeof(TokenId));
    return entry(choices);
  }

  const Chooser& chooser() const { return chooser_; }
  const std::vector<TokenId>& tokens() const { return tokens_; }  // as they stay on the device

 private:
  const std::unique_ptr<Device> device_;
  Chooser chooser_;
  std::vector<TokenId> tokens_;
};

inline std::string text_of(const Reported& entry) {
  const Choice& choice = entry.choice;
  std::string text = "token " + std::to_string(choice.token) + (choice.finite ? "" : " not finite") + " rank " +
                     std::to_string(choice.rank) + " logprob " +
                     std::to_string(std::bit_cast<std::uint32_t>(choice.logprob)) + " top";
  for (const Candidate& one : entry.top) {
    text += ' ' + std::to_string(one.token) + ':' + std::to_string(std::bit_cast<std::uint32_t>(one.logprob));
  }
  return text;
}

inline std::string text_of(const LogitsRow& logits_row) {
  const sample::Params& params = logits_row.params;
  return "temperature " + std::to_string(params.temperature) + " top_k " + std::to_string(params.top_k) + " top_p " +
         std::to_string(params.top_p) + " min_p " + std::to_string(params.min_p) + " typical_p " +
         std::to_string(params.typical_p) + " seed " + std::to_string(params.seed) + " num_top " +
         std::to_string(params.num_top) + " given " + std::to_string(logits_row.given) + " nodes " +
         std::to_string(logits_row.num_nodes) + (logits_row.edits.empty() ? "" : " edited");
}

inline void expect_as_host(const Step& step, ChooseLab& lab) {
  const std::vector<Reported> host = of_host(step);
  const std::vector<Reported> device = lab.choose(step);
  ASSERT_EQ(device.size(), host.size());
  for (std::size_t r = 0; r < host.size(); ++r) {
    ASSERT_EQ(text_of(device[r]), text_of(host[r]))
        << "logits_row " << r << " of " << step.vocab << " tokens, " << text_of(step.logits_rows[r]);
    ASSERT_EQ(lab.tokens()[r], host[r].choice.token) << r;
  }
}

// Rows of all sorts: peaked and flat, with ties, masked parts, numbers at the ends of f32, and some that are not
// finite.
inline std::vector<float> random_row(Dice& dice, std::uint32_t vocab) {
  std::vector<float> row(vocab);
  const float scale = dice.of({0.01f, 1.0f, 4.0f, 4.0f, 4.0f, 20.0f, 1e37f});
  const float grid = dice.of({0.0f, 0.0f, 0.5f});
  const float shift = dice.of({0.0f, 15.0f, -300.0f});
  for (float& x : row) {
    x = (dice.uniform() + dice.uniform() + dice.uniform()) * scale + shift;
    if (grid > 0.0f && scale < 100.0f) x = std::nearbyint(x / grid) * grid;
  }
  if (dice.one_in(4)) {
    for (float& x : row) x = dice.one_in(2) ? -kInf : x;
  }
  if (dice.one_in(8)) {
    for (float& x : row) x = dice.of({0.0f, -0.0f});
  }
  const auto anywhere = [&]() -> float& { return row[dice.below(vocab)]; };
  if (dice.one_in(8)) {
    std::ranges::fill(row, -kInf);
    anywhere() = dice.uniform();
  }
  if (dice.one_in(30)) anywhere() = dice.of({kNan, kInf});
  if (dice.one_in(40)) std::ranges::fill(row, -kInf);
  return row;
}

inline void draw_params(Dice& dice, std::uint32_t vocab, LogitsRow& logits_row) {
  sample::Params& params = logits_row.params;
  const auto around = static_cast<std::int32_t>(vocab);
  params.temperature = dice.of({0.0f, std::nextafter(sample::kGreedyTemperature, 0.0f), sample::kGreedyTemperature,
                                0.3f, 1.0f, 1.0f, 1.7f, 1000.0f});
  params.top_k = dice.of({0, 0, 1, 2, 40, around - 1, around, around + 1});
  params.top_p = dice.of({1.0f, 1.0f, 0.95f, 0.5f, 1e-6f, 1e-13f, std::nextafter(1.0f, 0.0f)});
  params.min_p = dice.of({0.0f, 0.0f, 0.05f, 1e-20f, 1.0f});
  params.typical_p = dice.of({1.0f, 1.0f, 0.9f, 0.2f, 1e-6f});
  params.seed = dice.bits();
  params.choice_index = dice.below(3);
  params.logprob = dice.one_in(2);
  params.num_top = dice.of({0u, 0u, 1u, 5u, 20u, sample::kMaxTop});
  params.accept = dice.of({sample::Accept::kMatch, sample::Accept::kRatio, sample::Accept::kBlock});
  logits_row.position = static_cast<std::uint32_t>(dice.bits());
}

inline const sample::Edits& draw_edits(Dice& dice, Step& step, LogitsRow& logits_row) {
  const std::uint32_t vocab = step.vocab;
  OwnedEdits& owned = step.edits.emplace_back();
  const std::uint32_t stride = 1 + dice.below(5);
  if (!dice.one_in(3)) {
    for (std::uint32_t token = dice.below(stride); token < vocab + 3; token += stride) {  // three lie outside
      sample::Edit edit;
      edit.token = static_cast<TokenId>(token);
      edit.times = dice.below(4);
      edit.seen = edit.times != 0 || dice.one_in(2);
      edit.bias = dice.of({0.0f, 0.0f, 100.0f * dice.uniform(), 3.4e38f, -3.4e38f});
      owned.each.push_back(edit);
    }
    std::shuffle(owned.each.begin(), owned.each.end(), std::mt19937(dice.below(1000)));
  }
  for (std::uint32_t i = dice.below(4); i > 0; --i)
    owned.forbidden.push_back(static_cast<TokenId>(dice.below(vocab + 1)));
  if (dice.one_in(2)) {
    const std::uint32_t words = dice.below((vocab + 31) / 32 + 2);
    for (std::uint32_t i = 0; i < words; ++i)
      owned.allowed.push_back(dice.of({0u, ~0u, static_cast<std::uint32_t>(dice.bits())}));
  }
  logits_row.edits = owned.view();
  logits_row.edits.repetition = dice.of({1.0f, 1.3f, 0.5f, 1e-38f, 1e38f});
  logits_row.edits.frequency = dice.of({0.0f, 0.7f, -2.0f});
  logits_row.edits.presence = dice.of({0.0f, 1.5f, -2.0f});
  return logits_row.edits;
}

}  // namespace quire::gpu::test
