#include "gpu/gpu_ops.h"

#include <algorithm>
#include <numeric>

#include "core/backend/device_cast.h"
#include "core/backend/expect.h"
#include "core/base/check.h"
#include "gpu/attention.h"
#include "gpu/chooser.h"
#include "gpu/linear_layers.h"
#include "gpu/norms.h"
#include "gpu/pack.h"
#include "gpu/plain_ops.h"
#include "gpu/runtime/host_threads.h"
#include "gpu/steps.h"
#include "gpu/tensors.h"

namespace quire::gpu {
namespace {

using namespace backend;

// Every change of result bits changes the number: saved KV caches outlive the program, and the numeric mode names it.
constexpr const char* kArithmetic = "2";

class GpuOps final : public PlainOps {
 public:
  GpuOps(std::unique_ptr<Device> device, const GpuOptions& options)
      : device_(std::move(device)),
        kernels_(device_->kernels()),
        max_rows_(options.max_rows),
        most_captured_(options.capture),
        step_buffer_(*device_,
                     {max_rows_, options.num_groups, max_rows_, options.max_kept_groups, options.max_table_entries},
                     options.depth),
        captured_(*device_),
        attention_(*device_, {max_rows_, options.max_table_entries, options.num_groups, options.depth}),
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
                               std::optional<Format> quantize) override {
    auto packed = std::make_shared<const Packed>(gpu::pack(matrices, biases, quantize));
    return made(packed->shape, packed->bytes, packed);
  }
  std::string layout() const override { return DeviceWeight::kLayout; }
  std::unique_ptr<Weight> adopt(const WeightShape& shape, std::span<const std::byte> packed,
                                std::shared_ptr<const void> owner) override {
    if (packed.size() != packed_places(shape).end) return {};
    return made(shape, packed, std::move(owner));
  }
  bool takes(Format format) const override { return has_kernels(format); }
  bool rounds_rows(Format format) const override { return gpu::rounds_rows(format); }
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
    for (const auto& chooser : choosers_) chooser->make_room(width);  // the widest buffers hold logits
    return std::make_unique<DeviceBuffer>(device(), buffer_sizes_, max_rows, width);
  }
  std::unique_ptr<Routes> make_routes(std::uint32_t max_rows, std::uint32_t num_experts, std::uint32_t top_k) override {
    auto routes = std::make_unique<DeviceRoutes>(device(), max_rows, num_experts, top_k);
    linear_.reserve_routes(*routes);
    return routes;
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
    grid_rows_ = std::max(batch.num_rows(), bucket);
    grid_logits_rows_ = std::max(static_cast<std::uint32_t>(batch.logits_rows.size()), bucket);
    send_step_buffer();
    attention_.begin(
        batch, {step_buffer_.device_rows(), step_buffer_.device_tables(), step_buffer_.device_kept_groups()}, bucket);
    step_ = (step_ + 1) % choosers_.size();
    num_begun_ = std::min(num_begun_ + 1, choosers_.size());  // a step that is not collected is forgotten
    choosers_[step_]->forget();
    if (bucket == 0) return;
    records_ = true;
    device_->record(&launches_);
  }

  void embed(const Weight& table, float scale, Buffer& out, std::uint32_t num_tokens) override {
    const auto& rows = device_cast<const DeviceWeight>(table);
    if (!rows.is_part()) expect_embed(batch_, table, out, num_tokens);
    start_embed(
        rows,
        {.tokens = step_buffer_.device_tokens(), .said = previous_tokens(), .scale = scale, .num_tokens = num_tokens},
        out);
  }
  void embed_positions(const Weight& table, std::uint32_t offset, Buffer& out) override {
    const auto& rows = device_cast<const DeviceWeight>(table);
    if (!rows.is_part()) expect_embed_positions(batch_, table, offset, out);
    start_embed(rows, {.first = 0 - offset, .rows = step_buffer_.device_rows()}, out);  // first wraps around
  }

  void norm(const Buffer& x, const Norm& norm, std::uint32_t rows, Buffer& out) override {
    expect_norm(x, norm, rows, out);
    start_norm(*device_, {norm, x.width()}, device_cast<const DeviceBuffer>(x).data(), x.width(), padded(rows),
               device_cast<DeviceBuffer>(out).data());
  }
  void norm_columns(Buffer& x, std::uint32_t column, std::uint32_t width, std::uint32_t group, const Norm& norm,
                    std::uint32_t rows) override {
    expect_norm_columns(x, column, width, group, norm, rows);
    float* const first = device_cast<DeviceBuffer>(x).data() + column;
    const std::uint32_t step = norm.scale->size() == group ? 0 : group;
    start_norm(*device_, {norm, group, 0, width / group, step}, first, x.width(), padded(rows), first);
  }

  void multiply(const Buffer& x, const Weight& w, std::uint32_t rows, std::uint32_t column, Buffer& out) override {
    expect_multiply(x, w, rows, column, out);
    linear_.multiply(plain(x), padded(rows), weight_view(w), {}, device_cast<DeviceBuffer>(out).data() + column,
                     out.width());
  }

  void rope_store(const AttentionSpec& spec, Buffer& qkv, KvCache& cache) override {
    expect_rope_store(batch_, spec, qkv, cache);
    norm_heads(*device_, spec, device_cast<DeviceBuffer>(qkv).data(), qkv.width(), grid_rows_);
    attention_.rope_store(view_of(spec), spec.layer, device_cast<DeviceBuffer>(qkv).data(),
                          device_cast<DeviceCache>(cache));
  }

  void attend(const AttentionSpec& spec, const Buffer& qkv, const KvCache& cache, Buffer& out) override {
    expect_attend(batch_, spec, qkv, cache, out);
    attention_.attend(view_of(spec), spec.layer, device_cast<const DeviceBuffer>(qkv).data(),
                      device_cast<const DeviceCache>(cache), device_cast<DeviceBuffer>(out).data());
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
    copy_rows_of(x, 0, step_buffer_.device_logits_rows(), grid_logits_rows_, x.width(), out, 0);
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

  void linear(const Buffer& x, const WeightList& weights, std::uint32_t rows, Buffer& out, const Before& before,
              const After& after) override {
    expect_linear(batch_, x, weights, rows, out, before, after);
    if (weights.size() != 1 || !by_tensor_cores(weight_view(weights[0]).format)) {
      return Ops::linear(x, weights, rows, out, before, after);
    }
    const WeightView& w = weight_view(weights[0]);
    const bool norms_apart = before.norm && before.norm.kind != NormKind::kRms;
    if (norms_apart) norm(x, before.norm, rows, *before.normed);
    const RowsToPut input = norms_apart ? plain(*before.normed) : before.norm ? normed(x, before.norm) : plain(x);
    const auto* add = std::get_if<ThenAdd>(&after);
    if (add != nullptr && !add->norm) return run_linear(input, rows, w, {Finish::kAdd, add->scale}, *add->x);
    const auto* activate = std::get_if<ThenActivate>(&after);
    if (activate != nullptr && activate->gated && LinearLayers::can_gate(w)) {
      return run_linear(input, rows, w, {Finish::kGate, 1.0f, activate->kind}, *activate->out);
    }
    run_linear(input, rows, w, {}, out);
    finish(out, rows, after);
  }

  void linear_by_expert(const Buffer& x, ExpertWeights weights, const Routes& routes, std::uint32_t rows, Buffer& out,
                        const ThenActivate* then) override {
    expect_linear_by_expert(x, weights, routes, rows, out, then);
    const auto& chosen = device_cast<const DeviceRoutes>(routes);
    const bool gates = then != nullptr && then->gated && !then->clamp && LinearLayers::can_gate(weights.front());
    const LinearFinish finish = gates ? LinearFinish{Finish::kGate, 1.0f, then->kind} : LinearFinish{};
    const std::uint32_t num_rows = padded(rows);
    linear_.multiply_by_expert(plain(x), weights, chosen, num_rows, finish, gates ? *then->out : out,
                               [this] { run_recorded(); });
    if (then != nullptr && !gates) activate_by_expert(out, *then, num_rows * chosen.top_k());
  }
  void read_routes(const Routes& routes, std::uint32_t rows, std::span<std::uint32_t> experts,
                   std::span<float> weights) override {
    const auto& chosen = device_cast<const DeviceRoutes>(routes);
    CHECK_LE(rows, chosen.max_rows());
    CHECK_EQ(experts.size(), std::size_t{rows} * chosen.top_k());
    CHECK_EQ(weights.size(), experts.size());
    device().download(experts.data(), chosen.experts(), experts.size_bytes());
    device().download(weights.data(), chosen.weights(), weights.size_bytes());
  }

  void copy_blocks(KvCache& cache, std::span<const BlockCopy> copies) override {
    const auto& all = device_cast<DeviceCache>(cache);
    for (const BlockCopy& copy : copies) CHECK_LT(std::max(copy.from.value, copy.to.value), all.shape().num_blocks);
    KvCopies list;
    list.kv.numbers = all.numbers();
    list.kv.layout.block_stride = all.block_bytes();
    const auto pieces = (all.block_bytes() + CopyKvBlocks::kPieceBytes - 1) / CopyKvBlocks::kPieceBytes;
    in_lists(
        list, copies, [](const BlockCopy& copy) { return std::pair(copy.from.value, copy.to.value); },
        [&](const KvCopies& some) {
          device().start(kernels_.copy_kv_blocks, {static_cast<unsigned>(pieces), 1}, some);
        });
  }
  void copy_rows(KvCache& cache, std::span<const RowCopy> copies) override {
    const auto& all = device_cast<DeviceCache>(cache);
    CHECK(all.shape().type != KvType::kInt4);
    // Copies of a group follow each other, or are lists of their own.
    for (std::size_t first = 0, last = 0; first < copies.size(); first = last) {
      while (last < copies.size() && copies[last].group == copies[first].group) ++last;
      copy_rows_of_group(all, copies.subspan(first, last - first));
    }
  }
  void poison_block(KvCache& cache, BlockId block) override {
    const auto& all = device_cast<DeviceCache>(cache);
    CHECK_LT(block.value, all.shape().num_blocks);
    device().fill(all.block(block), std::byte{0xff}, all.block_bytes());
  }
  void read_block(const KvCache& cache, BlockId block, std::span<std::byte> out) override {
    const auto& all = device_cast<const DeviceCache>(cache);
    CHECK_LT(block.value, all.shape().num_blocks);
    CHECK_EQ(out.size(), all.block_bytes());
    device().download(out.data(), all.block(block), out.size());
  }
  void write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) override {
    const auto& all = device_cast<DeviceCache>(cache);
    CHECK_LT(block.value, all.shape().num_blocks);
    CHECK_EQ(bytes.size(), all.block_bytes());
    device().upload(all.block(block), bytes.data(), bytes.size());
  }
  void copy_residual_group(KvCache& cache, std::uint32_t from, std::uint32_t to) override {
    const auto& all = device_cast<DeviceCache>(cache);
    CHECK_LT(from, all.shape().num_residual_groups);
    CHECK_LT(to, all.shape().num_residual_groups);
    if (from != to) device().copy(all.residual_group(to), all.residual_group(from), all.residual_group_bytes());
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
  // Calls run(list) for lists of as many copies as a launch takes.
  template <typename Copy, typename Ends, typename Run>
  static void in_lists(const KvCopies& of, std::span<const Copy> copies, const Ends& ends, const Run& run) {
    for (std::size_t first = 0; first < copies.size(); first += kMostKvCopies) {
      KvCopies list = of;
      for (const Copy& copy : copies.subspan(first, std::min<std::size_t>(kMostKvCopies, copies.size() - first))) {
        const auto [from, to] = ends(copy);
        list.each[list.count++] = {from, to};
      }
      run(list);
    }
  }

  void copy_rows_of_group(const DeviceCache& cache, std::span<const RowCopy> copies) {
    for (const DeviceCache::Run& run : cache.layer_runs()) {
      const KvLayer& layer = cache.shape().layers[run.first];
      if (layer.group != copies.front().group) continue;
      in_lists(
          {.kv = cache.view(run.first), .layer_bytes = cache.view(run.first).layout.block_bytes()}, copies,
          [](const RowCopy& copy) { return std::pair(copy.from, copy.to); },
          [&](const KvCopies& list) {
            device().start(kernels_.copy_kv_rows, {run.count, layer.num_kv_heads}, list);
          });
    }
  }

  void start_embed(const DeviceWeight& rows, Embed::Args args, Buffer& out) {
    args.table = rows.view();
    args.first += rows.first_row();
    args.out = device_cast<DeviceBuffer>(out).data();
    start(kernels_.embed, {grid_rows_, pieces(rows.k(), Embed::kThreads)}, args);
  }
  Device& launcher() override { return *device_; }
  // The device, for work that is not part of a captured step: runs what was recorded so far.
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
  // Device memory with the tokens sampled from the previous step's logits rows.
  const TokenId* previous_tokens() const {
    return choosers_[(step_ + choosers_.size() - 1) % choosers_.size()]->chosen();
  }
  // True if the launches depend on nothing of the batch but its number of rows: one row per sequence, all of them
  // logits rows, no dropped groups.
  bool can_capture(const Batch& batch) const {
    return batch.sequences.size() == batch.num_rows() && batch.logits_rows.size() == batch.num_rows() &&
           batch.kept_groups.empty();
  }
  // Limited so that padded rows fit every buffer.
  std::uint32_t most_captured() const {
    return buffer_sizes_.empty() ? most_captured_ : std::min(most_captured_, *buffer_sizes_.begin());
  }
  // Rows that a kernel runs for `rows` rows of the batch or of its logits rows: those of the bucket while a step is
  // recorded. Other row counts, which some drafters have, vary from step to step: recording ends at the first of them.
  std::uint32_t padded(std::uint32_t rows) override {
    if (records_ && rows != batch_.num_rows() && rows != grid_rows_) run_recorded();
    return records_ ? grid_rows_ : rows;
  }

  // Reserves the scratch of linear layers, so that the first step allocates nothing.
  std::unique_ptr<Weight> made(const WeightShape& shape, std::span<const std::byte> packed,
                               std::shared_ptr<const void> owner) {
    run_recorded();  // a weight that is made within a step may be freed within it
    linear_.reserve(shape.format, shape.k);
    return std::make_unique<DeviceWeight>(*device_, shape, packed, std::move(owner));
  }

  static RowsToPut plain(const Buffer& x) {
    return {device_cast<const DeviceBuffer>(x).data(), nullptr, 0.0f, x.width()};
  }
  static RowsToPut normed(const Buffer& x, const Norm& norm) {
    const NormView view = view_of(norm);
    return {device_cast<const DeviceBuffer>(x).data(), view.scale, view.eps, x.width()};
  }
  void run_linear(const RowsToPut& input, std::uint32_t rows, const WeightView& w, const LinearFinish& finish,
                  Buffer& out) {
    linear_.multiply(input, padded(rows), w, finish, device_cast<DeviceBuffer>(out).data(), out.width());
  }

  void send_step_buffer() {
    const std::uint32_t num_groups = batch_.num_groups();
    step_buffer_.begin({grid_rows_, num_groups, grid_logits_rows_,
                        static_cast<std::uint32_t>(batch_.kept_groups.size()),
                        static_cast<std::uint32_t>(batch_.block_tables.size() / num_groups)});
    const std::span<std::int32_t> tokens = step_buffer_.tokens();
    std::ranges::fill(std::ranges::copy(batch_.tokens, tokens.begin()).out, tokens.end(), 0);
    for (const FedRow& fed : batch_.fed) tokens[fed.row] = Embed::fed_by(fed.logits_row);
    for (std::uint32_t group = 0; group < num_groups; ++group) fill_rows(batch_, group, step_buffer_.rows(group));
    const std::span<std::uint32_t> logits_rows = step_buffer_.logits_rows();
    for (std::uint32_t r = 0; r < logits_rows.size(); ++r) {
      logits_rows[r] = r < batch_.logits_rows.size() ? batch_.logits_rows[r].row : r;
    }
    std::ranges::copy(batch_.kept_groups, step_buffer_.kept_groups().begin());
    std::ranges::copy(batch_.block_tables, step_buffer_.tables().begin());
    step_buffer_.send();
  }

  void copy_rows_of(const Buffer& x, std::uint32_t x_column, const std::uint32_t* rows, std::uint32_t num_rows,
                    std::uint32_t width, Buffer& out, std::uint32_t out_column) {
    start(kernels_.copy_rows, {num_rows, pieces(width, CopyRows::kThreads)},
          {device_cast<const DeviceBuffer>(x).data(), x.width(), x_column, rows, width,
           device_cast<DeviceBuffer>(out).data(), out.width(), out_column});
  }

  static const WeightView& weight_view(const Weight& w) { return device_cast<const DeviceWeight>(w).view(); }
  const std::unique_ptr<Device> device_;
  const KernelTable& kernels_;
  const std::uint32_t max_rows_;
  const std::uint32_t most_captured_;
  Batch batch_;
  std::uint32_t grid_rows_ = 0;         // T of the step begun last, or its bucket
  std::uint32_t grid_logits_rows_ = 0;  // R, or its bucket
  StepBuffer step_buffer_;
  CapturedSteps captured_;
  BufferSizes buffer_sizes_;
  LaunchList launches_;  // launches of the step begun last, while it is recorded
  bool records_ = false;
  Attention attention_;
  std::vector<std::unique_ptr<Chooser>> choosers_;  // [depth] used in rotation
  std::size_t step_ = 0;                            // the chooser of the step begun last
  std::size_t num_begun_ = 0;                       // steps begun and not collected
  LinearLayers linear_;
};

}  // namespace

std::unique_ptr<Ops> make_gpu_ops(std::unique_ptr<Device> device, const GpuOptions& options) {
  return std::make_unique<GpuOps>(std::move(device), options);
}

bool takes(Format format) { return has_kernels(format); }
bool rounds_rows(Format format) { return by_tensor_cores(format) && !in_integers(format); }

std::uint64_t weight_bytes(std::uint32_t n, std::uint32_t k, backend::Format format) {
  return packed_places({n, k, format, /*has_bias=*/false}).end;
}

std::uint64_t kv_block_bytes(const backend::KvShape& shape) { return block_layout(shape).bytes; }

std::uint64_t kv_residual_group_bytes(const backend::KvShape& shape) { return residual_group_bytes(shape); }

}  // namespace quire::gpu
