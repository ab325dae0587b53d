// Test support: tiny target models on the CPU, what they say alone, and sequences that go on as an engine would have
// them: a prompt in pieces, then steps that take some of what was drafted.
// Owner   TinyModel owns its weights; Teller and Talker borrow the model and the Ops.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/cpu/cpu_ops.h"
#include "core/model/decoder.h"
#include "core/speculate/drafter.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::speculate::testing {

inline constexpr std::uint32_t kBlock = 16;  // P
inline constexpr std::uint32_t kTinyVocab = 61;

inline std::string tiny_config(std::uint32_t layers, std::uint32_t vocab = kTinyVocab, std::uint32_t positions = 640) {
  return R"({"model_type": "llama", "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3,
  "num_key_value_heads": 1, "num_hidden_layers": )" +
         std::to_string(layers) + R"(, "vocab_size": )" + std::to_string(vocab) + R"(, "max_position_embeddings": )" +
         std::to_string(positions) + "}";
}

// Weights are named after their tensors: a model of fewer layers is the beginning of one with more. `flavour` makes
// others.
struct TinyModel {
  TinyModel(backend::Ops& ops, const std::string& json, const std::string& flavour = "") {
    const model::ModelSpec config = model::parse_config(json, "config.json");
    std::vector<model::testing::TestTensor> tensors;
    for (const model::TensorPart& expected : model::tensor_table(config).tensors()) {
      tensors.push_back(model::testing::filled(expected.name + flavour, "BF16", expected.shape));
      tensors.back().name = expected.name;
    }
    dir.write("config.json", json);
    dir.write("model.safetensors", model::testing::safetensors_file(tensors));
    const auto files = model::ModelFiles::directory(dir.path());
    decoder = std::make_unique<model::Decoder>(ops, config, *files, config.max_model_len());
  }
  const model::ModelSpec& config() const { return decoder->config(); }

  model::testing::TempDir dir;
  std::unique_ptr<model::Decoder> decoder;
};

inline std::vector<TokenId> random_text(std::uint32_t length, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> text(length);
  for (TokenId& token : text) token = static_cast<TokenId>(random() % kTinyVocab);
  return text;
}

inline sample::Params greedy() { return {.temperature = 0.0f}; }
inline sample::Params drawn(std::uint64_t seed, float temperature = 0.9f) {
  sample::Params params;
  params.temperature = temperature;
  params.top_p = 0.95f;
  params.seed = seed;
  return params;
}

// Runs rows of one sequence straight through a decoder.
inline backend::Choice run_rows(backend::Ops& ops, const model::Decoder& decoder, backend::KvCache& cache,
                                model::Workspace& workspace, std::span<const TokenId> tokens, std::uint32_t first,
                                std::uint32_t end, std::span<const BlockId> table, const sample::Params& params) {
  std::vector<std::uint32_t> positions, slots;
  for (std::uint32_t p = first; p < end; ++p) {
    positions.push_back(p);
    slots.push_back(table[p / kBlock].value * kBlock + p % kBlock);
  }
  backend::SequenceRows rows;
  rows.num_rows = end - first;
  rows.first_position = first;
  rows.num_table = static_cast<std::uint32_t>(table.size());
  backend::LogitsRow logits_row;
  logits_row.row = end - first - 1;
  logits_row.position = end;
  logits_row.params = params;
  backend::Batch batch;
  batch.tokens = tokens.subspan(first, end - first);
  batch.positions = positions;
  batch.slots = slots;
  batch.sequences = {&rows, 1};
  batch.block_tables = table;
  batch.logits_rows = {&logits_row, 1};
  decoder.forward(batch, cache, workspace);
  backend::Choice choice;
  ops.collect({&choice, 1});
  return choice;
}

// What a model says alone: no batch, no drafts, a cache for this text only.
class Teller {
 public:
  Teller(backend::Ops& ops, const TinyModel& model, backend::KvType kv = backend::KvType::kF32)
      : ops_(ops), decoder_(*model.decoder), workspace_(decoder_.make_workspace(512, 1)) {
    const std::uint32_t blocks = decoder_.max_model_len() / kBlock;
    cache_ = ops.make_kv(decoder_.config().kv_shape(kBlock, blocks, kv));
    for (std::uint32_t i = 0; i < blocks; ++i) table_.emplace_back(i);
  }

  // `text` and `count` tokens more.
  std::vector<TokenId> tell(std::vector<TokenId> text, const sample::Params& params, std::uint32_t count) {
    for (std::uint32_t first = 0; count > 0; --count) {
      const auto end = static_cast<std::uint32_t>(text.size());
      const std::uint32_t middle = std::min(end, first + 512);
      if (middle < end) run_rows(ops_, decoder_, *cache_, workspace_, text, first, middle, table_, params);
      first = middle < end ? middle : first;
      text.push_back(run_rows(ops_, decoder_, *cache_, workspace_, text, first, end, table_, params).token);
      first = end;
    }
    return text;
  }
  // The logits behind the text.
  std::vector<float> logits(std::span<const TokenId> text) {
    run_rows(ops_, decoder_, *cache_, workspace_, text, 0, static_cast<std::uint32_t>(text.size()), table_, greedy());
    std::vector<float> row(decoder_.config().vocab);
    ops_.read(*workspace_.logits, 0, 1, row);
    return row;
  }

 private:
  backend::Ops& ops_;
  const model::Decoder& decoder_;
  model::Workspace workspace_;
  std::unique_ptr<backend::KvCache> cache_;
  std::vector<BlockId> table_;
};

// The target's cache, where somebody drafts over that: filled as its own steps would.
class TargetCache {
 public:
  TargetCache(backend::Ops& ops, const TinyModel& model, std::uint32_t num_blocks,
              backend::KvType kv = backend::KvType::kF32)
      : ops_(ops),
        decoder_(*model.decoder),
        workspace_(decoder_.make_workspace(512, 1)),
        cache_(ops.make_kv(decoder_.config().kv_shape(kBlock, num_blocks, kv))) {}

  void store(std::span<const TokenId> tokens, std::uint32_t first, std::uint32_t end, std::span<const BlockId> table) {
    for (std::uint32_t from = first; from < end; from = std::min(end, from + 512)) {
      run_rows(ops_, decoder_, *cache_, workspace_, tokens, from, std::min(end, from + 512), table, greedy());
    }
  }
  backend::KvCache& cache() { return *cache_; }

 private:
  backend::Ops& ops_;
  const model::Decoder& decoder_;
  model::Workspace workspace_;
  std::unique_ptr<backend::KvCache> cache_;
};

inline std::vector<std::byte> bytes_of(backend::Ops& ops, const backend::KvCache& cache, BlockId block) {
  std::vector<std::byte> bytes(cache.block_bytes());
  ops.read_block(cache, block, bytes);
  return bytes;
}

// A sequence whose whole text is known beforehand. `length` tokens of it are committed; all but the last have K and V.
struct Talker {
  SeqId seq;
  std::vector<TokenId> text;
  sample::Params params;
  std::vector<BlockId> blocks;
  std::uint32_t length = 0;

  std::span<const TokenId> committed() const { return std::span(text).first(length); }
  std::span<const BlockId> table(std::uint32_t positions) const {
    return std::span(blocks).first((positions + kBlock - 1) / kBlock);
  }
  Asked asked(std::uint32_t nodes, std::uint32_t depth) const {
    return {seq, committed(), table(length - 1), &params, nodes, depth};
  }
  // A step ran rows from `first` on, up to the last committed token but one.
  void tell(Drafter& drafter, std::uint32_t first) const REQUIRES(engine_role) {
    const std::vector<std::uint32_t> rows(length - 1 - first);
    const Observed observed{seq, committed(), first, rows, table(length - 1)};
    drafter.observe({{&observed, 1}});
  }
  // The prompt, in steps of so many rows; then its first token.
  void read_prompt(Drafter& drafter, std::uint32_t prompt, std::uint32_t rows) REQUIRES(engine_role) {
    for (std::uint32_t first = 0; first < prompt; first += rows) {
      length = std::min(prompt, first + rows) + 1;
      tell(drafter, first);
    }
  }
  // So many tokens more, in one step.
  void go_on(Drafter& drafter, std::uint32_t count) REQUIRES(engine_role) {
    const std::uint32_t first = length - 1;
    length += count;
    tell(drafter, first);
  }
};

inline std::vector<BlockId> blocks_from(std::uint32_t first, std::uint32_t count) {
  std::vector<BlockId> blocks;
  for (std::uint32_t i = 0; i < count; ++i) blocks.emplace_back(first + i);
  return blocks;
}

inline std::vector<TokenId> tokens_of(const sample::TokenTree& tree) {
  std::vector<TokenId> tokens;
  for (std::uint32_t i = 0; i < tree.size(); ++i) tokens.push_back(tree.token(i));
  return tokens;
}

inline sample::TokenTree draft(Drafter& drafter, const Talker& talker, std::uint32_t nodes, std::uint32_t depth)
    REQUIRES(engine_role) {
  const Asked asked = talker.asked(nodes, depth);
  sample::TokenTree tree;
  drafter.propose({&asked, 1}, {&tree, 1});
  return tree;
}

// What comes behind the committed text, at most `count` tokens.
inline std::vector<TokenId> next_of(const Talker& talker, std::uint32_t count) {
  const auto begin = talker.text.begin() + talker.length;
  return {begin, begin + std::min<std::ptrdiff_t>(count, talker.text.end() - begin)};
}

}  // namespace quire::speculate::testing
