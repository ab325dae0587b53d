#include "gpu/gpu_ops.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/backend/choices.h"
#include "core/backend/expect.h"
#include "core/base/check.h"
#include "gpu/linear_layers.h"
#include "gpu/pack.h"
#include "gpu/tensors.h"

namespace quire::gpu {
namespace {

using namespace backend;

// Every Buffer, Weight and so on that reaches these ops was made by them.
template <typename Made, typename Opaque>
Made& own(Opaque& thing) {
#ifndef NDEBUG
  CHECK(dynamic_cast<Made*>(&thing) != nullptr);
#endif
  return static_cast<Made&>(thing);
}

constexpr std::uint32_t pieces(std::uint32_t width, std::uint32_t size) { return (width + size - 1) / size; }

class GpuOps final : public Ops {
 public:
  GpuOps(std::unique_ptr<Device> device, const GpuOptions& options)
      : device_(std::move(device)),
        kernels_(device_->kernels()),
        max_rows_(options.max_rows),
        choices_(options.max_rows),
        linear_(*device_, options.max_rows) {
    CHECK_GT(max_rows_, 0u);
    tokens_ = memory<std::int32_t>(max_rows_, "tokens");
    rows_ = memory<RowOfBatch>(max_rows_, "rows");
    speaker_rows_ = memory<std::uint32_t>(max_rows_, "rows that speak");
    host_rows_.reserve(max_rows_);
    host_speaker_rows_.reserve(max_rows_);
  }

  std::string description() const override { return "gpu/" + device_->name(); }

  std::unique_ptr<Weight> pack(std::span<const HostMatrix> matrices, std::span<const std::span<const float>> biases,
                               Quantize quantize) override {
    auto packed = std::make_shared<const Packed>(gpu::pack(matrices, biases, quantize));
    return made(packed->shape, packed->bytes, packed);
  }
  std::string layout() const override { return DeviceWeight::kLayout; }
  std::unique_ptr<Weight> adopt(const WeightShape& shape, std::span<const std::byte> packed,
                                std::shared_ptr<const void> owner) override {
    if (packed.size() != packed_places(shape).end) return {};
    return made(shape, packed, std::move(owner));
  }
  void for_parts(std::uint32_t count, const std::function<void(std::uint32_t)>& part) override {
    for (std::uint32_t i = 0; i < count; ++i) part(i);
  }
  std::unique_ptr<Vector> upload(std::span<const float> values) override {
    return std::make_unique<DeviceVector>(*device_, values);
  }
  std::unique_ptr<RopeTable> upload_rope(std::span<const float> cosines, std::span<const float> sines,
                                         std::uint32_t half) override {
    return std::make_unique<DeviceRope>(*device_, cosines, sines, half);
  }
  std::unique_ptr<Buffer> make_buffer(std::uint32_t max_rows, std::uint32_t width) override {
    reserve_sampling(width);
    return std::make_unique<DeviceBuffer>(*device_, max_rows, width);
  }
  std::unique_ptr<KvCache> make_kv(const KvShape& shape) override {
    return std::make_unique<DeviceCache>(*device_, shape);
  }

  void begin(const Batch& batch) override {
    expect_batch(batch, max_rows_);
    CHECK_EQ(batch.num_votes, 0u);
    batch_ = batch;
    num_rows_ = batch.num_rows();
    num_speakers_ = static_cast<std::uint32_t>(batch.speakers.size());
    choices_.forget();
    send_rows();
    host_speaker_rows_.clear();
    for (const Speaker& speaker : batch.speakers) host_speaker_rows_.push_back(speaker.row);
    send(speaker_rows_, std::span<const std::uint32_t>(host_speaker_rows_));
    send(tokens_, batch.tokens);
    keep_room(block_tables_, batch.block_tables.size_bytes(), "block tables");
    send(block_tables_, batch.block_tables);
    keep_room(kept_groups_, batch.kept_groups.size_bytes(), "kept groups");
    send(kept_groups_, batch.kept_groups);
  }

  void embed(const Weight& table, Buffer& out) override {
    expect_embed(batch_, table, out);
    start(kernels_.embed, {num_rows_, 1},
          {tokens_.as<const std::int32_t>(), own<const DeviceWeight>(table).view(), own<DeviceBuffer>(out).data()});
  }

  void norm(const Buffer& x, const Vector& scale, float eps, std::uint32_t rows, Buffer& out) override {
    expect_norm(x, scale, rows, out);
    start(kernels_.norm, {rows, 1},
          {own<const DeviceBuffer>(x).data(), own<const DeviceVector>(scale).data(), eps, scale.size(),
           own<DeviceBuffer>(out).data()});
  }

  void linear(const Buffer& x, const Weight& w, std::uint32_t rows, Buffer& out) override {
    expect_linear(x, w, rows, out);
    linear_.multiply(plain(x), rows, own<const DeviceWeight>(w).view(), Finish::kStore, own<DeviceBuffer>(out).data());
  }

  void rope_store(const AttentionSpec& spec, Buffer& qkv, KvCache& cache) override {
    expect_rope_store(batch_, spec, qkv, cache);
    start(kernels_.rope_store, {num_rows_, spec.num_heads + spec.num_kv_heads},
          {view_of(spec), rows_.as<const RowOfBatch>(), own<DeviceBuffer>(qkv).data(), own<DeviceCache>(cache).view()});
  }

  void attend(const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache, Buffer& out) override {
    expect_attend(batch_, spec, qkv, cache, out);
    CHECK_LE(spec.head_dim, Attend::kMostDims);
    start(kernels_.attend, {num_rows_, spec.num_heads},
          {view_of(spec), rows_.as<const RowOfBatch>(), block_tables_.as<const std::uint32_t>(),
           kept_groups_.as<const std::uint16_t>(), own<const DeviceBuffer>(qkv).data(),
           own<const DeviceCache>(cache).view(), own<DeviceBuffer>(out).data()});
  }

  void act_mul(const Buffer& gate_up, Buffer& out) override {
    expect_act_mul(gate_up, num_rows_, out);
    start(kernels_.act_mul, {num_rows_, pieces(out.width(), ActMul::kThreads)},
          {own<const DeviceBuffer>(gate_up).data(), out.width(), own<DeviceBuffer>(out).data()});
  }

  void add(Buffer& x, const Buffer& y) override {
    expect_add(x, y, num_rows_);
    start(kernels_.add, {num_rows_, pieces(x.width(), Add::kThreads)},
          {own<DeviceBuffer>(x).data(), own<const DeviceBuffer>(y).data(), x.width()});
  }

  void place(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    expect_place(x, rows, column, out);
    copy_rows_of(x, 0, nullptr, rows, x.width(), out, column);
  }
  void cut(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    expect_cut(x, rows, column, out);
    copy_rows_of(x, column, nullptr, rows, out.width(), out, 0);
  }
  void gather_speakers(const Buffer& x, Buffer& out) override {
    expect_gather(batch_, x, out);
    copy_rows_of(x, 0, speaker_rows_.as<const std::uint32_t>(), num_speakers_, x.width(), out, 0);
  }

  void choose(const Buffer& logits, std::uint32_t vocab) override {
    expect_choose(batch_, logits, vocab);
    const std::size_t width = logits.width();
    host_logits_.resize(std::max(host_logits_.size(), num_speakers_ * width));
    device_->download(host_logits_.data(), own<const DeviceBuffer>(logits).data(),
                      num_speakers_ * width * sizeof(float));
    choices_.begin(batch_);
    const auto row_of = [&](std::uint32_t r) {
      const std::span<const float> row = std::span<const float>(host_logits_).subspan(r * width, vocab);
      return LogitRow{row, sample::highest_of(row)};
    };
    for (std::uint32_t walk = 0; walk < choices_.num_walks(); ++walk) choices_.run(walk, row_of, sampling_);
  }

  void collect(std::span<Choice> choices) override {
    CHECK_EQ(choices.size(), choices_.each().size());
    std::ranges::copy(choices_.each(), choices.begin());
  }

  void read_votes(std::span<std::uint64_t> out) override { CHECK(out.empty()); }

  void norm_qkv_rope_store(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& qkv,
                           KvCache& cache) override {
    const WeightView& w = own<const DeviceWeight>(*layer.qkv).view();
    if (!in_tiles(w.type)) return Ops::norm_qkv_rope_store(layer, x, scratch, qkv, cache);
    expect_norm(x, *layer.input_norm, num_rows_, scratch);
    expect_linear(scratch, *layer.qkv, num_rows_, qkv);
    linear_.multiply(normed(x, *layer.input_norm, layer.norm_eps), num_rows_, w, Finish::kStore,
                     own<DeviceBuffer>(qkv).data());
    rope_store(layer.attention, qkv, cache);
  }
  void norm_gate_up(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& gate_up, Buffer& out) override {
    const WeightView& w = own<const DeviceWeight>(*layer.gate_up).view();
    if (!in_tiles(w.type)) return Ops::norm_gate_up(layer, x, scratch, gate_up, out);
    expect_norm(x, *layer.post_norm, num_rows_, scratch);
    expect_linear(scratch, *layer.gate_up, num_rows_, gate_up);
    expect_act_mul(gate_up, num_rows_, out);
    const RowsToPut rows = normed(x, *layer.post_norm, layer.norm_eps);
    if (LinearLayers::can_gate(w)) {
      return linear_.multiply(rows, num_rows_, w, Finish::kGate, own<DeviceBuffer>(out).data());
    }
    linear_.multiply(rows, num_rows_, w, Finish::kStore, own<DeviceBuffer>(gate_up).data());
    act_mul(gate_up, out);
  }
  void project_add(const Buffer& y, const Weight& w, Buffer& scratch, Buffer& x) override {
    const WeightView& view = own<const DeviceWeight>(w).view();
    if (!in_tiles(view.type)) return Ops::project_add(y, w, scratch, x);
    expect_linear(y, w, num_rows_, scratch);
    expect_add(x, scratch, num_rows_);
    linear_.multiply(plain(y), num_rows_, view, Finish::kAdd, own<DeviceBuffer>(x).data());
  }

  void copy_blocks(KvCache& cache, std::span<const BlockCopy> copies) override {
    auto& all = own<DeviceCache>(cache);
    for (const BlockCopy& copy : copies) {
      for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
        device_->copy(all.layer_of(layer, copy.to), all.layer_of(layer, copy.from), all.layer_bytes());
      }
      std::ranges::copy(all.tail(copy.from), all.tail(copy.to).begin());
    }
  }
  void copy_rows(KvCache& cache, std::span<const RowCopy> copies) override {
    const auto& all = own<DeviceCache>(cache);
    for (const RowCopy& copy : copies) {
      start(kernels_.copy_kv_row, {all.shape().all_layers(), all.shape().num_kv_heads},
            {all.view(), copy.from, copy.to});
    }
  }
  void poison_block(KvCache& cache, BlockId block) override {
    const auto& all = own<DeviceCache>(cache);
    CHECK_LT(block.value, all.shape().num_blocks);
    for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
      device_->fill(all.layer_of(layer, block), std::byte{0xff}, all.layer_bytes());
    }
  }
  void read_block(const KvCache& cache, BlockId block, std::span<std::byte> out) override {
    const auto& all = own<const DeviceCache>(cache);
    CHECK_LT(block.value, all.shape().num_blocks);
    CHECK_EQ(out.size(), all.block_bytes());
    for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
      device_->download(out.data() + layer * all.layer_bytes(), all.layer_of(layer, block), all.layer_bytes());
    }
    read_tail(cache, block, out.last(all.shape().tail_bytes));
  }
  void write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    const auto& all = own<DeviceCache>(cache);
    CHECK_LT(block.value, all.shape().num_blocks);
    CHECK_EQ(bytes.size(), all.block_bytes());
    for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
      device_->upload(all.layer_of(layer, block), bytes.data() + layer * all.layer_bytes(), all.layer_bytes());
    }
    write_tail(cache, block, bytes.last(all.shape().tail_bytes));
  }
  void copy_open_group(KvCache& /*cache*/, std::uint32_t /*from*/, std::uint32_t /*to*/) override {
    CHECK(!"no cache of this backend has open groups");
  }
  void read_tail(const KvCache& cache, BlockId block, std::span<std::byte> out) override {
    std::ranges::copy(own<const DeviceCache>(cache).tail(block), out.begin());
  }
  void write_tail(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    std::ranges::copy(bytes, own<DeviceCache>(cache).tail(block).begin());
  }

  void read(const Buffer& buffer, std::uint32_t first_row, std::uint32_t num_rows, std::span<float> out) override {
    CHECK_LE(std::uint64_t{first_row} + num_rows, buffer.max_rows());
    CHECK_EQ(out.size(), std::size_t{num_rows} * buffer.width());
    device_->download(out.data(), own<const DeviceBuffer>(buffer).row(first_row), out.size_bytes());
  }

 private:
  template <typename Kernel>
  void start(const Entry<Kernel>& kernel, Index grid, const typename Kernel::Args& args) {
    device_->start(kernel, grid, args);
  }
  template <typename T>
  DeviceMemory memory(std::size_t count, const char* what) {
    return {*device_, count * sizeof(T), what};
  }
  // What a step brings along grows with the longest yet.
  void keep_room(DeviceMemory& room, std::size_t bytes, const char* what) {
    if (bytes > room.bytes()) room = DeviceMemory(*device_, std::bit_ceil(bytes), what);
  }
  template <typename T>
  void send(const DeviceMemory& to, std::span<const T> values) {
    if (!values.empty()) device_->upload(to.data(), values.data(), values.size_bytes());
  }

  // Scratch for any linear is there before the first step.
  std::unique_ptr<Weight> made(const WeightShape& shape, std::span<const std::byte> packed,
                               std::shared_ptr<const void> owner) {
    linear_.reserve(shape.type, shape.n, shape.k);
    return std::make_unique<DeviceWeight>(*device_, shape, packed, std::move(owner));
  }

  static RowsToPut plain(const Buffer& x) { return {own<const DeviceBuffer>(x).data(), nullptr, 0.0f, x.width()}; }
  static RowsToPut normed(const Buffer& x, const Vector& scale, float eps) {
    return {own<const DeviceBuffer>(x).data(), own<const DeviceVector>(scale).data(), eps, x.width()};
  }

  void send_rows() {
    host_rows_.clear();
    for (const SequenceRows& sequence : batch_.sequences) {
      for (std::uint32_t i = 0; i < sequence.num_rows; ++i) {
        const std::uint32_t row = sequence.first_row + i;
        RowOfBatch out;
        out.position = batch_.positions[row];
        out.slot = batch_.slots[row];
        out.first_table = sequence.first_table;
        out.first_kept = sequence.first_kept;
        out.num_kept = sequence.num_kept;
        if (i >= sequence.num_plain()) {
          out.root_position = sequence.root_position();
          out.ancestors = batch_.ancestors[sequence.first_node + (i - sequence.num_plain())];
        }
        host_rows_.push_back(out);
      }
    }
    send(rows_, std::span<const RowOfBatch>(host_rows_));
  }

  void copy_rows_of(const Buffer& x, std::uint32_t x_column, const std::uint32_t* rows, std::uint32_t num_rows,
                    std::uint32_t width, Buffer& out, std::uint32_t out_column) {
    start(kernels_.copy_rows, {num_rows, pieces(width, CopyRows::kThreads)},
          {own<const DeviceBuffer>(x).data(), x.width(), x_column, rows, width, own<DeviceBuffer>(out).data(),
           out.width(), out_column});
  }

  static AttentionView view_of(const AttentionSpec& spec) {
    const auto* rope = static_cast<const DeviceRope*>(spec.rope);
    AttentionView view;
    view.layer = spec.layer;
    view.num_heads = spec.num_heads;
    view.num_kv_heads = spec.num_kv_heads;
    view.head_dim = spec.head_dim;
    view.scale = spec.scale;
    view.window = spec.window;
    view.norm_eps = spec.norm_eps;
    if (spec.q_norm != nullptr) view.q_norm = own<const DeviceVector>(*spec.q_norm).data();
    if (spec.k_norm != nullptr) view.k_norm = own<const DeviceVector>(*spec.k_norm).data();
    view.cosines = rope->cosines();
    view.sines = rope->sines();
    view.half = rope->half();
    return view;
  }

  // Logits live in the widest buffers.
  void reserve_sampling(std::uint32_t width) {
    const std::size_t vocab = std::min<std::size_t>(width, sample::kMaxVocab);
    if (vocab > sampling_.adjusted.size()) sampling_ = sample::Scratch(vocab);
  }

  const std::unique_ptr<Device> device_;
  const KernelTable& kernels_;
  const std::uint32_t max_rows_;
  Batch batch_;
  Choices choices_;
  DeviceMemory tokens_;
  DeviceMemory rows_;
  DeviceMemory speaker_rows_;
  DeviceMemory block_tables_;
  DeviceMemory kept_groups_;
  LinearLayers linear_;
  std::vector<RowOfBatch> host_rows_;
  std::vector<std::uint32_t> host_speaker_rows_;
  std::vector<float> host_logits_;
  sample::Scratch sampling_{0};
};

}  // namespace

std::unique_ptr<Ops> make_gpu_ops(std::unique_ptr<Device> device, const GpuOptions& options) {
  return std::make_unique<GpuOps>(std::move(device), options);
}

}  // namespace quire::gpu
