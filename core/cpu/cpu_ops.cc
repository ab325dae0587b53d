#include "core/cpu/cpu_ops.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/backend/choices.h"
#include "core/backend/device_cast.h"
#include "core/backend/expect.h"
#include "core/base/check.h"
#include "core/cpu/attention.h"
#include "core/cpu/fused.h"
#include "core/cpu/isa/select.h"
#include "core/cpu/linear.h"
#include "core/cpu/pack.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/parallel_for.h"
#include "core/cpu/rope_store.h"
#include "core/cpu/row_coder.h"
#include "core/cpu/share_out.h"
#include "core/cpu/tensors.h"
#include "core/sample/sampler.h"

namespace quire::cpu {
namespace {

using namespace backend;

class CpuOps final : public Ops {
 public:
  explicit CpuOps(const CpuOptions& options)
      : kernels_(select_kernels(options.isa)),
        team_(options.num_threads),
        attention_(kernels_, team_, options.max_rows),
        coder_(options.max_rows),
        max_rows_(options.max_rows),
        choices_(options.max_rows) {
    CHECK_GT(max_rows_, 0u);
    highest_.reserve(std::size_t{max_rows_} * most_chunks(team_.size()));
  }

  std::string description() const override {
    const std::uint32_t threads = team_.size();
    return std::string("cpu/") + kernels_.name + " " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
  }

  std::unique_ptr<Weight> pack(std::span<const HostMatrix> matrices, std::span<const std::span<const float>> biases,
                               Quantize quantize) override {
    return ready(pack_weight(matrices, biases, quantize, team_));
  }
  std::string layout() const override { return PackedWeight::kLayout; }
  std::unique_ptr<Weight> adopt(const WeightShape& shape, std::span<const std::byte> packed,
                                std::shared_ptr<const void> owner) override {
    if (packed.size() != packed_bytes(shape) || reinterpret_cast<std::uintptr_t>(packed.data()) % 64 != 0) return {};
    return ready(std::make_unique<PackedWeight>(shape, packed, std::move(owner)));
  }
  void for_parts(std::uint32_t count, const std::function<void(std::uint32_t)>& part) override {
    team_.for_chunks(count, [&](std::uint32_t i, std::uint32_t) { part(i); });
  }
  std::unique_ptr<Vector> upload(std::span<const float> values) override {
    return std::make_unique<HostVector>(values);
  }
  std::unique_ptr<RopeTable> upload_rope(std::span<const float> cosines, std::span<const float> sines,
                                         std::uint32_t half) override {
    return std::make_unique<HostRope>(cosines, sines, half);
  }
  std::unique_ptr<Buffer> make_buffer(std::uint32_t max_rows, std::uint32_t width) override {
    reserve_sampling(width);
    return std::make_unique<HostBuffer>(max_rows, width);
  }
  std::unique_ptr<KvCache> make_kv(const KvShape& shape) override {
    auto cache = std::make_unique<PagedCache>(shape);
    attention_.reserve(shape);
    return cache;
  }

  void begin(const Batch& batch) override {
    set_float_mode();
    expect_batch(batch, max_rows_);
    CHECK(batch.fed.empty());  // one step at a time
    batch_ = batch;
    num_rows_ = batch.num_rows();
    num_logits_rows_ = static_cast<std::uint32_t>(batch.logits_rows.size());
    choices_.forget();
    attention_.begin(batch);
  }

  void embed(const Weight& table, Buffer& out) override {
    expect_embed(batch_, table, out);
    const auto& w = device_cast<const PackedWeight>(table);
    auto& rows = device_cast<HostBuffer>(out);
    // A row of a packed table lies in as many cache lines as it has elements (pairs, in bf16).
    for_rows(team_, num_rows_, std::size_t{w.k()} * 64,
             [&](std::uint32_t row) { unpack_row(w, static_cast<std::uint32_t>(batch_.tokens[row]), rows.row(row)); });
  }

  void norm(const Buffer& x, const Vector& scale, float eps, std::uint32_t rows, Buffer& out) override {
    expect_norm(x, scale, rows, out);
    const auto& in = device_cast<const HostBuffer>(x);
    const auto& factors = device_cast<const HostVector>(scale);
    auto& normed = device_cast<HostBuffer>(out);
    for_rows(team_, rows, std::size_t{x.width()} * 2 * sizeof(float), [&](std::uint32_t row) {
      kernels_.norm(in.row(row), factors.data(), eps, factors.size(), normed.row(row));
    });
  }

  void linear(const Buffer& x, const Weight& w, std::uint32_t rows, Buffer& out) override {
    expect_linear(x, w, rows, out);
    cpu::linear(context_, device_cast<const HostBuffer>(x), device_cast<const PackedWeight>(w), rows,
                device_cast<HostBuffer>(out));
  }

  void rope_store(const AttentionSpec& spec, Buffer& qkv, KvCache& cache) override {
    expect_rope_store(batch_, spec, qkv, cache);
    cpu::rope_store(kernels_, team_, batch_, spec, device_cast<HostBuffer>(qkv), device_cast<PagedCache>(cache));
  }

  void attend(const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache, Buffer& out) override {
    expect_attend(batch_, spec, qkv, cache, out);
    attention_.attend(spec, device_cast<const HostBuffer>(qkv), device_cast<const PagedCache>(cache),
                      device_cast<HostBuffer>(out));
  }

  void act_mul(const Buffer& gate_up, Buffer& out) override {
    expect_act_mul(gate_up, num_rows_, out);
    const auto& in = device_cast<const HostBuffer>(gate_up);
    auto& product = device_cast<HostBuffer>(out);
    const std::uint32_t width = out.width();
    for_rows(team_, num_rows_, std::size_t{width} * 4 * sizeof(float),
             [&](std::uint32_t row) { kernels_.act_mul(in.row(row), in.row(row) + width, width, product.row(row)); });
  }

  void add(Buffer& x, const Buffer& y) override {
    expect_add(x, y, num_rows_);
    auto& sum = device_cast<HostBuffer>(x);
    const auto& term = device_cast<const HostBuffer>(y);
    for_rows(team_, num_rows_, std::size_t{x.width()} * 3 * sizeof(float),
             [&](std::uint32_t row) { kernels_.add(sum.row(row), term.row(row), x.width()); });
  }

  void place(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    expect_place(x, rows, column, out);
    const auto& from = device_cast<const HostBuffer>(x);
    auto& to = device_cast<HostBuffer>(out);
    for_rows(team_, rows, std::size_t{x.width()} * 2 * sizeof(float),
             [&](std::uint32_t row) { std::copy_n(from.row(row), x.width(), to.row(row) + column); });
  }

  void cut(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    expect_cut(x, rows, column, out);
    const auto& from = device_cast<const HostBuffer>(x);
    auto& to = device_cast<HostBuffer>(out);
    for_rows(team_, rows, std::size_t{out.width()} * 2 * sizeof(float),
             [&](std::uint32_t row) { std::copy_n(from.row(row) + column, out.width(), to.row(row)); });
  }

  void gather_logits_rows(const Buffer& x, Buffer& out) override {
    expect_gather(batch_, x, out);
    const auto& from = device_cast<const HostBuffer>(x);
    auto& to = device_cast<HostBuffer>(out);
    for (std::size_t r = 0; r < batch_.logits_rows.size(); ++r) {
      std::copy_n(from.row(batch_.logits_rows[r].row), x.width(), to.row(r));
    }
  }

  void choose(const Buffer& logits, std::uint32_t vocab) override {
    expect_choose(batch_, logits, vocab);
    const auto& rows = device_cast<const HostBuffer>(logits);
    choose_each(rows, vocab, [&](std::uint32_t r) { return sample::Highest{kernels_.highest(rows.row(r), vocab)}; });
  }

  void collect(std::span<Choice> choices) override {
    CHECK_EQ(choices.size(), choices_.each().size());
    std::ranges::copy(choices_.each(), choices.begin());
  }

  void read_accumulated_scores(std::span<std::uint64_t> out) override { attention_.read_accumulated_scores(out); }

  void copy_blocks(KvCache& cache, std::span<const BlockCopy> copies) override {
    for (const BlockCopy& copy : copies) device_cast<PagedCache>(cache).copy(copy.from, copy.to);
  }
  void copy_rows(KvCache& cache, std::span<const RowCopy> copies) override {
    for (const RowCopy& copy : copies) device_cast<PagedCache>(cache).copy_row(copy.from, copy.to);
  }
  void poison_block(KvCache& cache, BlockId block) override { device_cast<PagedCache>(cache).poison(block); }
  void read_block(const KvCache& cache, BlockId block, std::span<std::byte> out) override {
    device_cast<const PagedCache>(cache).read(block, out);
  }
  void write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    device_cast<PagedCache>(cache).write(block, bytes);
  }
  void copy_open_group(KvCache& cache, std::uint32_t from, std::uint32_t to) override {
    device_cast<PagedCache>(cache).copy_open_group(from, to);
  }
  void read_tail(const KvCache& cache, BlockId block, std::span<std::byte> out) override {
    const std::span<const std::byte> tail = device_cast<const PagedCache>(cache).tail(block);
    CHECK_EQ(out.size(), tail.size());
    std::copy(tail.begin(), tail.end(), out.begin());
  }
  void write_tail(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    const std::span<std::byte> tail = device_cast<PagedCache>(cache).tail(block);
    CHECK_EQ(bytes.size(), tail.size());
    std::copy(bytes.begin(), bytes.end(), tail.begin());
  }

  void norm_qkv_rope_store(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& qkv,
                           KvCache& cache) override {
    if (!can_fuse_qkv(layer.attention, cache)) return Ops::norm_qkv_rope_store(layer, x, scratch, qkv, cache);
    expect_norm(x, *layer.input_norm, num_rows_, scratch);
    expect_linear(scratch, *layer.qkv, num_rows_, qkv);
    expect_rope_store(batch_, layer.attention, qkv, cache);
    cpu::norm_qkv_rope_store(context_, batch_, layer, device_cast<const HostBuffer>(x),
                             device_cast<HostBuffer>(scratch), device_cast<HostBuffer>(qkv),
                             device_cast<PagedCache>(cache));
  }
  void norm_gate_up(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& gate_up, Buffer& out) override {
    if (!can_fuse_gate_up(*layer.gate_up)) return Ops::norm_gate_up(layer, x, scratch, gate_up, out);
    expect_norm(x, *layer.post_norm, num_rows_, scratch);
    expect_linear(scratch, *layer.gate_up, num_rows_, gate_up);
    expect_act_mul(gate_up, num_rows_, out);
    cpu::norm_gate_up(context_, layer, num_rows_, device_cast<const HostBuffer>(x), device_cast<HostBuffer>(scratch),
                      device_cast<HostBuffer>(gate_up), device_cast<HostBuffer>(out));
  }
  void project_add(const Buffer& y, const Weight& w, Buffer& scratch, Buffer& x) override {
    expect_linear(y, w, num_rows_, scratch);
    expect_add(x, scratch, num_rows_);
    cpu::project_add(context_, num_rows_, device_cast<const HostBuffer>(y), device_cast<const PackedWeight>(w),
                     device_cast<HostBuffer>(scratch), device_cast<HostBuffer>(x));
  }

  // Whoever makes a piece of the logits looks for its highest, too.
  void project_choose(const Buffer& x, const Weight& head, std::uint32_t vocab, Buffer& logits) override {
    expect_linear(x, head, num_logits_rows_, logits);
    expect_choose(batch_, logits, vocab);
    const auto& w = device_cast<const PackedWeight>(head);
    auto& rows = device_cast<HostBuffer>(logits);
    const ProductChunks chunks = tile_chunks(context_, w, num_logits_rows_);
    const std::size_t num_pieces = chunks.num_unit_parts();
    highest_.resize(num_logits_rows_ * num_pieces);
    multiply_then(context_, device_cast<const HostBuffer>(x), w, chunks, rows,
                  [&](Range part, Range panels, std::uint32_t piece) {
                    const std::size_t first = std::min(panels.first * kLanes, vocab);
                    const std::size_t last = std::min(panels.last * kLanes, vocab);
                    for (std::uint32_t r = part.first; r < part.last; ++r) {
                      highest_[r * num_pieces + piece] = {kernels_.highest(rows.row(r) + first, last - first), first};
                    }
                  });
    choose_each(rows, vocab, [&](std::uint32_t r) {
      const auto pieces = std::span(highest_).subspan(r * num_pieces, num_pieces);
      return std::accumulate(pieces.begin() + 1, pieces.end(), pieces.front(), sample::join);
    });
  }

  void read(const Buffer& buffer, std::uint32_t first_row, std::uint32_t num_rows, std::span<float> out) override {
    CHECK_LE(std::uint64_t{first_row} + num_rows, buffer.max_rows());
    CHECK_EQ(out.size(), std::size_t{num_rows} * buffer.width());
    const auto& rows = device_cast<const HostBuffer>(buffer);
    for (std::size_t r = 0; r < num_rows; ++r) {
      std::copy_n(rows.row(first_row + r), buffer.width(), out.data() + r * buffer.width());
    }
  }
  void write(std::span<const float> rows, Buffer& buffer) override {
    CHECK_EQ(rows.size() % buffer.width(), 0u);
    CHECK_LE(rows.size() / buffer.width(), buffer.max_rows());
    auto& to = device_cast<HostBuffer>(buffer);
    for (std::uint32_t r = 0; r < rows.size() / buffer.width(); ++r) {
      std::copy_n(rows.data() + std::size_t{r} * buffer.width(), buffer.width(), to.row(r));
    }
  }

 private:
  // What its steps need is there.
  std::unique_ptr<Weight> ready(std::unique_ptr<PackedWeight> weight) {
    if (weight->wants_codes()) coder_.reserve(*weight);
    return weight;
  }

  // Every logits row's choice; highest_of(r) is of its logits.
  template <typename HighestOf>
  void choose_each(const HostBuffer& logits, std::uint32_t vocab, const HighestOf& highest_of) {
    choices_.begin(batch_);
    const std::uint32_t num_walks = choices_.num_walks();
    const std::uint32_t chunks = std::min(num_walks, num_chunks(std::size_t{num_walks} * vocab * 16, team_.size()));
    const auto row_of = [&](std::uint32_t r) { return LogitRow{{logits.row(r), vocab}, highest_of(r)}; };
    team_.for_chunks(chunks, [&](std::uint32_t chunk, std::uint32_t worker) {
      const Range range = part_of(num_walks, chunks, chunk);
      for (std::uint32_t i = range.first; i < range.last; ++i) choices_.run(i, row_of, sampling_[worker]);
    });
  }

  // Logits live in the widest buffers: scratch for a row of any is made with it, so that choose() never allocates.
  void reserve_sampling(std::uint32_t width) {
    const std::size_t vocab = std::min<std::size_t>(width, sample::kMaxVocab);
    if (vocab <= sampling_vocab_) return;
    sampling_vocab_ = vocab;
    sampling_.assign(team_.size(), sample::Scratch(vocab, kernels_.exp_each));
  }

  const Kernels& kernels_;
  Team team_;
  Attention attention_;
  RowCoder coder_;
  const KernelContext context_{kernels_, team_, coder_};
  std::uint32_t max_rows_;
  Batch batch_;
  Choices choices_;
  std::vector<sample::Highest> highest_;   // [R, pieces of a row]
  std::vector<sample::Scratch> sampling_;  // one per worker
  std::size_t sampling_vocab_ = 0;
};

}  // namespace

std::unique_ptr<backend::Ops> make_cpu_ops(const CpuOptions& options) { return std::make_unique<CpuOps>(options); }

}  // namespace quire::cpu
