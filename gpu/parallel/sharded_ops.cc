#include "gpu/parallel/sharded_ops.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "core/backend/device_cast.h"
#include "core/backend/expect.h"
#include "core/base/check.h"
#include "core/base/start_error.h"
#include "gpu/parallel/sharded_tensors.h"

namespace quire::gpu {
namespace {

using namespace backend;

class ShardedOps final : public Ops {
 public:
  ShardedOps(Ranks ranks, const GpuOptions& options, const ExchangeOptions& exchange, std::unique_ptr<Nccl> library)
      : rendezvous_(std::move(ranks.rendezvous)),
        devices_(pointers(ranks.devices)),
        exchange_(devices_, exchange, rendezvous_.get(), std::move(library)) {
    CHECK_EQ(options.capture, 0u);
    for (auto& device : ranks.devices) ranks_.push_back(make_gpu_ops(std::move(device), options));
  }
  ShardedOps(const ShardedOps&) = delete;
  ShardedOps& operator=(const ShardedOps&) = delete;

  // The first word is that of one GPU, whose bits these are.
  std::string description() const override {
    return ranks_.front()->description() + ", " + std::to_string(ranks_.size()) + " ranks";
  }

  // ---- made while starting
  std::unique_ptr<Weight> pack(std::span<const HostMatrix> matrices, std::span<const std::span<const float>> biases,
                               Quantize quantize) override;
  std::string layout() const override {
    return ranks_.front()->layout() + " of " + std::to_string(ranks_.size()) + " ranks/1";
  }
  std::unique_ptr<Weight> adopt(const WeightShape& shape, std::span<const std::byte> packed,
                                std::shared_ptr<const void> owner) override;
  void for_parts(std::uint32_t count, const std::function<void(std::uint32_t)>& part) override {
    ranks_.front()->for_parts(count, part);
  }
  std::unique_ptr<Vector> upload(std::span<const float> values) override {
    return std::make_unique<ShardedVector>(
        of_ranks<Vector>([&](std::uint32_t r) { return ranks_[r]->upload(values); }));
  }
  std::unique_ptr<RopeTable> upload_rope(std::span<const float> cosines, std::span<const float> sines,
                                         std::uint32_t half) override {
    return std::make_unique<ShardedRope>(
        of_ranks<RopeTable>([&](std::uint32_t r) { return ranks_[r]->upload_rope(cosines, sines, half); }));
  }
  std::unique_ptr<Buffer> make_buffer(std::uint32_t max_rows, std::uint32_t width) override {
    auto whole = of_ranks<Buffer>([&](std::uint32_t r) { return ranks_[r]->make_buffer(max_rows, width); });
    OfRanks<Buffer> parts;
    if (divides_evenly(width, num_ranks())) {
      exchange_.make_room(std::size_t{max_rows} * width);
      parts = of_ranks<Buffer>([&](std::uint32_t r) { return ranks_[r]->make_buffer(max_rows, width / num_ranks()); });
    }
    return std::make_unique<ShardedBuffer>(std::move(whole), std::move(parts));
  }
  std::unique_ptr<KvCache> make_kv(const KvShape& shape) override {
    const std::vector<std::string> problems = problems_of_ranks(shape.num_kv_heads, num_ranks());
    if (!problems.empty()) throw StartError(problems.front());
    return std::make_unique<ShardedCache>(
        shape, of_ranks<KvCache>([&](std::uint32_t r) { return ranks_[r]->make_kv(share_of(shape, r, num_ranks())); }));
  }

  // ---- one step
  std::uint32_t depth() const override { return ranks_.front()->depth(); }
  void begin(const Batch& batch) override {
    num_rows_ = batch.num_rows();
    num_logits_rows_ = static_cast<std::uint32_t>(batch.logits_rows.size());
    batch_ = batch;
    for (auto& rank : ranks_) rank->begin(batch);
  }
  void embed(const Weight& table, Buffer& out) override {
    expect_embed(batch_, table, out);
    const auto& w = device_cast<const ShardedWeight>(table);
    auto& rows = device_cast<ShardedBuffer>(out);
    CHECK(!w.is_cut() || w.outputs().size() == 1);
    rows.is_now_whole();
    on_each([&](std::uint32_t r) { ranks_[r]->embed(w.of(r), rows.whole(r)); });
    if (w.is_cut()) exchange_.sum(rows.whole(), std::size_t{num_rows_} * rows.width());
  }
  void norm(const Buffer& x, const Vector& scale, float eps, std::uint32_t rows, Buffer& out) override {
    const auto& in = whole(x);
    auto& to = made_whole(out);
    on_each([&](std::uint32_t r) { ranks_[r]->norm(in.whole(r), vector(scale, r), eps, rows, to.whole(r)); });
  }
  void linear(const Buffer& x, const Weight& w, std::uint32_t rows, Buffer& out) override {
    expect_linear(x, w, rows, out);
    const auto& weight = device_cast<const ShardedWeight>(w);
    const auto& in = whole(x);
    auto& to = device_cast<ShardedBuffer>(out);
    to.is_now_whole();
    on_each([&](std::uint32_t r) {
      ranks_[r]->linear(in.whole(r), weight.of(r), rows, weight.is_cut() ? to.part(r) : to.whole(r));
    });
    if (weight.is_cut()) exchange_.gather(to.parts(), weight.columns(), rows, /*adds=*/false, to.whole());
  }
  void rope_store(const AttentionSpec& spec, Buffer& qkv, KvCache& cache) override {
    expect_rope_store(batch_, spec, qkv, cache);
    const auto& rows = parted(qkv, columns_of_heads(spec));
    on_each([&](std::uint32_t r) { ranks_[r]->rope_store(of_rank(spec, r), rows.part(r), kv(cache, r)); });
  }
  void attend(const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache, Buffer& out) override {
    expect_attend(batch_, spec, qkv, cache, out);
    const auto& rows = parted(qkv, columns_of_heads(spec));
    auto& to = device_cast<ShardedBuffer>(out);
    on_each([&](std::uint32_t r) { ranks_[r]->attend(of_rank(spec, r), rows.part(r), kv(cache, r), to.part(r)); });
    gather(to, columns_of_rank(spec.q_width()), num_rows_);
  }
  void act_mul(const Buffer& gate_up, Buffer& out) override {
    const auto& in = whole(gate_up);
    auto& to = made_whole(out);
    on_each([&](std::uint32_t r) { ranks_[r]->act_mul(in.whole(r), to.whole(r)); });
  }
  void add(Buffer& x, const Buffer& y) override {
    const auto& to = whole(x);
    const auto& from = whole(y);
    on_each([&](std::uint32_t r) { ranks_[r]->add(to.whole(r), from.whole(r)); });
  }
  void place(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    const auto& from = whole(x);
    const auto& to = whole(out);
    on_each([&](std::uint32_t r) { ranks_[r]->place(from.whole(r), rows, column, to.whole(r)); });
  }
  void cut(const Buffer& x, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    const auto& from = whole(x);
    auto& to = made_whole(out);
    on_each([&](std::uint32_t r) { ranks_[r]->cut(from.whole(r), rows, column, to.whole(r)); });
  }
  void gather_logits_rows(const Buffer& x, Buffer& out) override {
    const auto& from = whole(x);
    auto& to = made_whole(out);
    on_each([&](std::uint32_t r) { ranks_[r]->gather_logits_rows(from.whole(r), to.whole(r)); });
  }
  void choose(const Buffer& logits, std::uint32_t vocab) override {
    const auto& rows = whole(logits);
    on_each([&](std::uint32_t r) { ranks_[r]->choose(rows.whole(r), vocab); });
  }
  void collect(std::span<Choice> choices) override;
  void read_accumulated_scores(std::span<std::uint64_t> out) override;

  // ---- between steps
  void copy_blocks(KvCache& cache, std::span<const BlockCopy> copies) override {
    on_each([&](std::uint32_t r) { ranks_[r]->copy_blocks(kv(cache, r), copies); });
  }
  void copy_rows(KvCache& cache, std::span<const RowCopy> copies) override {
    on_each([&](std::uint32_t r) { ranks_[r]->copy_rows(kv(cache, r), copies); });
  }
  void poison_block(KvCache& cache, BlockId block) override {
    on_each([&](std::uint32_t r) { ranks_[r]->poison_block(kv(cache, r), block); });
  }
  void read_block(const KvCache& cache, BlockId block, std::span<std::byte> out) override;
  void write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override;
  void copy_open_group(KvCache& cache, std::uint32_t from, std::uint32_t to) override {
    on_each([&](std::uint32_t r) { ranks_[r]->copy_open_group(kv(cache, r), from, to); });
  }
  void read_tail(const KvCache& cache, BlockId block, std::span<std::byte> out) override {
    ranks_.front()->read_tail(kv(cache, 0), block, out);
  }
  void write_tail(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    ranks_.front()->write_tail(kv(cache, 0), block, bytes);
  }
  void read(const Buffer& buffer, std::uint32_t first_row, std::uint32_t num_rows, std::span<float> out) override {
    ranks_.front()->read(whole(buffer).whole(0), first_row, num_rows, out);
  }
  void write(std::span<const float> rows, Buffer& buffer) override {
    auto& to = device_cast<ShardedBuffer>(buffer);
    to.is_now_whole();
    on_each([&](std::uint32_t r) { ranks_[r]->write(rows, to.whole(r)); });
  }

  // ---- fused
  void norm_qkv_rope_store(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& qkv,
                           KvCache& cache) override;
  void norm_gate_up(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& gate_up, Buffer& out) override;
  void project_add(const Buffer& y, const Weight& w, Buffer& scratch, Buffer& x) override;

 private:
  std::uint32_t num_ranks() const { return static_cast<std::uint32_t>(devices_.size()); }
  void on_each(const auto& body) const {
    for (std::uint32_t r = 0; r < num_ranks(); ++r) body(r);
  }
  template <typename Made>
  OfRanks<Made> of_ranks(const auto& make) const {
    OfRanks<Made> made;
    on_each([&](std::uint32_t r) { made.push_back(make(r)); });
    return made;
  }
  static std::vector<Device*> pointers(const std::vector<std::unique_ptr<Device>>& devices) {
    std::vector<Device*> out;
    for (const auto& device : devices) out.push_back(device.get());
    return out;
  }

  static const Vector& vector(const Vector& all, std::uint32_t r) {
    return device_cast<const ShardedVector>(all).of(r);
  }
  static KvCache& kv(const KvCache& all, std::uint32_t r) { return device_cast<const ShardedCache>(all).of(r); }
  static bool is_of(const Weight& w, std::initializer_list<std::uint32_t> outputs) {
    const auto& weight = device_cast<const ShardedWeight>(w);
    return weight.is_cut() && std::ranges::equal(weight.outputs(), outputs);
  }

  // Columns of one matrix, or of q, k and v.
  Columns columns_of_rank(std::uint32_t width) const { return columns_of({{width}}, num_ranks()); }
  Columns columns_of_heads(const AttentionSpec& spec) const {
    return columns_of({{spec.q_width(), spec.kv_width(), spec.kv_width()}}, num_ranks());
  }
  AttentionSpec of_rank(const AttentionSpec& spec, std::uint32_t r) const {
    AttentionSpec share = share_of(spec, num_ranks());
    if (spec.q_norm != nullptr) share.q_norm = &vector(*spec.q_norm, r);
    if (spec.k_norm != nullptr) share.k_norm = &vector(*spec.k_norm, r);
    if (spec.rope != nullptr) share.rope = &device_cast<const ShardedRope>(*spec.rope).of(r);
    return share;
  }

  // A buffer is the same to whoever looks at it, in whatever form it lies: hence what is const to them.
  ShardedBuffer& whole(const Buffer& buffer) {
    auto& all = const_cast<ShardedBuffer&>(device_cast<const ShardedBuffer>(buffer));
    if (all.is_parted()) gather(all, Columns(all.columns()), num_rows_);
    return all;
  }
  // To be written as a whole.
  static ShardedBuffer& made_whole(Buffer& buffer) {
    auto& all = device_cast<ShardedBuffer>(buffer);
    all.is_now_whole();
    return all;
  }
  void gather(ShardedBuffer& buffer, const Columns& columns, std::uint32_t rows) {
    exchange_.gather(buffer.parts(), columns, rows, /*adds=*/false, buffer.whole());
    buffer.is_now_whole();
  }
  ShardedBuffer& parted(const Buffer& buffer, const Columns& columns);

  const std::unique_ptr<Rendezvous> rendezvous_;
  std::vector<std::unique_ptr<Ops>> ranks_;  // they own the devices
  const std::vector<Device*> devices_;
  Exchange exchange_;
  Batch batch_;
  std::vector<Choice> others_choices_;
  std::vector<std::uint64_t> others_accumulated_scores_;
  std::vector<std::byte> block_;  // of a rank
};

std::unique_ptr<Weight> ShardedOps::pack(std::span<const HostMatrix> matrices,
                                         std::span<const std::span<const float>> biases, Quantize quantize) {
  auto packed = std::make_shared<const PackedForRanks>(pack_for_ranks(matrices, biases, quantize, num_ranks()));
  return adopt(packed->shape, packed->bytes, packed);
}

std::unique_ptr<Weight> ShardedOps::adopt(const WeightShape& shape, std::span<const std::byte> packed,
                                          std::shared_ptr<const void> owner) {
  const std::optional<PackedParts> parts = parts_of(shape, packed, num_ranks());
  if (!parts) return {};
  auto ranks =
      of_ranks<Weight>([&](std::uint32_t r) { return ranks_[r]->adopt(parts->of_rank, parts->ranks[r], owner); });
  for (std::uint32_t r = 0; r < num_ranks() && parts->head.is_cut(); ++r) {
    device_cast<DeviceWeight>(*ranks[r]).begins_at(r * parts->of_rank.n);
  }
  return std::make_unique<ShardedWeight>(shape, parts->head, std::move(ranks), packed, std::move(owner));
}

void ShardedOps::norm_qkv_rope_store(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& qkv,
                                     KvCache& cache) {
  const AttentionSpec& spec = layer.attention;
  if (!is_of(*layer.qkv, {spec.q_width(), spec.kv_width(), spec.kv_width()})) {
    return Ops::norm_qkv_rope_store(layer, x, scratch, qkv, cache);
  }
  const auto& in = whole(x);
  auto& normed = made_whole(scratch);
  auto& rows = device_cast<ShardedBuffer>(qkv);
  on_each([&](std::uint32_t r) {
    LayerSpec share = layer;
    share.attention = of_rank(spec, r);
    share.input_norm = &vector(*layer.input_norm, r);
    share.qkv = &device_cast<const ShardedWeight>(*layer.qkv).of(r);
    ranks_[r]->norm_qkv_rope_store(share, in.whole(r), normed.whole(r), rows.part(r), kv(cache, r));
  });
  rows.is_now_parted(columns_of_heads(spec));
}

void ShardedOps::norm_gate_up(const LayerSpec& layer, const Buffer& x, Buffer& scratch, Buffer& gate_up, Buffer& out) {
  if (!is_of(*layer.gate_up, {out.width(), out.width()})) return Ops::norm_gate_up(layer, x, scratch, gate_up, out);
  const auto& in = whole(x);
  auto& normed = made_whole(scratch);
  const auto& both = made_whole(gate_up);
  auto& to = device_cast<ShardedBuffer>(out);
  on_each([&](std::uint32_t r) {
    LayerSpec share = layer;
    share.post_norm = &vector(*layer.post_norm, r);
    share.gate_up = &device_cast<const ShardedWeight>(*layer.gate_up).of(r);
    ranks_[r]->norm_gate_up(share, in.whole(r), normed.whole(r), both.part(r), to.part(r));
  });
  gather(to, columns_of_rank(out.width()), num_rows_);
}

void ShardedOps::project_add(const Buffer& y, const Weight& w, Buffer& scratch, Buffer& x) {
  if (!device_cast<const ShardedWeight>(w).is_cut()) return Ops::project_add(y, w, scratch, x);
  expect_linear(y, w, num_rows_, scratch);
  expect_add(x, scratch, num_rows_);
  const auto& weight = device_cast<const ShardedWeight>(w);
  const auto& in = whole(y);
  const auto& products = made_whole(scratch);
  const auto& to = whole(x);
  on_each([&](std::uint32_t r) { ranks_[r]->linear(in.whole(r), weight.of(r), num_rows_, products.part(r)); });
  exchange_.gather(products.parts(), weight.columns(), num_rows_, /*adds=*/true, to.whole());
}

// Of rows that lie whole on every rank it takes its columns.
ShardedBuffer& ShardedOps::parted(const Buffer& buffer, const Columns& columns) {
  auto& all = const_cast<ShardedBuffer&>(device_cast<const ShardedBuffer>(buffer));
  if (all.is_parted()) return all;
  on_each([&](std::uint32_t r) {
    std::uint32_t first = 0;
    for (const std::uint32_t width : columns.of) {
      if (width == 0) continue;
      CopyRows::Args args;
      args.x = all.whole()[r];
      args.x_width = all.width();
      args.x_column = gathered_column(columns, num_ranks(), r, first);
      args.width = width;
      args.out = device_cast<DeviceBuffer>(all.part(r)).data();
      args.out_width = columns.width();
      args.out_column = first;
      devices_[r]->start(devices_[r]->kernels().copy_rows, {num_rows_, pieces_of(width, CopyRows::kThreads)}, args);
      first += width;
    }
  });
  all.is_now_parted(columns);
  return all;
}

// All ranks have the same logits: another word of one of them would be our bug.
void ShardedOps::collect(std::span<Choice> choices) {
  ranks_.front()->collect(choices);
  others_choices_.resize(choices.size());
  for (std::uint32_t r = 1; r < num_ranks(); ++r) {
    ranks_[r]->collect(others_choices_);
    for (std::size_t i = 0; i < choices.size(); ++i) CHECK_EQ(others_choices_[i].token, choices[i].token);
  }
}

void ShardedOps::read_accumulated_scores(std::span<std::uint64_t> out) {
  ranks_.front()->read_accumulated_scores(out);
  others_accumulated_scores_.resize(out.size());
  for (std::uint32_t r = 1; r < num_ranks(); ++r) {
    ranks_[r]->read_accumulated_scores(others_accumulated_scores_);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += others_accumulated_scores_[i];
  }
}

void ShardedOps::read_block(const KvCache& cache, BlockId block, std::span<std::byte> out) {
  const auto& all = device_cast<const ShardedCache>(cache);
  CHECK_EQ(out.size(), all.block_bytes());
  for (std::uint32_t r = 0; r < num_ranks(); ++r) {
    block_.resize(all.of(r).block_bytes());
    ranks_[r]->read_block(all.of(r), block, block_);
    for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
      std::memcpy(out.data() + (std::size_t{layer} * num_ranks() + r) * all.layer_bytes(),
                  block_.data() + layer * all.layer_bytes(), all.layer_bytes());
    }
  }
  read_tail(cache, block, out.last(all.shape().tail_bytes));
}

void ShardedOps::write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) {
  const auto& all = device_cast<const ShardedCache>(cache);
  CHECK_EQ(bytes.size(), all.block_bytes());
  for (std::uint32_t r = 0; r < num_ranks(); ++r) {
    block_.assign(all.of(r).block_bytes(), std::byte{0});
    for (std::uint32_t layer = 0; layer < all.shape().all_layers(); ++layer) {
      std::memcpy(block_.data() + layer * all.layer_bytes(),
                  bytes.data() + (std::size_t{layer} * num_ranks() + r) * all.layer_bytes(), all.layer_bytes());
    }
    ranks_[r]->write_block(all.of(r), block, block_);
  }
  write_tail(cache, block, bytes.last(all.shape().tail_bytes));
}

}  // namespace

std::unique_ptr<Ops> make_sharded_ops(Ranks ranks, const GpuOptions& options, const ExchangeOptions& exchange,
                                      std::unique_ptr<Nccl> library) {
  return std::make_unique<ShardedOps>(std::move(ranks), options, exchange, std::move(library));
}

}  // namespace quire::gpu
