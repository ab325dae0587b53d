// One linear layer on the simulated device, by any of its kernels, whatever the ops would choose.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gpu/kernels/linear_table.h"
#include "gpu/linear_layers.h"
#include "gpu/pack.h"
#include "gpu/runtime/simulated_device.h"
#include "gpu/tensors.h"
#include "tests/core/cpu/rig.h"

namespace quire::gpu {

// The kernels that a layer may go through, whatever the ops would choose.
struct LinearWay {
  LinearKernel kernel;
  std::uint32_t row_tiles = 0;
  std::uint32_t tiles = 0;
};
inline constexpr LinearWay kLinearWays[] = {{LinearKernel::kSplit, 1, 1}, {LinearKernel::kSplit, 1, 2},
                                            {LinearKernel::kSplit, 2, 1}, {LinearKernel::kSplit, 2, 2},
                                            {LinearKernel::kSplit, 4, 2}, {LinearKernel::kWide}};

// start(entries) with those of a format.
template <typename Start>
void with_entries(const LinearTable& kernels, backend::Format format, const Start& start) {
  using backend::BlockType;
  using backend::Format;
  if (format == Format::kInt8) return start(kernels.int8);
  if (format == Format::kFp8) return start(kernels.fp8);
  if (format == Format::kInt4) return start(kernels.int4);
  if (format == Format::kW8A8 || format == Format::kW8A8PerRow) return start(kernels.w8a8);
  if (format == Format::kW4A8) return start(kernels.w4a8);
  if (!format.is_blocks()) return start(kernels.bf16);
  switch (format.blocks) {
    case BlockType::kQ4_0:
      return start(kernels.blocks.q4_0);
    case BlockType::kQ4_1:
      return start(kernels.blocks.q4_1);
    case BlockType::kQ5_0:
      return start(kernels.blocks.q5_0);
    case BlockType::kQ5_1:
      return start(kernels.blocks.q5_1);
    case BlockType::kQ8_0:
      return start(kernels.blocks.q8_0);
    case BlockType::kQ2_K:
      return start(kernels.blocks.q2_k);
    case BlockType::kQ3_K:
      return start(kernels.blocks.q3_k);
    case BlockType::kQ4_K:
      return start(kernels.blocks.q4_k);
    case BlockType::kQ5_K:
      return start(kernels.blocks.q5_k);
    case BlockType::kQ6_K:
      return start(kernels.blocks.q6_k);
    case BlockType::kIQ4_NL:
      return start(kernels.blocks.iq4_nl);
    case BlockType::kIQ4_XS:
      return start(kernels.blocks.iq4_xs);
    case BlockType::kMXFP4:
      return start(kernels.blocks.mxfp4);
    case BlockType::kNVFP4:
      return start(kernels.blocks.nvfp4);
    case BlockType::kFp8G32:
      return start(kernels.blocks.fp8_g32);
    case BlockType::kFp8G64:
    case BlockType::kFp8G128:
      return start(kernels.blocks.fp8_g64);
    default:  // multiplied in f32 alone
      return;
  }
}

// A layer's product by one of them.
class LinearBench {
 public:
  // Rows and biases of its own.
  LinearBench(const cpu::test::Matrix& w, std::optional<backend::Format> quantize, std::uint32_t rows)
      : device_(make_simulated_device(rows)), rows_(rows) {
    cpu::test::Random random(w.n + w.k);
    const std::uint32_t n = w.n;
    const std::uint32_t k = w.k;
    const backend::HostMatrix view = w.view();
    const std::vector<float> bias = random.floats(n);
    const std::span<const float> biases(bias);
    packed_ = gpu::pack({&view, 1}, {&biases, 1}, quantize);
    weight_ = std::make_unique<DeviceWeight>(*device_, packed_.shape, packed_.bytes, nullptr);
    input_ = random.floats(std::size_t{rows} * k);
    bias_ = bias;
    x_ = uploaded(input_);
    before_ = random.floats(std::size_t{rows} * n);
    prepared_ = DeviceMemory(*device_, std::size_t{round_up(rows, 8)} * num_steps(k) * kStepInputs * 2, "rows");
    scales_ = DeviceMemory(*device_, std::size_t{rows} * num_slices(k) * sizeof(float), "scales");
  }

  std::vector<float> run(const LinearWay& way, Finish finish) {
    const DeviceMemory out = uploaded(before_);
    const WeightView& w = weight_->view();
    const LinearTable& kernels = device_->kernels().linear;
    const RowsToPut rows{x_.as<const float>(), nullptr, 0.0f, w.k};
    if (w.format.is_blocks() && in_integers(w.format)) {
      device_->start(kernels.put_for_blocks, {rows_, PutForBlocks::pieces(w.k)}, {rows, prepared_.as<std::byte>()});
    } else if (in_integers(w.format)) {
      device_->start(
          kernels.put_in_integers, {rows_, PutInIntegers::pieces(w.k)},
          {rows, w.format == backend::Format::kW8A8PerRow, prepared_.as<std::int8_t>(), scales_.as<float>()});
    } else {
      device_->start(kernels.put_in_bf16, {rows_, PutInBf16::pieces(w.k)}, {rows, prepared_.as<std::uint16_t>()});
    }
    const LinearArgs args{
        prepared_.as<const std::byte>(),        scales_.as<const float>(), rows_, w, finish, out.as<float>(),
        finish == Finish::kGate ? w.n / 2 : w.n};
    const std::uint32_t pairs = pieces_of(num_tiles(w.n), kPairTiles);
    const auto start = [&](const auto& entries) {
      if (way.kernel == LinearKernel::kWide) {
        const LinearShape shape = many_rows(w.format);
        return device_->start(entries.wide, {pieces_of(rows_, shape.rows()), pieces_of(pairs, shape.pairs)}, args);
      }
      const Index blocks{pieces_of(rows_, way.row_tiles * kTileRows), way.tiles == 2 ? pairs : num_tiles(w.n)};
      if (way.row_tiles == 1 && way.tiles == 1) return device_->start(entries.split_1_1, blocks, args);
      if (way.row_tiles == 1) return device_->start(entries.split_1_2, blocks, args);
      if (way.row_tiles == 2 && way.tiles == 1) return device_->start(entries.split_2_1, blocks, args);
      if (way.row_tiles == 2) return device_->start(entries.split_2_2, blocks, args);
      device_->start(entries.split_4_2, blocks, args);
    };
    with_entries(kernels, w.format, start);
    std::vector<float> values(std::size_t{rows_} * w.n / (finish == Finish::kGate ? 2 : 1));
    device_->download(values.data(), out.data(), values.size() * sizeof(float));
    return values;
  }
  const std::vector<float>& input() const { return input_; }
  const std::vector<float>& bias() const { return bias_; }
  const std::vector<float>& before() const { return before_; }

 private:
  DeviceMemory uploaded(const std::vector<float>& values) {
    DeviceMemory memory(*device_, values.size() * sizeof(float), "values");
    device_->upload(memory.data(), values.data(), values.size() * sizeof(float));
    return memory;
  }

  std::unique_ptr<Device> device_;
  std::uint32_t rows_;
  Packed packed_;
  std::unique_ptr<DeviceWeight> weight_;
  std::vector<float> input_;
  std::vector<float> bias_;
  std::vector<float> before_;
  DeviceMemory x_, prepared_, scales_;
};

}  // namespace quire::gpu
