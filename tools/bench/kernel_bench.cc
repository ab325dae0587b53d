#include "tools/bench/kernel_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/kv/layout.h"
#include "tools/bench/bench.h"
#include "tools/common/figures.h"
#include "tools/common/mix.h"

namespace quire::tools {
namespace {

using namespace backend;

constexpr std::uint32_t kMaxRows = 256;

struct MatrixShape {
  std::uint32_t n;
  std::uint32_t k;
  const char* of;
};
constexpr MatrixShape kMatrices[] = {
    {960, 576, "135M qkv"}, {3072, 576, "135M gate and up"}, {16384, 2048, "1B gate and up"}, {2048, 8192, "1B down"}};

// A packed weight type, and the stored type that it is packed from.
struct WeightKind {
  const char* name;
  Format stored;
  std::optional<backend::Format> quantize = std::nullopt;
};
constexpr Format kQ4_0 = Format::of_blocks(backend::BlockType::kQ4_0);
constexpr Format kQ4_K = Format::of_blocks(backend::BlockType::kQ4_K);
constexpr Format kQ6_K = Format::of_blocks(backend::BlockType::kQ6_K);
constexpr Format kQ8_0 = Format::of_blocks(backend::BlockType::kQ8_0);
constexpr Format kInt4G128 = Format::of_blocks(backend::BlockType::kInt4G128);
constexpr Format kUint4G128 = Format::of_blocks(backend::BlockType::kUint4G128);
constexpr Format kFp8G128 = Format::of_blocks(backend::BlockType::kFp8G128);
constexpr Format kNf4G64 = Format::of_blocks(backend::BlockType::kNf4G64);
constexpr Format times_int8(Format blocks) { return Format::of_blocks(blocks.blocks, Format::Activation::kInt8); }
constexpr WeightKind kWeights[] = {{"f32", Format::kF32},
                                   {"bf16", Format::kBF16},
                                   {"f16", Format::kF16},
                                   {"int8", Format::kBF16, backend::Format::kInt8},
                                   {"fp8", Format::kBF16, backend::Format::kFp8},
                                   {"int4", Format::kBF16, backend::Format::kInt4},
                                   {"w8a8", Format::kBF16, backend::Format::kW8A8},
                                   {"w4a8", Format::kBF16, backend::Format::kW4A8},
                                   {"w16a16", Format::kBF16, backend::Format::kW16A16},
                                   {"Q4_0 times int8", kQ4_0, times_int8(kQ4_0)},
                                   {"Q4_K times int8", kQ4_K, times_int8(kQ4_K)},
                                   {"Q4_K times f32", kQ4_K},
                                   {"Q6_K times int8", kQ6_K, times_int8(kQ6_K)},
                                   {"Q8_0 times int8", kQ8_0, times_int8(kQ8_0)},
                                   {"int4 by 128 times int8", kInt4G128, times_int8(kInt4G128)},
                                   {"int4 by 128 with zeros times int8", kUint4G128, times_int8(kUint4G128)},
                                   {"fp8 by 128", kFp8G128},
                                   {"nf4 by 64", kNf4G64}};
constexpr std::uint32_t kLinearRows[] = {1, 4, 8, 32, 256};

// Attention of a 1B model; K and V of one layer.
constexpr std::uint32_t kHeads = 32;
constexpr std::uint32_t kKvHeads = 8;
constexpr std::uint32_t kHeadDim = 64;
constexpr std::uint32_t kTokenBytes = 2 * kKvHeads * kHeadDim * 2;  // bf16
constexpr std::uint32_t kBlockTokens[] = {16, 64, 256};

constexpr std::uint32_t kVocab = 49152;

// Rows of one step, with the memory that batch() borrows.
struct Rows {
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> positions;
  std::vector<std::uint32_t> slots;
  std::vector<SequenceRows> sequences;
  std::vector<BlockId> block_tables;
  std::vector<LogitsRow> logits_rows;

  Batch batch() const { return {tokens, positions, slots, sequences, block_tables, logits_rows}; }
};

// `num_sequences` sequences of `context` tokens each, the last `rows_each` of them in the step.
Rows rows_of(std::uint32_t num_sequences, std::uint32_t rows_each, std::uint32_t context, std::uint32_t block_tokens,
             std::vector<BlockId> blocks) {
  Rows rows;
  const std::uint32_t blocks_each = kv::blocks_for(context, block_tokens);
  for (std::uint32_t s = 0; s < num_sequences; ++s) {
    SequenceRows sequence;
    sequence.first_row = s * rows_each;
    sequence.num_rows = rows_each;
    sequence.first_position = context - rows_each;
    sequence.first_table = s * blocks_each;
    sequence.num_table = blocks_each;
    sequence.residual_group = s;
    rows.sequences.push_back(sequence);
    for (std::uint32_t position = sequence.first_position; position < context; ++position) {
      rows.tokens.push_back(static_cast<TokenId>(rows.tokens.size()));
      rows.positions.push_back(position);
      rows.slots.push_back(kv::slot_of(blocks[sequence.first_table + position / block_tokens], position, block_tokens));
    }
  }
  rows.block_tables = std::move(blocks);
  return rows;
}

// Rows without context, for ops other than attention.
Rows plain_rows(std::uint32_t count) { return rows_of(count, 1, 1, 16, contiguous_blocks(count)); }

class KernelBench {
 public:
  KernelBench(Ops& ops, const KernelBenchOptions& options) : ops_(ops), options_(options) {}

  std::vector<KernelFigure> run() {
    for (const MatrixShape& shape : kMatrices) {
      for (const WeightKind& kind : kWeights) {
        if (kind.stored.is_blocks() && shape.k % layout_of(kind.stored.blocks).elements != 0) continue;
        linear(shape, kind);
      }
    }
    for (const std::uint32_t block_tokens : kBlockTokens) attend(block_tokens);
    for (const std::uint32_t num_sequences : {8u, 32u}) attend_shared(num_sequences);
    norm(1);
    norm(kMaxRows);
    choose();
    return std::move(figures_);
  }

 private:
  double seconds_of(const std::function<void()>& work) const { return median_seconds(work, options_.runs); }
  void say(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }

  // Approximately uniform in [-0.04, 0.04), in the stored type.
  std::vector<std::byte> random_values(std::size_t count, Format type) {
    std::vector<std::byte> bytes(stored_bytes(type, count));
    if (type.is_blocks()) {  // two such bytes are an f16 below 1, wherever a block has one
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_.next() >> 56 & 0x3b);
      return bytes;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = static_cast<std::uint32_t>(random_.next() >> 32);
      const float value = static_cast<float>(static_cast<std::int32_t>(bits)) * (0.04f / 0x1p31f);
      // f16: random sign and fraction, magnitude 2^-7 to 2^-6.
      const auto f16 = static_cast<std::uint16_t>(0x2000u | (bits & 0x83ffu));
      const std::uint16_t half = type == Format::kBF16 ? bf16_of_f32(value) : f16;
      if (type == Format::kF32) {
        std::copy_n(reinterpret_cast<const std::byte*>(&value), 4, bytes.data() + 4 * i);
      } else {
        std::copy_n(reinterpret_cast<const std::byte*>(&half), 2, bytes.data() + 2 * i);
      }
    }
    return bytes;
  }

  std::unique_ptr<Weight> weight(std::span<const std::byte> values, const WeightKind& kind, std::uint32_t n,
                                 std::uint32_t k) {
    const HostMatrix matrix{values.data(), kind.stored, n, k};
    return ops_.pack(std::span(&matrix, 1), {}, kind.quantize);
  }

  // Packs enough copies to fill the working set; each call reads another one.
  void linear(const MatrixShape& shape, const WeightKind& kind) {
    say(fmt::format("linear, {}, {}", kind.name, shape.of));
    const std::vector<std::byte> values = random_values(std::size_t{shape.n} * shape.k, kind.stored);
    std::vector<std::unique_ptr<Weight>> copies;
    std::uint64_t bytes = 0;
    while (copies.empty() || bytes < options_.working_set_bytes) {
      copies.push_back(weight(values, kind, shape.n, shape.k));
      bytes += copies.back()->bytes();
    }
    const auto x = ops_.make_buffer(kMaxRows, shape.k);
    const auto out = ops_.make_buffer(kMaxRows, shape.n);
    for (const std::uint32_t rows : kLinearRows) {
      const Rows step = plain_rows(rows);
      ops_.begin(step.batch());
      std::size_t next = 0;
      const double seconds = seconds_of([&] { ops_.linear(*x, *copies[next++ % copies.size()], rows, *out); });
      figures_.push_back({"linear", kind.name, fmt::format("{} x {}, {}", shape.n, shape.k, shape.of), rows, seconds,
                          static_cast<double>(copies.front()->bytes()), 2.0 * rows * shape.n * shape.k});
    }
  }

  // Gather cost: attention over scattered blocks against blocks in order.
  void attend(std::uint32_t block_tokens) {
    const auto tokens = static_cast<std::uint32_t>(options_.working_set_bytes / kTokenBytes);
    const std::uint32_t context = std::clamp(tokens / kMaxRows * kMaxRows, kMaxRows, 4096u);
    const std::uint32_t num_sequences = std::clamp(tokens / context, 1u, kMaxRows);
    const std::uint32_t blocks_each = kv::blocks_for(context, block_tokens);
    const std::uint32_t num_blocks = num_sequences * blocks_each;
    say(fmt::format("attend, blocks of {}", block_tokens));

    const auto cache = filled_cache(block_tokens, num_blocks);
    const auto measure = [&](std::uint32_t sequences, std::uint32_t rows_each, const char* kind) {
      const Rows ordered =
          rows_of(sequences, rows_each, context, block_tokens, contiguous_blocks(sequences * blocks_each));
      const Rows strewn =
          rows_of(sequences, rows_each, context, block_tokens, scattered_blocks(sequences * blocks_each, num_blocks));
      const ByTurns times = attend_by_turns(*cache, ordered, strewn);
      const std::uint32_t rows = sequences * rows_each;
      const std::string shape =
          fmt::format("{} {}, {} tokens each, blocks of {}", sequences, kind, context, block_tokens);
      const double bytes = static_cast<double>(sequences) * context * kTokenBytes;
      const double flops = 4.0 * kHeads * kHeadDim * rows * (context - (rows_each - 1) / 2.0);
      figures_.push_back({"attend", "in order", shape, rows, times.first, bytes, flops});
      figures_.push_back({"attend", "scattered", shape, rows, times.second, bytes, flops, times.ratio});
    };
    measure(num_sequences, 1, "decoding");
    measure(1, kMaxRows, "in prefill");
  }

  // Saving if sequences share their first blocks, as with a common system prompt.
  void attend_shared(std::uint32_t num_sequences) {
    constexpr std::uint32_t kBlock = 16;
    constexpr std::uint32_t kShared = 1792;  // the full blocks of a prompt of 1,800 tokens
    constexpr std::uint32_t kContext = kShared + 128;
    constexpr std::uint32_t kBlocksEach = kContext / kBlock;
    say(fmt::format("attend, {} sequences with a shared prefix", num_sequences));

    const std::uint32_t num_blocks = num_sequences * kBlocksEach;
    const auto cache = filled_cache(kBlock, num_blocks);
    const std::vector<BlockId> own = contiguous_blocks(num_blocks);
    std::vector<BlockId> shared = own;
    for (std::uint32_t s = 1; s < num_sequences; ++s) {
      std::copy_n(own.begin(), kShared / kBlock, shared.begin() + s * kBlocksEach);
    }
    const ByTurns times = attend_by_turns(*cache, rows_of(num_sequences, 1, kContext, kBlock, own),
                                          rows_of(num_sequences, 1, kContext, kBlock, shared));
    const std::string shape = fmt::format("{} decoding, {} tokens each, {} shared", num_sequences, kContext, kShared);
    const double own_tokens = static_cast<double>(num_sequences) * kContext;
    const double shared_tokens = own_tokens - (num_sequences - 1.0) * kShared;
    const double flops = 4.0 * kHeads * kHeadDim * own_tokens;
    figures_.push_back({"attend", "own blocks", shape, num_sequences, times.first, own_tokens * kTokenBytes, flops});
    figures_.push_back({"attend", "shared blocks", shape, num_sequences, times.second, shared_tokens * kTokenBytes,
                        flops, 0, times.ratio});
  }

  struct ByTurns {
    double first;
    double second;
    double ratio;  // the median of the runs' ratios, second over first
  };
  ByTurns attend_by_turns(const KvCache& cache, const Rows& first, const Rows& second) {
    AttentionSpec spec;
    spec.num_heads = kHeads;
    spec.num_kv_heads = kKvHeads;
    spec.head_dim = kHeadDim;
    spec.scale = 0.125f;
    const auto qkv = ops_.make_buffer(kMaxRows, spec.qkv_width());
    const auto out = ops_.make_buffer(kMaxRows, spec.q_width());
    const auto seconds = [&](const Rows& rows) {
      ops_.begin(rows.batch());
      return median_seconds([&] { ops_.attend(spec, *qkv, cache, *out); }, 1);
    };
    std::vector<double> firsts, lasts, ratios;
    for (std::uint32_t run = 0; run < options_.runs; ++run) {
      firsts.push_back(seconds(first));
      lasts.push_back(seconds(second));
      ratios.push_back(lasts.back() / firsts.back());
    }
    return {median(firsts), median(lasts), median(ratios)};
  }

  std::unique_ptr<KvCache> filled_cache(std::uint32_t block_tokens, std::uint32_t num_blocks) {
    auto cache = ops_.make_kv({.layers = backend::kv_layers(1, kKvHeads, kHeadDim),
                               .block_tokens = block_tokens,
                               .num_blocks = num_blocks,
                               .type = KvType::kBF16});
    fill(*cache);
    return cache;
  }

  // Writes small numbers to all of K and V: unwritten pages would all map to the same zero page.
  static void fill_bf16(std::span<std::byte> bytes, Random& random) {
    for (std::size_t i = 0; i + 2 <= bytes.size(); i += 2) {
      const auto value = static_cast<std::uint16_t>(0x3c00u | (random.next() & 0x80ffu));
      std::copy_n(reinterpret_cast<const std::byte*>(&value), 2, bytes.data() + i);
    }
  }
  void fill(KvCache& cache) {
    std::vector<std::byte> block(cache.block_bytes());
    fill_bf16(block, random_);
    for (std::uint32_t b = 0; b < cache.shape().num_blocks; ++b) ops_.write_block(cache, BlockId(b), block);
  }

  void norm(std::uint32_t rows) {
    constexpr std::uint32_t kWidth = 2048;
    say("norm");
    const std::vector<float> ones(kWidth, 1.0f);
    const auto scale = ops_.upload(ones);
    const auto x = ops_.make_buffer(kMaxRows, kWidth);
    const auto out = ops_.make_buffer(kMaxRows, kWidth);
    const Rows step = plain_rows(rows);
    ops_.begin(step.batch());
    const double seconds = seconds_of([&] { ops_.norm(*x, {scale.get(), 1e-5f}, rows, *out); });
    figures_.push_back(
        {"norm", "f32", fmt::format("{} wide", kWidth), rows, seconds, 4.0 * rows * kWidth, 4.0 * rows * kWidth});
  }

  // Logits are looked up in a random embedding table as wide as the vocabulary.
  void choose() {
    struct Kind {
      const char* name;
      sample::Params params;
    };
    Kind kinds[] = {{"greedy", {}}, {"temperature 1", {}}, {"top-k 50, top-p 0.9", {}}};
    kinds[0].params.temperature = 0;
    kinds[1].params.temperature = 1;
    kinds[2].params.temperature = 1;
    kinds[2].params.top_k = 50;
    kinds[2].params.top_p = 0.9f;
    constexpr std::uint32_t kMost = 32;
    const auto table = weight(random_values(std::size_t{kMost} * kVocab, Format::kF32), kWeights[0], kMost, kVocab);
    const auto logits = ops_.make_buffer(kMost, kVocab);
    std::vector<Choice> choices(kMost);
    for (const Kind& kind : kinds) {
      for (const std::uint32_t rows : {1u, kMost}) {
        say(fmt::format("choose, {}", kind.name));
        Rows step = plain_rows(rows);
        for (std::uint32_t r = 0; r < rows; ++r) step.logits_rows.push_back({r, 1, kind.params});
        ops_.begin(step.batch());
        ops_.embed(*table, 1.0f, *logits);
        const double seconds = seconds_of([&] {
          ops_.begin(step.batch());
          ops_.choose(*logits, kVocab);
          ops_.collect(std::span(choices).first(rows));
        });
        figures_.push_back(
            {"choose", kind.name, fmt::format("{} logits", kVocab), rows, seconds, 4.0 * rows * kVocab, 0});
      }
    }
  }

  Ops& ops_;
  const KernelBenchOptions& options_;
  Random random_{5};
  std::vector<KernelFigure> figures_;
};

}  // namespace

std::vector<KernelFigure> bench_kernels(Ops& ops, const KernelBenchOptions& options) {
  return KernelBench(ops, options).run();
}

std::vector<BlockId> contiguous_blocks(std::uint32_t count) {
  std::vector<BlockId> out;
  for (std::uint32_t i = 0; i < count; ++i) out.push_back(BlockId(i));
  return out;
}

// Source  Fisher-Yates shuffle (Durstenfeld 1964).
std::vector<BlockId> scattered_blocks(std::uint32_t count, std::uint32_t num_blocks) {
  CHECK_LE(count, num_blocks);
  std::vector<BlockId> out = contiguous_blocks(num_blocks);
  Random random(11);
  for (std::uint32_t i = 0; i < count; ++i) std::swap(out[i], out[random.between(i, num_blocks - 1)]);
  out.resize(count);
  return out;
}

}  // namespace quire::tools
