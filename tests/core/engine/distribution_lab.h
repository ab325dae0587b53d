// Test support: answers of a tiny target on the CPU under ratio and block, whoever guesses, many at once; how often
// each was given, and the law that they should have, from the target alone and in f64.
// Owner   a value; drafters borrow its target and its Ops.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/run/decoder_runner.h"
#include "core/sample/reference.h"
#include "core/speculate/models/model_drafter.h"
#include "tests/core/sample/table_speech.h"
#include "tests/core/speculate/draft_rig.h"
#include "tests/support/engine_rig.h"

namespace quire::engine::testing {

class DistributionLab {
 public:
  static constexpr std::uint32_t kVocab = 5;
  static constexpr std::uint32_t kEmitted = 3;  // tokens of an answer that are looked at
  static constexpr std::uint32_t kAtOnce = 32;
  static constexpr std::uint32_t kBlocks = 160;
  static constexpr std::uint32_t kMaxLen = 128;

  explicit DistributionLab(sample::Accept accept)
      : accept_(accept),
        ops_(cpu::make_cpu_ops({.num_threads = 1})),
        target_(*ops_, speculate::testing::tiny_config(2, kVocab)),
        other_(*ops_, speculate::testing::tiny_config(1, kVocab), "other") {}

  sample::Params params(std::uint64_t seed) const {
    return {.temperature = 0.4f, .min_p = 0.02f, .seed = seed, .accept = accept_};
  }
  quire::testing::RigOptions rig_options(speculate::Drafter* drafter) const {
    return {.num_blocks = kBlocks,
            .max_num_seqs = kAtOnce,
            .max_num_batched_tokens = 256,
            .max_logits_rows = 192,
            .max_model_len = kMaxLen,
            .vocab = kVocab,
            .drafter = drafter,
            .max_draft_nodes = max_nodes_};
  }
  static model::RunnerLimits limits(const speculate::Drafter* drafter = nullptr) {
    const speculate::Needs needs = drafter == nullptr ? speculate::Needs{} : drafter->needs();
    return {.max_rows = 256,
            .max_sequences = kAtOnce,
            .max_logits_rows = 192,
            .block_tokens = 16,
            .num_blocks = kBlocks,
            .kv_dtype = backend::KvType::kF32,
            .captures = {needs.boundaries, needs.final_norm}};
  }
  std::unique_ptr<speculate::ModelDrafter> draft_model(const speculate::testing::TinyModel& model,
                                                       const speculate::ModelDraftOptions& options = {}) const {
    speculate::ModelDraftLimits size;
    size.max_sequences = kAtOnce;
    size.max_rows = 256;
    size.max_depth = 4;
    size.num_blocks = kBlocks;
    size.kv_type = backend::KvType::kF32;
    return std::make_unique<speculate::ModelDrafter>(*ops_, *model.decoder, kVocab, size, options);
  }
  std::unique_ptr<speculate::ModelDrafter> draft_model(const speculate::ModelDraftOptions& options = {}) const {
    return draft_model(other_, options);
  }

  std::vector<double> distribution() {
    speculate::testing::Teller teller(*ops_, target_);
    std::vector<double> joint;
    extend(teller, prompt_, kEmitted, 1.0, joint);
    return joint;
  }
  // Answers with seeds of their own; by their first tokens, as digits.
  std::vector<double> counts(speculate::Drafter* drafter, std::uint32_t num_answers) {
    const RoleScope role(engine_role);
    model::DecoderRunner runner(*ops_, *target_.decoder, limits(drafter));
    quire::testing::EngineRig rig(rig_options(drafter), runner);
    std::vector<double> cells(kVocab * kVocab * kVocab);
    for (std::uint32_t seed = 0; seed < num_answers; seed += kAtOnce) {
      std::vector<quire::testing::Client> clients;
      // Of those that go on behind what is counted drafts are longer.
      for (std::uint32_t i = 0; i < kAtOnce; ++i)
        clients.push_back(rig.submit(prompt_, kEmitted + 5, params(seed + i)));
      rig.run(clients);
      for (const quire::testing::Client& client : clients) {
        std::size_t cell = 0;
        for (std::uint32_t i = 0; i < kEmitted; ++i)
          cell = cell * kVocab + static_cast<std::size_t>(client.tokens.at(i));
        cells[cell] += 1.0;
      }
    }
    taken_ = rig.metrics.spec_accepted_tokens.value();
    scripted_ = rig.metrics.spec_draft_tokens.value();
    proposed_ = rig.metrics.spec_proposed_tokens.value();
    return cells;
  }

 protected:
  void extend(speculate::testing::Teller& teller, const std::vector<TokenId>& text, std::uint32_t count, double before,
              std::vector<double>& joint) {
    if (count == 0) return joint.push_back(before);
    const std::vector<double> next = sample::reference_distribution(teller.logits(text), params(0));
    for (std::size_t token = 0; token < kVocab; ++token) {
      std::vector<TokenId> longer = text;
      longer.push_back(static_cast<TokenId>(token));
      extend(teller, longer, count - 1, before * next[token], joint);
    }
  }

  const sample::Accept accept_;
  const std::vector<TokenId> prompt_ = {1, 4, 0, 2};
  std::uint32_t max_nodes_ = 4;
  std::unique_ptr<backend::Ops> ops_;
  speculate::testing::TinyModel target_;
  speculate::testing::TinyModel other_;
  std::uint64_t taken_ = 0;
  std::uint64_t scripted_ = 0;
  std::uint64_t proposed_ = 0;
};

}  // namespace quire::engine::testing
