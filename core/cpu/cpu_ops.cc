#include "core/cpu/cpu_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/backend/device_cast.h"
#include "core/backend/expect.h"
#include "core/backend/host_sampler.h"
#include "core/base/check.h"
#include "core/cpu/attention.h"
#include "core/cpu/expert_ops.h"
#include "core/cpu/fused.h"
#include "core/cpu/isa/select.h"
#include "core/cpu/linear.h"
#include "core/cpu/pack.h"
#include "core/cpu/paged_cache.h"
#include "core/cpu/rope_store.h"
#include "core/cpu/row_coder.h"
#include "core/cpu/team/parallel_for.h"
#include "core/cpu/team/share_out.h"
#include "core/cpu/tensors.h"
#include "core/sample/sampler.h"

namespace quire::cpu {
namespace {

using namespace backend;

class CpuOps final : public ExpertOps {
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
                               std::optional<Format> quantize) override {
    return ready(pack_weight(matrices, biases, quantize, team_));
  }
  bool takes(Format format) const override { return cpu::takes(format); }
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
    choices_.forget();
    attention_.begin(batch);
  }

  void embed(const Weight& table, float scale, Buffer& out, std::uint32_t num_tokens) override {
    expect_embed(batch_, table, out, num_tokens);
    const auto& w = device_cast<const PackedWeight>(table);
    auto& rows = device_cast<HostBuffer>(out);
    // A row of a packed table is spread over as many cache lines as it has elements (in bf16: pairs of elements).
    for_rows(team_, batch_.num_rows(), std::size_t{w.k()} * 64, [&](std::uint32_t row) {
      const auto token = static_cast<std::uint32_t>(batch_.tokens[row]);
      unpack_row(w, token < num_tokens ? token : 0, rows.row(row));
      if (scale != 1.0f) kernels_.rescale(rows.row(row), scale, 0.0f, w.k());
    });
  }

  void embed_positions(const Weight& table, std::uint32_t offset, Buffer& out) override {
    expect_embed_positions(batch_, table, offset, out);
    const auto& w = device_cast<const PackedWeight>(table);
    auto& rows = device_cast<HostBuffer>(out);
    for_rows(team_, batch_.num_rows(), std::size_t{w.k()} * 64,
             [&](std::uint32_t row) { unpack_row(w, batch_.positions[row] + offset, rows.row(row)); });
  }

  void norm(const Buffer& x, const Norm& norm, std::uint32_t rows, Buffer& out) override {
    expect_norm(x, norm, rows, out);
    const auto& in = device_cast<const HostBuffer>(x);
    auto& normed = device_cast<HostBuffer>(out);
    for_rows(team_, rows, std::size_t{x.width()} * 2 * sizeof(float),
             [&](std::uint32_t row) { norm_values(kernels_, norm, in.row(row), normed.row(row), 0, x.width()); });
  }

  void norm_columns(Buffer& x, std::uint32_t column, std::uint32_t width, std::uint32_t group, const Norm& norm,
                    std::uint32_t rows) override {
    expect_norm_columns(x, column, width, group, norm, rows);
    auto& values = device_cast<HostBuffer>(x);
    const bool shared = norm.scale->size() == group;
    for_rows(team_, rows, std::size_t{width} * 2 * sizeof(float), [&](std::uint32_t row) {
      for (std::uint32_t first = 0; first < width; first += group) {
        float* at = values.row(row) + column + first;
        norm_values(kernels_, norm, at, at, shared ? 0 : first, group);
      }
    });
  }

  void multiply(const Buffer& x, const Weight& w, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    expect_multiply(x, w, rows, column, out);
    cpu::multiply(context_, device_cast<const HostBuffer>(x), device_cast<const PackedWeight>(w), rows, column,
                  device_cast<HostBuffer>(out));
  }

  void rope_store(const AttentionSpec& spec, Buffer& qkv, KvCache& cache) override {
    expect_rope_store(batch_, spec, qkv, cache);
    cpu::rope_store(kernels_, team_, batch_of(spec, cache), spec, device_cast<HostBuffer>(qkv),
                    device_cast<PagedCache>(cache));
  }

  void attend(const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache, Buffer& out) override {
    expect_attend(batch_, spec, qkv, cache, out);
    attention_.attend(spec, device_cast<const HostBuffer>(qkv), device_cast<const PagedCache>(cache),
                      device_cast<HostBuffer>(out));
  }

  void activate(const Buffer& x, Activation kind, bool gated, std::uint32_t rows, Buffer& out,
                const Xielu& xielu) override {
    expect_activate(x, kind, gated, rows, out);
    const auto& in = device_cast<const HostBuffer>(x);
    auto& activated = device_cast<HostBuffer>(out);
    const std::uint32_t width = out.width();
    if (kind == Activation::kXielu) {
      const float numbers[] = {xielu.positive, xielu.negative, xielu.linear, xielu.most};
      return for_rows(team_, rows, std::size_t{width} * 4 * sizeof(float),
                      [&](std::uint32_t row) { kernels_.xielu(in.row(row), numbers, width, activated.row(row)); });
    }
    const auto kernel = kernels_.activate[static_cast<int>(kind)];
    for_rows(team_, rows, std::size_t{width} * 4 * sizeof(float), [&](std::uint32_t row) {
      kernel(in.row(row), gated ? in.row(row) + width : nullptr, width, activated.row(row));
    });
  }

  void add(Buffer& x, const Buffer& y, float scale, std::uint32_t rows) override {
    expect_add(x, y, rows);
    auto& sum = device_cast<HostBuffer>(x);
    const auto& term = device_cast<const HostBuffer>(y);
    for_rows(team_, rows, std::size_t{x.width()} * 3 * sizeof(float),
             [&](std::uint32_t row) { kernels_.add(sum.row(row), term.row(row), scale, x.width()); });
  }

  void multiply_by(Buffer& x, const Buffer& y, std::uint32_t column, std::uint32_t rows) override {
    expect_multiply_by(x, y, column, rows);
    auto& product = device_cast<HostBuffer>(x);
    const auto& factors = device_cast<const HostBuffer>(y);
    for_rows(team_, rows, std::size_t{x.width()} * 3 * sizeof(float),
             [&](std::uint32_t row) { kernels_.multiply(product.row(row), factors.row(row) + column, x.width()); });
  }

  void rescale(Buffer& x, float scale, float cap, std::uint32_t rows) override {
    CHECK_LE(rows, x.max_rows());
    auto& values = device_cast<HostBuffer>(x);
    for_rows(team_, rows, std::size_t{x.width()} * 2 * sizeof(float),
             [&](std::uint32_t row) { kernels_.rescale(values.row(row), scale, cap, x.width()); });
  }

  void clip(Buffer& x, float limit, std::uint32_t rows) override {
    CHECK_LE(rows, x.max_rows());
    auto& values = device_cast<HostBuffer>(x);
    for_rows(team_, rows, std::size_t{x.width()} * 2 * sizeof(float),
             [&](std::uint32_t row) { kernels_.clip(values.row(row), limit, x.width()); });
  }

  void multiply_columns(Buffer& x, const Vector& factors, std::uint32_t rows) override {
    expect_multiply_columns(x, factors, rows);
    auto& values = device_cast<HostBuffer>(x);
    const float* by = device_cast<const HostVector>(factors).data();
    for_rows(team_, rows, std::size_t{x.width()} * 3 * sizeof(float),
             [&](std::uint32_t row) { kernels_.multiply(values.row(row), by, x.width()); });
  }

  void match_length(Buffer& x, const Buffer& y, float least, std::uint32_t rows) override {
    expect_match_length(x, y, rows);
    auto& values = device_cast<HostBuffer>(x);
    const auto& like = device_cast<const HostBuffer>(y);
    const auto width = static_cast<float>(x.width());
    for_rows(team_, rows, std::size_t{x.width()} * 3 * sizeof(float), [&](std::uint32_t row) {
      const float wanted = kernels_.sum(like.row(row), 0.0f, true, x.width()) / width;
      const float mean = kernels_.sum(values.row(row), 0.0f, true, x.width()) / width;
      kernels_.rescale(values.row(row), std::sqrt(wanted) / std::sqrt(std::max(least, mean)), 0.0f, x.width());
    });
  }

  void cut_below(Buffer& x, std::uint32_t width, float c, std::uint32_t rows) override {
    expect_cut_below(x, width, rows);
    auto& values = device_cast<HostBuffer>(x);
    for_rows(team_, rows, std::size_t{width} * 3 * sizeof(float), [&](std::uint32_t row) {
      const float mean = kernels_.sum(values.row(row), 0.0f, false, width) / static_cast<float>(width);
      const float variance = kernels_.sum(values.row(row), mean, true, width) / static_cast<float>(width);
      kernels_.cut_below(values.row(row), std::fma(std::sqrt(variance), c, mean), width);
    });
  }

  void mix(Streams x, const Buffer& coefs, std::uint32_t rows, Streams out) override {
    expect_mix(x, coefs, rows, out);
    const std::size_t width = x.front()->width();
    for_rows(team_, rows, x.size() * width * 4 * sizeof(float), [&](std::uint32_t row) {
      const float* coef = device_cast<const HostBuffer>(coefs).row(row);
      for (std::size_t i = 0; i < x.size(); ++i) {
        float* to = device_cast<HostBuffer>(*out[i]).row(row);
        std::copy_n(device_cast<const HostBuffer>(*x[i]).row(row), width, to);
        for (const Buffer* stream : x)
          kernels_.add(to, device_cast<const HostBuffer>(*stream).row(row), *coef++, width);
      }
    });
  }

  void correct(Streams x, Buffer& y, const Buffer& coefs, std::uint32_t rows) override {
    expect_correct(x, y, coefs, rows);
    const std::size_t width = y.width();
    for_rows(team_, rows, x.size() * width * 3 * sizeof(float), [&](std::uint32_t row) {
      const float* coef = device_cast<const HostBuffer>(coefs).row(row);
      float* change = device_cast<HostBuffer>(y).row(row);
      kernels_.add(change, device_cast<const HostBuffer>(*x.front()).row(row), -1.0f, width);
      for (Buffer* stream : x) kernels_.add(device_cast<HostBuffer>(*stream).row(row), change, *coef++ + 1.0f, width);
    });
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
    for (const RowCopy& copy : copies) device_cast<PagedCache>(cache).copy_row(copy);
  }
  void poison_block(KvCache& cache, BlockId block) override { device_cast<PagedCache>(cache).poison(block); }
  void read_block(const KvCache& cache, BlockId block, std::span<std::byte> out) override {
    device_cast<const PagedCache>(cache).read(block, out);
  }
  void write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    device_cast<PagedCache>(cache).write(block, bytes);
  }
  void copy_residual_group(KvCache& cache, std::uint32_t from, std::uint32_t to) override {
    device_cast<PagedCache>(cache).copy_residual_group(from, to);
  }

  void linear(const Buffer& x, const WeightList& weights, std::uint32_t rows, Buffer& out, const Before& before,
              const After& after) override {
    expect_linear(batch_, x, weights, rows, out, before, after);
    if (weights.size() != 1) return Ops::linear(x, weights, rows, out, before, after);
    const auto& w = device_cast<const PackedWeight>(weights[0]);
    const auto& in = device_cast<const HostBuffer>(x);
    auto& products = device_cast<HostBuffer>(out);
    if (before.norm) {
      auto& normed = device_cast<HostBuffer>(*before.normed);
      const auto* store = std::get_if<ThenRopeStore>(&after);
      if (store != nullptr && can_fuse_qkv(*store->attention, *store->cache)) {
        return norm_qkv_rope_store(context_, batch_of(*store->attention, *store->cache), *store->attention, before.norm,
                                   in, w, normed, products, device_cast<PagedCache>(*store->cache));
      }
      const auto* activate = std::get_if<ThenActivate>(&after);
      if (activate != nullptr && activate->gated && can_fuse_gate_up(w)) {
        return norm_gate_up(context_, rows, before.norm, in, w, activate->kind, normed, products,
                            device_cast<HostBuffer>(*activate->out));
      }
    } else {
      if (const auto* add = std::get_if<ThenAdd>(&after); add != nullptr && !add->norm) {
        return project_add(context_, rows, in, w, products, add->scale, device_cast<HostBuffer>(*add->x));
      }
      if (const auto* choose = std::get_if<ThenChoose>(&after)) return project_choose(in, w, *choose, products);
    }
    Ops::linear(x, weights, rows, out, before, after);
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

 protected:
  const KernelContext& context() override { return context_; }

 private:
  Batch batch_of(const AttentionSpec& spec, const KvCache& cache) const {
    return batch_.of_group(cache.shape().layers[spec.layer].group);
  }

  // Reserves what steps with the weight need.
  std::unique_ptr<Weight> ready(std::unique_ptr<PackedWeight> weight) {
    if (weight->wants_codes()) coder_.reserve(*weight);
    return weight;
  }

  // The worker that computes a piece of the logits also rescales it and finds its highest.
  void project_choose(const HostBuffer& x, const PackedWeight& w, const ThenChoose& then, HostBuffer& rows) {
    const std::uint32_t vocab = then.vocab;
    const auto num_rows = static_cast<std::uint32_t>(batch_.logits_rows.size());
    const ProductChunks chunks = tile_chunks(context_, w, num_rows);
    const std::size_t num_pieces = chunks.num_unit_parts();
    highest_.resize(num_rows * num_pieces);
    multiply_then(context_, x, w, chunks, rows, [&](Range part, Range panels, std::uint32_t piece) {
      const std::size_t first = std::min(panels.first * kLanes, vocab);
      const std::size_t last = std::min(panels.last * kLanes, vocab);
      for (std::uint32_t r = part.first; r < part.last; ++r) {
        if (then.rescales()) kernels_.rescale(rows.row(r) + first, then.scale, then.softcap, last - first);
        highest_[r * num_pieces + piece] = {kernels_.highest(rows.row(r) + first, last - first), first};
      }
    });
    choose_each(rows, vocab, [&](std::uint32_t r) {
      const auto pieces = std::span(highest_).subspan(r * num_pieces, num_pieces);
      return std::accumulate(pieces.begin() + 1, pieces.end(), pieces.front(), sample::join);
    });
  }

  // Samples every logits row; highest_of(r) returns the highest of its logits.
  template <typename HighestOf>
  void choose_each(const HostBuffer& logits, std::uint32_t vocab, const HighestOf& highest_of) {
    choices_.begin(batch_);
    const std::uint32_t num_verifications = choices_.num_verifications();
    const std::uint32_t chunks =
        std::min(num_verifications, num_chunks(std::size_t{num_verifications} * vocab * 16, team_.size()));
    const auto row_of = [&](std::uint32_t r) { return LogitRow{{logits.row(r), vocab}, highest_of(r)}; };
    team_.for_chunks(chunks, [&](std::uint32_t chunk, std::uint32_t worker) {
      const Range range = part_of(num_verifications, chunks, chunk);
      for (std::uint32_t i = range.first; i < range.last; ++i) choices_.run(i, row_of, sampling_[worker]);
    });
  }

  // Any buffer may hold logits: scratch for a row is made with the buffer, so that choose() never allocates.
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
  HostSampler choices_;
  std::vector<sample::Highest> highest_;   // [R, pieces of a row]
  std::vector<sample::Scratch> sampling_;  // one per worker
  std::size_t sampling_vocab_ = 0;
};

}  // namespace

std::unique_ptr<backend::Ops> make_cpu_ops(const CpuOptions& options) { return std::make_unique<CpuOps>(options); }

}  // namespace quire::cpu
