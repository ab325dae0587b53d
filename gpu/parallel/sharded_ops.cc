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
#include "gpu/parallel/whole_row_ops.h"

namespace quire::gpu {
namespace {

using namespace backend;

class ShardedOps final : public WholeRowOps {
 public:
  ShardedOps(Ranks ranks, const GpuOptions& options, const CollectiveOptions& collective, std::unique_ptr<Nccl> library)
      : rendezvous_(std::move(ranks.rendezvous)),
        devices_(pointers(ranks.devices)),
        collective_(devices_, collective, rendezvous_.get(), std::move(library)) {
    CHECK_EQ(options.capture, 0u);
    for (auto& device : ranks.devices) ranks_.push_back(make_gpu_ops(std::move(device), options));
  }
  ShardedOps(const ShardedOps&) = delete;
  ShardedOps& operator=(const ShardedOps&) = delete;

  // The first word is that of one GPU, because the bits are.
  std::string description() const override {
    return ranks_.front()->description() + ", " + std::to_string(ranks_.size()) + " ranks";
  }

  // ---- made while starting
  std::unique_ptr<Weight> pack(std::span<const HostMatrix> matrices, std::span<const std::span<const float>> biases,
                               std::optional<Format> quantize) override;
  std::string layout() const override {
    return ranks_.front()->layout() + " of " + std::to_string(ranks_.size()) + " ranks/1";
  }
  bool takes(Format format) const override { return ranks_.front()->takes(format); }
  bool rounds_rows(Format format) const override { return ranks_.front()->rounds_rows(format); }
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
      collective_.make_room(std::size_t{max_rows} * width);
      parts = of_ranks<Buffer>([&](std::uint32_t r) { return ranks_[r]->make_buffer(max_rows, width / num_ranks()); });
    }
    return std::make_unique<ShardedBuffer>(std::move(whole), std::move(parts));
  }
  std::unique_ptr<KvCache> make_kv(const KvShape& shape) override {
    for (const KvLayer& layer : shape.layers) {
      const std::vector<std::string> problems = problems_of_ranks(layer.num_kv_heads, num_ranks());
      if (!problems.empty()) throw StartError(problems.front());
    }
    return std::make_unique<ShardedCache>(
        shape, of_ranks<KvCache>([&](std::uint32_t r) { return ranks_[r]->make_kv(shard_of(shape, num_ranks())); }));
  }

  // ---- one step
  std::uint32_t depth() const override { return ranks_.front()->depth(); }
  void begin(const Batch& batch) override {
    batch_ = batch;
    for (auto& rank : ranks_) rank->begin(batch);
  }
  void embed(const Weight& table, float scale, Buffer& out, std::uint32_t num_tokens) override {
    expect_embed(batch_, table, out, num_tokens);
    const auto& w = device_cast<const ShardedWeight>(table);
    auto& rows = device_cast<ShardedBuffer>(out);
    CHECK(!w.is_cut() || w.outputs().size() == 1);
    rows.is_now_whole();
    on_each([&](std::uint32_t r) { ranks_[r]->embed(w.of(r), scale, rows.whole(r), num_tokens); });
    if (w.is_cut()) collective_.sum(rows.whole(), std::size_t{batch_.num_rows()} * rows.width());
  }
  void embed_positions(const Weight& table, std::uint32_t offset, Buffer& out) override {
    expect_embed_positions(batch_, table, offset, out);
    const auto& w = device_cast<const ShardedWeight>(table);
    auto& rows = device_cast<ShardedBuffer>(out);
    CHECK(!w.is_cut() || w.outputs().size() == 1);
    rows.is_now_whole();
    on_each([&](std::uint32_t r) { ranks_[r]->embed_positions(w.of(r), offset, rows.whole(r)); });
    if (w.is_cut()) collective_.sum(rows.whole(), std::size_t{batch_.num_rows()} * rows.width());
  }
  void norm(const Buffer& x, const Norm& norm, std::uint32_t rows, Buffer& out) override {
    const auto& in = whole(x);
    auto& to = made_whole(out);
    on_each([&](std::uint32_t r) { ranks_[r]->norm(in.whole(r), of_rank(norm, r), rows, to.whole(r)); });
  }
  void norm_columns(Buffer& x, std::uint32_t column, std::uint32_t width, std::uint32_t group, const Norm& norm,
                    std::uint32_t rows) override {
    const auto& values = whole(x);
    on_each([&](std::uint32_t r) {
      ranks_[r]->norm_columns(values.whole(r), column, width, group, of_rank(norm, r), rows);
    });
  }
  void multiply(const Buffer& x, const Weight& w, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    expect_multiply(x, w, rows, column, out);
    const auto& weight = device_cast<const ShardedWeight>(w);
    const auto& in = whole(x);
    auto& to = device_cast<ShardedBuffer>(out);
    to.is_now_whole();
    if (!weight.is_cut()) {
      return on_each(
          [&](std::uint32_t r) { ranks_[r]->multiply(in.whole(r), weight.of(r), rows, column, to.whole(r)); });
    }
    CHECK_EQ(w.n(), out.width());  // several weights that are cut are one linear()
    on_each([&](std::uint32_t r) { ranks_[r]->multiply(in.whole(r), weight.of(r), rows, 0, to.part(r)); });
    collective_.gather(to.parts(), weight.columns(), rows, /*adds=*/false, to.whole());
  }
  void linear(const Buffer& x, const WeightList& weights, std::uint32_t rows, Buffer& out, const Before& before,
              const After& after) override;
  void rope_store(const AttentionSpec& spec, Buffer& qkv, KvCache& cache) override {
    expect_rope_store(batch_, spec, qkv, cache);
    norm_rows(spec, qkv);
    const auto& rows = parted(qkv, columns_of_heads(spec));
    on_each([&](std::uint32_t r) { ranks_[r]->rope_store(of_rank(spec, r), rows.part(r), kv(cache, r)); });
  }
  void attend(const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache, Buffer& out) override {
    expect_attend(batch_, spec, qkv, cache, out);
    const auto& rows = parted(qkv, columns_of_heads(spec));
    auto& to = device_cast<ShardedBuffer>(out);
    on_each([&](std::uint32_t r) { ranks_[r]->attend(of_rank(spec, r), rows.part(r), kv(cache, r), to.part(r)); });
    gather(to, columns_of_rank(spec.q_width()), batch_.num_rows());
  }
  void linear_by_expert(const Buffer& x, ExpertWeights weights, const Routes& routes, std::uint32_t rows, Buffer& out,
                        const ThenActivate* then) override;
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
  void copy_residual_group(KvCache& cache, std::uint32_t from, std::uint32_t to) override {
    on_each([&](std::uint32_t r) { ranks_[r]->copy_residual_group(kv(cache, r), from, to); });
  }
  void read(const Buffer& buffer, std::uint32_t first_row, std::uint32_t num_rows, std::span<float> out) override {
    ranks_.front()->read(whole(buffer).whole(0), first_row, num_rows, out);
  }
  void write(std::span<const float> rows, Buffer& buffer) override {
    auto& to = device_cast<ShardedBuffer>(buffer);
    to.is_now_whole();
    on_each([&](std::uint32_t r) { ranks_[r]->write(rows, to.whole(r)); });
  }

 private:
  std::uint32_t num_ranks() const { return static_cast<std::uint32_t>(devices_.size()); }
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
  // Outputs of the weights' matrices, side by side; none if a weight is not cut.
  static std::vector<std::uint32_t> cut_outputs(const WeightList& weights) {
    std::vector<std::uint32_t> outputs;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto& weight = device_cast<const ShardedWeight>(weights[i]);
      if (!weight.is_cut()) return {};
      outputs.insert(outputs.end(), weight.outputs().begin(), weight.outputs().end());
    }
    return outputs;
  }

  // Columns of a rank: of one matrix, or of q, k and v.
  Columns columns_of_rank(std::uint32_t width) const { return columns_of({{width}}, num_ranks()); }
  static std::vector<std::uint32_t> outputs_of(const AttentionSpec& spec) {
    if (!spec.stores) return {spec.q_width()};
    return {spec.q_width(), spec.kv_width(), spec.kv_width()};
  }
  Columns columns_of_heads(const AttentionSpec& spec) const { return columns_of(outputs_of(spec), num_ranks()); }
  static Norm of_rank(const Norm& norm, std::uint32_t r) {
    Norm of_rank = norm;
    if (norm) of_rank.scale = &vector(*norm.scale, r);
    if (norm.bias != nullptr) of_rank.bias = &vector(*norm.bias, r);
    return of_rank;
  }
  // Norms of whole rows are done before: norm_rows().
  static HeadNorm of_rank(const HeadNorm& heads, std::uint32_t width, std::uint32_t r) {
    if (heads.whole_row) return {};
    return {of_rank(heads.norm, r), false, heads.first + r * width};
  }
  // A rank has only some of the heads that such a norm takes: it is done while the row is whole.
  void norm_rows(const AttentionSpec& spec, Buffer& qkv) {
    const auto norm = [&](const HeadNorm& heads, std::uint32_t column, std::uint32_t width) {
      if (heads && heads.whole_row) norm_columns(qkv, column, width, width, heads.norm, batch_.num_rows());
    };
    norm(spec.q_norm, 0, spec.q_width());
    if (!spec.stores) return;
    norm(spec.k_norm, spec.q_width(), spec.kv_width());
    norm(spec.v_norm, spec.q_width() + spec.kv_width(), spec.kv_width());
  }
  static bool norms_rows(const AttentionSpec& spec) {
    return spec.q_norm.whole_row || spec.k_norm.whole_row || spec.v_norm.whole_row;
  }
  AttentionSpec of_rank(const AttentionSpec& spec, std::uint32_t r) const {
    AttentionSpec shard = shard_of(spec, num_ranks());
    shard.q_norm = of_rank(spec.q_norm, shard.q_width(), r);
    shard.k_norm = of_rank(spec.k_norm, shard.kv_width(), r);
    shard.v_norm = of_rank(spec.v_norm, shard.kv_width(), r);
    if (spec.bias)
      shard.bias = {&vector(*spec.bias.slopes, r), spec.bias.first + r * shard.num_heads, spec.bias.in_bf16};
    if (spec.sinks) shard.sinks = {&vector(*spec.sinks.scores, r), spec.sinks.first + r * shard.num_heads};
    if (spec.q_scale != nullptr) shard.q_scale = &vector(*spec.q_scale, r);
    if (spec.rope != nullptr) shard.rope = &device_cast<const ShardedRope>(*spec.rope).of(r);
    return shard;
  }

  std::vector<AttentionSpec> on_ranks(const AttentionSpec& spec) const {
    std::vector<AttentionSpec> specs;
    on_each([&](std::uint32_t r) { specs.push_back(of_rank(spec, r)); });
    return specs;
  }
  // linear() on every rank with its parts of weights that are cut; the products go to its part of `out`.
  void on_parts(const Buffer& x, const WeightList& weights, std::uint32_t rows, Buffer& out, const Before& before,
                const auto& after_of_rank) {
    const auto& in = whole(x);
    const auto& products = made_whole(out);
    on_each([&](std::uint32_t r) {
      Before shard;
      if (before.norm) shard = {of_rank(before.norm, r), &made_whole(*before.normed).whole(r)};
      const std::vector<const Weight*> parts = of_rank(weights, r);
      ranks_[r]->linear(in.whole(r), WeightList(parts), rows, products.part(r), shard, after_of_rank(r));
    });
  }
  // The rank's weights, to which a WeightList refers.
  static std::vector<const Weight*> of_rank(const WeightList& weights, std::uint32_t r) {
    std::vector<const Weight*> parts;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      parts.push_back(&device_cast<const ShardedWeight>(weights[i]).of(r));
    }
    return parts;
  }

  // Only the form of the buffer changes, not its content: hence const.
  ShardedBuffer& whole(const Buffer& buffer) override {
    auto& all = const_cast<ShardedBuffer&>(device_cast<const ShardedBuffer>(buffer));
    if (all.is_parted()) gather(all, Columns(all.columns()), batch_.num_rows());
    return all;
  }
  void gather(ShardedBuffer& buffer, const Columns& columns, std::uint32_t rows) {
    collective_.gather(buffer.parts(), columns, rows, /*adds=*/false, buffer.whole());
    buffer.is_now_whole();
  }
  ShardedBuffer& parted(const Buffer& buffer, const Columns& columns);

  const std::unique_ptr<Rendezvous> rendezvous_;
  const std::vector<Device*> devices_;
  Collective collective_;
  Batch batch_;
  std::vector<Choice> others_choices_;
  std::vector<std::uint64_t> others_accumulated_scores_;
  std::vector<std::byte> block_;  // one rank's
};

std::unique_ptr<Weight> ShardedOps::pack(std::span<const HostMatrix> matrices,
                                         std::span<const std::span<const float>> biases,
                                         std::optional<Format> quantize) {
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

// A rank has the columns of its own heads, or of its own gates and factors: what follows the product is done there.
void ShardedOps::linear(const Buffer& x, const WeightList& weights, std::uint32_t rows, Buffer& out,
                        const Before& before, const After& after) {
  expect_linear(batch_, x, weights, rows, out, before, after);
  const std::vector<std::uint32_t> outputs = cut_outputs(weights);
  const auto* store = std::get_if<ThenRopeStore>(&after);
  const auto* activate = std::get_if<ThenActivate>(&after);
  const auto* add = std::get_if<ThenAdd>(&after);
  if (outputs.empty()) return Ops::linear(x, weights, rows, out, before, after);
  if (store != nullptr && outputs == outputs_of(*store->attention) && !norms_rows(*store->attention)) {
    const std::vector<AttentionSpec> specs = on_ranks(*store->attention);
    on_parts(x, weights, rows, out, before, [&](std::uint32_t r) {
      return ThenRopeStore{&specs[r], &kv(*store->cache, r)};
    });
    return device_cast<ShardedBuffer>(out).is_now_parted(columns_of_heads(*store->attention));
  }
  if (activate != nullptr && activate->gated && outputs == std::vector(2, activate->out->width())) {
    auto& to = device_cast<ShardedBuffer>(*activate->out);
    on_parts(x, weights, rows, out, before, [&](std::uint32_t r) { return ThenActivate{&to.part(r), activate->kind}; });
    return gather(to, columns_of_rank(to.width()), rows);
  }
  const bool adds = add != nullptr && !add->norm && add->scale == 1.0f;
  const auto& to = adds ? whole(*add->x) : device_cast<ShardedBuffer>(out);
  on_parts(x, weights, rows, out, before, [](std::uint32_t) { return std::monostate(); });
  collective_.gather(device_cast<ShardedBuffer>(out).parts(), columns_of(outputs, num_ranks()), rows, adds, to.whole());
  if (!adds) finish(out, rows, after);
}

// A rank has the gates and factors of its own outputs of every expert, as of a dense layer.
void ShardedOps::linear_by_expert(const Buffer& x, ExpertWeights weights, const Routes& routes, std::uint32_t rows,
                                  Buffer& out, const ThenActivate* then) {
  expect_linear_by_expert(x, weights, routes, rows, out, then);
  const std::vector<std::uint32_t> outputs = cut_outputs(weights.front());
  const bool is_cut = !outputs.empty();
  const auto& in = whole(x);
  auto& products = made_whole(out);
  auto* const activated = then == nullptr ? nullptr : &made_whole(*then->out);
  if (is_cut && then != nullptr) CHECK(outputs == std::vector(then->gated ? 2 : 1, activated->width()));
  on_each([&](std::uint32_t r) {
    std::vector<std::vector<const Weight*>> parts;
    for (const WeightList& list : weights) parts.push_back(of_rank(list, r));
    const std::vector<WeightList> lists(parts.begin(), parts.end());
    std::optional<ThenActivate> own;
    if (then != nullptr) {
      own = *then;
      own->out = is_cut ? &activated->part(r) : &activated->whole(r);
    }
    ranks_[r]->linear_by_expert(in.whole(r), lists, routes_of(routes, r), rows,
                                is_cut ? products.part(r) : products.whole(r), own ? &*own : nullptr);
  });
  if (!is_cut) return;
  const std::uint32_t num_places = rows * routes.top_k();
  if (then != nullptr) return gather(*activated, columns_of_rank(activated->width()), num_places);
  gather(products, columns_of(outputs, num_ranks()), num_places);
}

// The buffer with each rank's columns, which it copies from whole rows if needed.
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
      devices_[r]->start(devices_[r]->kernels().copy_rows, {batch_.num_rows(), pieces_of(width, CopyRows::kThreads)},
                         args);
      first += width;
    }
  });
  all.is_now_parted(columns);
  return all;
}

// All ranks have the same logits: a different token on one of them is our bug.
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
    all.for_pieces(r, [&](std::size_t of_rank, std::size_t of_all, std::size_t bytes) {
      std::memcpy(out.data() + of_all, block_.data() + of_rank, bytes);
    });
  }
}

void ShardedOps::write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) {
  const auto& all = device_cast<const ShardedCache>(cache);
  CHECK_EQ(bytes.size(), all.block_bytes());
  for (std::uint32_t r = 0; r < num_ranks(); ++r) {
    block_.assign(all.of(r).block_bytes(), std::byte{0});
    all.for_pieces(r, [&](std::size_t of_rank, std::size_t of_all, std::size_t piece) {
      std::memcpy(block_.data() + of_rank, bytes.data() + of_all, piece);
    });
    ranks_[r]->write_block(all.of(r), block, block_);
  }
}

}  // namespace

std::unique_ptr<Ops> make_sharded_ops(Ranks ranks, const GpuOptions& options, const CollectiveOptions& collective,
                                      std::unique_ptr<Nccl> library) {
  return std::make_unique<ShardedOps>(std::move(ranks), options, collective, std::move(library));
}

}  // namespace quire::gpu
