// Drafter that runs a decoder: a small model with the target's vocabulary and a KV cache of its own under the target's
// block ids, or the target itself at less cost (some of its layers, or part of the context) on the K and V that it
// stored.
// Shape   a chain, or a tree by options.widths, level by level up to max_nodes. One decoder step per level for all
//         asked sequences together.
// Owner   app makes it. Ops, Decoder and a target's cache outlive it. It begins steps on the Ops, which ends the loan
//         of all results of the target's last step.
// Thread  engine. A level allocates nothing; a sequence's state grows with its length.
// Fails   StartError: a vocabulary other than the target's, options that do not fit the model, int4 KV, no memory.
//         No draft for a sequence longer than the decoder's positions, with rows still to compute, without a branch
//         slot, or whose rows would attend to a dropped block.
// Source  Leviathan et al. 2023, Chen et al. 2023; trees: SpecInfer (Miao et al. 2023). Ours: rows identified by the
//         hash of their tokens; branch slots in which accepted rows need not move.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/decoder.h"
#include "core/speculate/drafter.h"
#include "core/speculate/models/draft_cache.h"
#include "core/speculate/models/draft_children.h"
#include "core/speculate/models/sparse_context.h"
#include "core/speculate/row_batch.h"

namespace quire::speculate {

struct ModelDraftLimits {
  std::uint32_t max_sequences = 64;  // with a draft at a time
  std::uint32_t max_rows = 512;      // of a batch; at most the Ops' limit
  std::uint32_t max_depth = 8;
  std::uint32_t block_tokens = 16;                   // P
  std::uint32_t num_blocks = 0;                      // of the target's pool
  backend::KvType kv_type = backend::KvType::kBF16;  // of a cache of its own; not int4
};

struct ModelDraftOptions {
  std::string method = "draft_model";
  bool shared_noise = true;            // samples with the target's noise; false: greedy
  bool proposes = true;                // under ratio and block: draws; false: the likeliest tokens
  std::uint32_t member = 0;            // index among several drafters whose trees are merged
  float min_likely = 0.02f;            // paths less likely than this end; 0: none ends
  std::uint32_t catch_up_rows = 2048;  // most rows per call of context computed late
  bool track_prompts = true;           // computes prompt rows when observed; false: when first asked
  // Children of a node by its depth; 1 where the list ends.
  std::vector<std::uint32_t> widths{};
  std::vector<model::LayerParts> parts{};  // parts of the layers to run; empty: all
  SparseContext context{};                 // positions attended to; only with a target's cache
};

class ModelDrafter final : public Drafter {
 public:
  // A model with a KV cache of its own.
  ModelDrafter(backend::Ops& ops, const model::Decoder& decoder, std::uint32_t target_vocab,
               const ModelDraftLimits& limits, const ModelDraftOptions& options);
  // The target over its own cache, which has num_scratch_blocks() blocks after the pool's.
  ModelDrafter(backend::Ops& ops, const model::Decoder& target, backend::KvCache& cache, const ModelDraftLimits& limits,
               const ModelDraftOptions& options);

  static std::uint32_t num_scratch_blocks(const ModelDraftLimits& limits, const ModelDraftOptions& options);

  std::string method() const override { return options_.method; }
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);
  void track(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role);

  const DraftCache& cache() const { return cache_; }
  std::uint64_t rows_run() const { return rows_run_; }  // since construction: the cost of drafting

 private:
  // State of a sequence.
  struct Known {
    std::vector<RowHash> hashes;   // by position: of the tokens up to it; cache of its own only
    std::vector<BlockId> table{};  // as last seen; cache of its own only
    std::uint32_t computed = 0;    // rows that are in their slots
    int branch_slot = -1;          // -1: none
    std::uint32_t branches = 0;    // further branch slots in this call
  };
  struct Behind {
    Known* known;
    std::span<const TokenId> tokens;
    std::span<const BlockId> table;
    std::uint32_t end;    // rows before it must be in their slots
    std::uint32_t asked;  // in propose(): index in asked
  };
  struct Path {
    std::uint32_t asked;
    Known* known;
    std::uint32_t branch_slot;
    int node;                // the last node; kRoot: the last committed token
    std::uint32_t position;  // of its last row
    RowHash hash;            // of that row
    float likely;
  };

  ModelDrafter(backend::Ops& ops, const model::Decoder& decoder, std::uint32_t target_vocab, backend::KvCache* target,
               const ModelDraftLimits& limits, const ModelDraftOptions& options);

  Known* begin(const Asked& asked) REQUIRES(engine_role);
  void hash_tokens(Known& known, std::span<const TokenId> tokens) const;
  void look_at(Known& known, std::span<const BlockId> table) const;
  bool avoids_dropped_blocks(std::span<const BlockId> table, std::uint32_t first_position) const;
  std::uint32_t missing(const Behind& behind) REQUIRES(engine_role);
  bool can_join(const Behind& behind) REQUIRES(engine_role);
  void catch_up(std::span<const Behind> behind) REQUIRES(engine_role);
  void start_paths(std::span<const Asked> asked) REQUIRES(engine_role);
  std::size_t draft_level(std::span<const Asked> asked, std::span<sample::TokenTree> trees, std::size_t from)
      REQUIRES(engine_role);
  std::uint32_t rows_of(const Path& path) const;
  void add_path(const Path& path, const Asked& asked, const sample::TokenTree& tree) REQUIRES(engine_role);
  void keep_rows(const Path& path, const Asked& asked) REQUIRES(engine_role);
  void extend(const Path& path, const Asked& asked, const backend::Choice& choice, sample::TokenTree& tree)
      REQUIRES(engine_role);
  int branch_slot_for_child(const Path& path, const Asked& asked, bool first) REQUIRES(engine_role);
  std::uint32_t width_at(std::uint32_t depth) const {
    return depth < options_.widths.size() ? options_.widths[depth] : 1;
  }
  sample::Params params_at(const Asked& asked, std::uint32_t depth) const;
  bool proposes(const Asked& asked) const;
  bool has_room(std::uint32_t num_rows) const;
  void run_batch() REQUIRES(engine_role);

  backend::Ops& ops_;
  const model::Decoder& decoder_;
  const ModelDraftLimits limits_;
  const ModelDraftOptions options_;
  DraftCache cache_;
  std::uint32_t widest_window_;  // largest attention window of all layers; 0: no limit
  model::Workspace workspace_;
  RowBatch batch_;
  Children children_;
  std::unordered_map<SeqId, Known> sequences_;
  std::uint64_t rows_run_ = 0;

  // Scratch of one call.
  std::vector<Behind> behind_;
  std::vector<Path> paths_;
  std::vector<Path> next_paths_;
  std::vector<std::uint32_t> child_slots_;
  std::vector<backend::Choice> choices_;
  std::vector<sample::ProposalDistributions> distributions_;  // [asked]
};

}  // namespace quire::speculate
