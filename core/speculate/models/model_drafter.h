// Guesses of a decoder: a small model of the same vocabulary with K and V of its own under the target's block ids, or the target
// itself, made cheaper (some of its layers, or some of its context), over the K and V that the target stored.
// Shape   a chain, or a tree with options.widths, level by level up to max_nodes; all asked sequences together, a step of the
//         decoder for each level.
// Owner   app makes it. Ops, Decoder and a target's cache outlive it. It begins steps of its own on the Ops: whatever
//         these lend out of the target's last step is over with the first of them.
// Thread  engine. A drafted level allocates nothing; what is remembered of a sequence grows with it.
// Fails   StartError: another vocabulary than the target's, options that do not fit the model, an int4 cache, no memory.
//         A sequence longer than the decoder's positions, one whose rows are not computed yet, or of which something was dropped
//         that its rows would look at gets no guesses.
// Source  Leviathan et al. 2023, Chen et al. 2023; trees SpecInfer (Miao et al. 2023). Rows known by the hash of their
//         tokens, and scratch places in which what was taken lies right already, are ours.
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
  std::uint32_t max_sequences = 64;  // that are drafted for at a time
  std::uint32_t max_rows = 512;      // of a batch; the Ops take as many
  std::uint32_t max_depth = 8;
  std::uint32_t block_tokens = 16;                   // P, and
  std::uint32_t num_blocks = 0;                      // of the target's pool
  backend::KvType kv_type = backend::KvType::kBF16;  // of a cache of its own; not int4
};

struct ModelDraftOptions {
  std::string method = "draft_model";
  bool shared_noise = true;            // draws as the target will; else the likeliest token
  bool proposes = true;                // under ratio and block guesses are drawn; else the likeliest tokens
  std::uint32_t member = 0;            // which of several whose guesses are merged
  float min_likely = 0.02f;            // a path that is less likely ends; 0: none does
  std::uint32_t catch_up_rows = 2048;  // computed at most in a call, of what came in unseen
  bool follow_prompts = true;          // computes prompts as the target does, not only when first asked
  std::vector<std::uint32_t>
      widths{};  // children of a node, by its depth; behind the last, and where there are none: 1
  std::vector<model::LayerParts> parts{};  // what is run of the layers; none: all
  SparseContext context{};                 // what is looked at; only in a target's cache
};

class ModelDrafter final : public Drafter {
 public:
  // A model with a cache of its own.
  ModelDrafter(backend::Ops& ops, const model::Decoder& decoder, std::uint32_t target_vocab,
               const ModelDraftLimits& limits, const ModelDraftOptions& options);
  // The target over its own cache, which has num_scratch_blocks() more than the pool hands out, behind these.
  ModelDrafter(backend::Ops& ops, const model::Decoder& target, backend::KvCache& cache, const ModelDraftLimits& limits,
               const ModelDraftOptions& options);

  static std::uint32_t num_scratch_blocks(const ModelDraftLimits& limits, const ModelDraftOptions& options);

  std::string method() const override { return options_.method; }
  void observe(const ObservedStep& step) override REQUIRES(engine_role);
  void propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) override REQUIRES(engine_role);
  void release(SeqId seq, bool ended) override REQUIRES(engine_role);
  void follow(std::span<const flow::BlockOp> ops) override REQUIRES(engine_role);

  const DraftCache& cache() const { return cache_; }
  std::uint64_t rows_run() const { return rows_run_; }  // since the start: what drafting costs

 private:
  // What is remembered of a sequence.
  struct Known {
    std::vector<RowHash> hashes;   // by position, of the tokens up to there; only with a cache of its own
    std::vector<BlockId> table{};  // as it was when last seen; only with a cache of its own
    std::uint32_t computed = 0;    // rows that are in their slots
    int place = -1;                // its scratch
    std::uint32_t branches = 0;    // more of it, in the call at hand
  };
  struct Behind {
    Known* known;
    std::span<const TokenId> tokens;
    std::span<const BlockId> table;
    std::uint32_t end;    // rows before it are to be there
    std::uint32_t asked;  // in propose(): whose it is
  };
  struct Path {
    std::uint32_t asked;
    Known* known;
    std::uint32_t place;
    int node;                // the last one; kRoot: rows up to the last committed token
    std::uint32_t position;  // of its last row
    RowHash hash;            // of that row
    float likely;
  };

  ModelDrafter(backend::Ops& ops, const model::Decoder& decoder, std::uint32_t target_vocab, backend::KvCache* target,
               const ModelDraftLimits& limits, const ModelDraftOptions& options);

  Known* begin(const Asked& asked) REQUIRES(engine_role);
  void hash_tokens(Known& known, std::span<const TokenId> tokens) const;
  void look_at(Known& known, std::span<const BlockId> table) const;
  bool misses_dropped(std::span<const BlockId> table, std::uint32_t first_position) const;
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
  int place_for_child(const Path& path, const Asked& asked, bool first) REQUIRES(engine_role);
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
  std::uint32_t widest_window_;  // positions that some layer sees; 0: all
  model::Workspace workspace_;
  RowBatch batch_;
  Children children_;
  std::unordered_map<SeqId, Known> sequences_;
  std::uint64_t rows_run_ = 0;

  // Of the call at hand.
  std::vector<Behind> behind_;
  std::vector<Path> paths_;
  std::vector<Path> next_paths_;
  std::vector<std::uint32_t> branch_places_;
  std::vector<backend::Choice> choices_;
  std::vector<sample::ProposalLaws> laws_;  // of asked sequences
};

}  // namespace quire::speculate
