#include "gpu/gpu_ops.h"

#include <algorithm>
#include <numeric>

#include "core/backend/device_cast.h"
#include "core/backend/expect.h"
#include "core/base/check.h"
#include "gpu/attention.h"
#include "gpu/chooser.h"
#include "gpu/linear_layers.h"
#include "gpu/pack.h"
#include "gpu/runtime/host_threads.h"
#include "gpu/steps.h"
#include "gpu/tensors.h"

namespace quire::gpu {
namespace {

using namespace backend;

// Whatever changes which bits come out gives it a new number: saved caches outlive the program, and a numeric mode
// names it.
constexpr const char* kArithmetic = "2";

constexpr std::uint32_t pieces(std::uint32_t width, std::uint32_t size) { return (width + size - 1) / size; }

class GpuOps final : public Ops {
 public:
  GpuOps(std::unique_ptr<Device> device, const GpuOptions& options)
      : device_(std::move(device)),
        kernels_(device_->kernels()),
        max_rows_(options.max_rows),
        most_captured_(options.capture),
        step_buffer_(*device_, {max_rows_, max_rows_, options.max_kept_groups, options.max_table_entries},
                     options.depth),
        captured_(*device_),
        attention_(*device_, {max_rows_, options.max_table_entries, options.depth}),
        linear_(*device_, options.max_rows, options.linear_warpgroups) {
    CHECK_GT(max_rows_, 0u);
    CHECK_GT(options.depth, 0u);
    CHECK_LE(most_captured_, max_rows_);
    device_->let_kernels_overlap(options.overlap);
    device_->set_carveout(options.carveout);
    for (std::uint32_t i = 0; i < options.depth; ++i) {
      choosers_.push_back(std::make_unique<Chooser>(*device_, ChooserOptions{.max_logits_rows = max_rows_}));
    }
  }

  std::string description() const override {
    return "gpu-" + device_->architecture() + "-" + kArithmetic + "/" + device_->name();
  }

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
    for_each_part(count, part);
  }
  std::unique_ptr<Vector> upload(std::span<const float> values) override {
    return std::make_unique<DeviceVector>(device(), values);
  }
  std::unique_ptr<RopeTable> upload_rope(std::span<const float> cosines, std::span<const float> sines,
                                         std::uint32_t half) override {
    return std::make_unique<DeviceRope>(device(), cosines, sines, half);
  }
  std::unique_ptr<Buffer> make_buffer(std::uint32_t max_rows, std::uint32_t width) override {
    for (const auto& chooser : choosers_) chooser->make_room(width);  // logits live in the widest buffers
    return std::make_unique<DeviceBuffer>(device(), buffer_sizes_, max_rows, width);
  }
  std::unique_ptr<KvCache> make_kv(const KvShape& shape) override {
    run_recorded();
    attention_.reserve(shape);
    return std::make_unique<DeviceCache>(*device_, shape);
  }

  std::uint32_t depth() const override { return static_cast<std::uint32_t>(choosers_.size()); }
  void begin(const Batch& batch) override {
    run_recorded();
    expect_batch(batch, max_rows_);
    batch_ = batch;
    const std::uint32_t bucket = can_capture(batch) ? bucket_of(batch.num_rows(), most_captured()) : 0;
    num_rows_ = std::max(batch.num_rows(), bucket);
    num_logits_rows_ = std::max(static_cast<std::uint32_t>(batch.logits_rows.size()), bucket);
    send_step_buffer();
    attention_.begin(
        batch, {step_buffer_.device_rows(), step_buffer_.device_tables(), step_buffer_.device_kept_groups()}, bucket);
    step_ = (step_ + 1) % choosers_.size();
    num_begun_ = std::min(num_begun_ + 1, choosers_.size());  // who does not collect is not waited for
    choosers_[step_]->forget();
    if (bucket == 0) return;
    records_ = true;
    device_->record(&launches_);
  }

  void embed(const Weight& table, Buffer& out) override {
    const auto& rows = device_cast<const DeviceWeight>(table);
    if (!rows.is_part()) expect_embed(batch_, table, out);
    start(kernels_.embed, {num_rows_, pieces(rows.k(), Embed::kThreads)},
          {step_buffer_.device_tokens(), said_before(), rows.view(), device_cast<DeviceBuffer>(out).data(),
           rows.first_row()});
  }

  void norm(const Buffer& x, const Vector& scale, float eps, std::uint32_t rows, Buffer& out) override {
    expect_norm(x, scale, rows, out);
    start(kernels_.norm, {padded(rows), 1},
          {device_cast<const DeviceBuffer>(x).data(), device_cast<const DeviceVector>(scale).data(), eps, scale.size(),
           device_cast<DeviceBuffer>(out).data()});
  }

  void linear(const Buffer& x, const Weight& w, std::uint32_t rows, Buffer& out) override {
    expect_linear(x, w, rows, out);
    linear_.multiply(plain(x), padded(rows), device_cast<const DeviceWeight>(w).view(), Finish::kStore,
                     device_cast<DeviceBuffer>(out).data());
  }

  void rope_store(const AttentionSpec& spec, Buffer& qkv, KvCache& cache) override {
    expect_rope_store(batch_, spec, qkv, cache);
    attention_.rope_store(view_of(spec), device_cast<DeviceBuffer>(qkv).data(), device_cast<DeviceCache>(cache));
  }

  void attend(const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache, Buffer& out) override {
    expect_attend(batch_, spec, qkv, cache, out);
    attention_.attend(view_of(spec), device_cast<const DeviceBuffer>(qkv).data(), device_cast<const DeviceCache>(cache),
                      device_cast<DeviceBuffer>(out).data());
  }

  void act_mul(const Buffer& gate_up, Buffer& out) override {
    expect_act_mul(gate_up, num_rows_, out);
    start(kernels_.act_mul, {num_rows_, pieces(out.width(), ActMul::kThreads)},
          {device_cast<const DeviceBuffer>(gate_up).data(), out.width(), device_cast<DeviceBuffer>(out).data()});
  }

  void add(Buffer& x, const Buffer& y) override {
    expect_add(x, y, num_rows_);
    start(kernels_.add, {num_rows_, pieces(x.width(), Add::kThreads)},
          {device_cast<DeviceBuffer>(x).data(), device_cast<const DeviceBuffer>(y).data(), x.width()});
  }

  void place(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    expect_place(x, rows, column, out);
    copy_rows_of(x, 0, nullptr, padded(rows), x.width(), out, column);
  }
  void cut(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    expect_cut(x, rows, column, out);
    copy_rows_of(x, column, nullptr, padded(rows), out.width(), out, 0);
  }
  void gather_logits_rows(const Buffer& x, Buffer& out) override {
    expect_gather(batch_, x, out);
    copy_rows_of(x, 0, step_buffer_.device_logits_rows(), num_logits_rows_, x.width(), out, 0);
  }

  void choose(const Buffer& logits, std::uint32_t vocab) override {
    expect_choose(batch_, logits, vocab);
    run_recorded();
    choosers_[step_]->choose(batch_, device_cast<const DeviceBuffer>(logits).data(), logits.width(), vocab);
  }

  void collect(std::span<Choice> choices) override {
    run_recorded();
    CHECK_GT(num_begun_, 0u);
    choosers_[(step_ + choosers_.size() + 1 - num_begun_--) % choosers_.size()]->collect(choices);
  }

  void read_accumulated_scores(std::span<std::uint64_t> out) override { attention_.read_accumulated_scores(out); }

  void norm_qkv_rope_store(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& qkv,
                           KvCache& cache) override {
    const WeightView& w = device_cast<const DeviceWeight>(*layer.qkv).view();
    if (!in_tiles(w.type)) return Ops::norm_qkv_rope_store(layer, x, scratch, qkv, cache);
    expect_norm(x, *layer.input_norm, num_rows_, scratch);
    expect_linear(scratch, *layer.qkv, num_rows_, qkv);
    linear_.multiply(normed(x, *layer.input_norm, layer.norm_eps), num_rows_, w, Finish::kStore,
                     device_cast<DeviceBuffer>(qkv).data());
    rope_store(layer.attention, qkv, cache);
  }
  void norm_gate_up(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& gate_up, Buffer& out) override {
    const WeightView& w = device_cast<const DeviceWeight>(*layer.gate_up).view();
    if (!in_tiles(w.type)) return Ops::norm_gate_up(layer, x, scratch, gate_up, out);
    expect_norm(x, *layer.post_norm, num_rows_, scratch);
    expect_linear(scratch, *layer.gate_up, num_rows_, gate_up);
    expect_act_mul(gate_up, num_rows_, out);
    const RowsToPut rows = normed(x, *layer.post_norm, layer.norm_eps);
    if (LinearLayers::can_gate(w)) {
      return linear_.multiply(rows, num_rows_, w, Finish::kGate, device_cast<DeviceBuffer>(out).data());
    }
    linear_.multiply(rows, num_rows_, w, Finish::kStore, device_cast<DeviceBuffer>(gate_up).data());
    act_mul(gate_up, out);
  }
  void project_add(const Buffer& y, const Weight& w, Buffer& scratch, Buffer& x) override {
    const WeightView& view = device_cast<const DeviceWeight>(w).view();
    if (!in_tiles(view.type)) return Ops::project_add(y, w, scratch, x);
    expect_linear(y, w, num_rows_, scratch);
    expect_add(x, scratch, num_rows_);
    linear_.multiply(plain(y), num_rows_, view, Finish::kAdd, device_cast<DeviceBuffer>(x).data());
  }

  void copy_blocks(KvCache& cache, std::span<const BlockCopy> copies) override {
    auto& all = device_cast<DeviceCache>(cache);
    for (const BlockCopy& copy : copies) {
      for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
        device().copy(all.layer_of(layer, copy.to), all.layer_of(layer, copy.from), all.layer_bytes());
      }
      std::ranges::copy(all.tail(copy.from), all.tail(copy.to).begin());
    }
  }
  void copy_rows(KvCache& cache, std::span<const RowCopy> copies) override {
    const auto& all = device_cast<DeviceCache>(cache);
    CHECK(all.shape().type != KvType::kInt4);
    for (const RowCopy& copy : copies) {
      device().start(kernels_.copy_kv_row, {all.shape().all_layers(), all.shape().num_kv_heads},
                     {all.view(), copy.from, copy.to});
    }
  }
  void poison_block(KvCache& cache, BlockId block) override {
    const auto& all = device_cast<DeviceCache>(cache);
    CHECK_LT(block.value, all.shape().num_blocks);
    for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
      device().fill(all.layer_of(layer, block), std::byte{0xff}, all.layer_bytes());
    }
  }
  void read_block(const KvCache& cache, BlockId block, std::span<std::byte> out) override {
    const auto& all = device_cast<const DeviceCache>(cache);
    CHECK_LT(block.value, all.shape().num_blocks);
    CHECK_EQ(out.size(), all.block_bytes());
    for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
      device().download(out.data() + layer * all.layer_bytes(), all.layer_of(layer, block), all.layer_bytes());
    }
    read_tail(cache, block, out.last(all.shape().tail_bytes));
  }
  void write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    const auto& all = device_cast<DeviceCache>(cache);
    CHECK_LT(block.value, all.shape().num_blocks);
    CHECK_EQ(bytes.size(), all.block_bytes());
    for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
      device().upload(all.layer_of(layer, block), bytes.data() + layer * all.layer_bytes(), all.layer_bytes());
    }
    write_tail(cache, block, bytes.last(all.shape().tail_bytes));
  }
  void copy_open_group(KvCache& cache, std::uint32_t from, std::uint32_t to) override {
    const auto& all = device_cast<DeviceCache>(cache);
    CHECK_LT(from, all.shape().num_open_groups);
    CHECK_LT(to, all.shape().num_open_groups);
    if (from != to) device().copy(all.open_group(to), all.open_group(from), all.open_group_bytes());
  }
  void read_tail(const KvCache& cache, BlockId block, std::span<std::byte> out) override {
    std::ranges::copy(device_cast<const DeviceCache>(cache).tail(block), out.begin());
  }
  void write_tail(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    std::ranges::copy(bytes, device_cast<DeviceCache>(cache).tail(block).begin());
  }

  void read(const Buffer& buffer, std::uint32_t first_row, std::uint32_t num_rows, std::span<float> out) override {
    CHECK_LE(std::uint64_t{first_row} + num_rows, buffer.max_rows());
    CHECK_EQ(out.size(), std::size_t{num_rows} * buffer.width());
    device().download(out.data(), device_cast<const DeviceBuffer>(buffer).row(first_row), out.size_bytes());
  }
  void write(std::span<const float> rows, Buffer& buffer) override {
    CHECK_EQ(rows.size() % buffer.width(), 0u);
    CHECK_LE(rows.size() / buffer.width(), buffer.max_rows());
    device().upload(device_cast<DeviceBuffer>(buffer).row(0), rows.data(), rows.size_bytes());
  }

 private:
  template <typename Kernel>
  void start(const Entry<Kernel>& kernel, Index grid, const typename Kernel::Args& args) {
    device_->start(kernel, grid, args);
  }
  // For whatever is no part of a captured step.
  Device& device() {
    run_recorded();
    return *device_;
  }
  void run_recorded() {
    if (!std::exchange(records_, false)) return;
    device_->record(nullptr);
    captured_.run(launches_);
    launches_.clear();
  }
  // Device memory with the tokens that the previous step's logits rows sampled.
  const TokenId* said_before() const { return choosers_[(step_ + choosers_.size() - 1) % choosers_.size()]->chosen(); }
  // True if the launches depend on nothing of the batch but its number of rows: sequences of one row, all logits rows.
  bool can_capture(const Batch& batch) const {
    return batch.sequences.size() == batch.num_rows() && batch.logits_rows.size() == batch.num_rows() &&
           batch.kept_groups.empty();
  }
  // Padded rows fit every buffer.
  std::uint32_t most_captured() const {
    return buffer_sizes_.empty() ? most_captured_ : std::min(most_captured_, *buffer_sizes_.begin());
  }
  // The rows that a kernel is to run of so many of the batch, or of its logits rows. Of other rows, which some drafters
  // have, there are as many as they happen to be: from there on nothing is captured.
  std::uint32_t padded(std::uint32_t rows) {
    if (records_ && rows != batch_.num_rows() && rows != num_rows_) run_recorded();
    return records_ ? num_rows_ : rows;
  }

  // Scratch for any linear is there before the first step.
  std::unique_ptr<Weight> made(const WeightShape& shape, std::span<const std::byte> packed,
                               std::shared_ptr<const void> owner) {
    run_recorded();  // who makes a weight within a step may drop it within the step
    linear_.reserve(shape.type, shape.k);
    return std::make_unique<DeviceWeight>(*device_, shape, packed, std::move(owner));
  }

  static RowsToPut plain(const Buffer& x) {
    return {device_cast<const DeviceBuffer>(x).data(), nullptr, 0.0f, x.width()};
  }
  static RowsToPut normed(const Buffer& x, const Vector& scale, float eps) {
    return {device_cast<const DeviceBuffer>(x).data(), device_cast<const DeviceVector>(scale).data(), eps, x.width()};
  }

  void send_step_buffer() {
    step_buffer_.begin({num_rows_, num_logits_rows_, static_cast<std::uint32_t>(batch_.kept_groups.size()),
                        static_cast<std::uint32_t>(batch_.block_tables.size())});
    const std::span<std::int32_t> tokens = step_buffer_.tokens();
    std::ranges::fill(std::ranges::copy(batch_.tokens, tokens.begin()).out, tokens.end(), 0);
    for (const FedRow& fed : batch_.fed) tokens[fed.row] = Embed::fed_by(fed.logits_row);
    fill_rows(step_buffer_.rows());
    const std::span<std::uint32_t> logits_rows = step_buffer_.logits_rows();
    for (std::uint32_t r = 0; r < logits_rows.size(); ++r) {
      logits_rows[r] = r < batch_.logits_rows.size() ? batch_.logits_rows[r].row : r;
    }
    std::ranges::copy(batch_.kept_groups, step_buffer_.kept_groups().begin());
    std::ranges::copy(batch_.block_tables, step_buffer_.tables().begin());
    step_buffer_.send();
  }

  void fill_rows(std::span<RowOfBatch> rows) const {
    for (const SequenceRows& sequence : batch_.sequences) {
      for (std::uint32_t i = 0; i < sequence.num_rows; ++i) {
        const std::uint32_t row = sequence.first_row + i;
        RowOfBatch& out = rows[row] = {};
        out.position = batch_.positions[row];
        out.slot = batch_.slots[row];
        out.first_table = sequence.first_table;
        out.first_kept = sequence.first_kept;
        out.num_kept = sequence.num_kept;
        out.first_row = sequence.first_row;
        out.first_position = sequence.first_position;
        out.open_group = sequence.open_group;
        out.first_accumulated_score = sequence.first_accumulated_score;
        out.num_accumulated_scores = sequence.num_accumulated_scores;
        if (i >= sequence.num_plain()) {
          out.root_position = sequence.root_position();
          out.ancestors = batch_.ancestors[sequence.first_node + (i - sequence.num_plain())];
        }
      }
    }
    for (RowOfBatch& nobody : rows.subspan(batch_.num_rows())) nobody = {.slot = RowOfBatch::kNobody};
  }

  void copy_rows_of(const Buffer& x, std::uint32_t x_column, const std::uint32_t* rows, std::uint32_t num_rows,
                    std::uint32_t width, Buffer& out, std::uint32_t out_column) {
    start(kernels_.copy_rows, {num_rows, pieces(width, CopyRows::kThreads)},
          {device_cast<const DeviceBuffer>(x).data(), x.width(), x_column, rows, width,
           device_cast<DeviceBuffer>(out).data(), out.width(), out_column});
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
    if (spec.q_norm != nullptr) view.q_norm = device_cast<const DeviceVector>(*spec.q_norm).data();
    if (spec.k_norm != nullptr) view.k_norm = device_cast<const DeviceVector>(*spec.k_norm).data();
    view.cosines = rope->cosines();
    view.sines = rope->sines();
    view.half = rope->half();
    return view;
  }

  const std::unique_ptr<Device> device_;
  const KernelTable& kernels_;
  const std::uint32_t max_rows_;
  const std::uint32_t most_captured_;
  Batch batch_;
  StepBuffer step_buffer_;
  CapturedSteps captured_;
  BufferSizes buffer_sizes_;
  LaunchList launches_;  // of the step begun last, where it is one to be captured
  bool records_ = false;
  Attention attention_;
  std::vector<std::unique_ptr<Chooser>> choosers_;  // [depth] in turn
  std::size_t step_ = 0;                            // whose is that of the step begun last
  std::size_t num_begun_ = 0;                       // and not collected
  LinearLayers linear_;
};

}  // namespace

std::unique_ptr<Ops> make_gpu_ops(std::unique_ptr<Device> device, const GpuOptions& options) {
  return std::make_unique<GpuOps>(std::move(device), options);
}

std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::WeightType type) {
  return packed_places({n, k, type, /*has_bias=*/false}).end;
}

std::uint64_t kv_block_bytes(const backend::KvShape& shape) {
  const KvLayout layout{shape.num_blocks, shape.num_kv_heads, shape.head_dim, shape.block_tokens, shape.type};
  return shape.all_layers() * layout.block_bytes();
}

std::uint64_t kv_open_group_bytes(const backend::KvShape& shape) { return open_group_bytes(shape); }

}  // namespace quire::gpu
