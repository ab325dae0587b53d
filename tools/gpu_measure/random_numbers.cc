#include "tools/gpu_measure/random_numbers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/base/start_error.h"

namespace quire::gpu::measure {
namespace {

// Not a power of two, so that the rows of a matrix differ.
constexpr std::size_t kLargestPiece = (std::size_t{16} << 20) + 256 * 7;
constexpr std::size_t kSmallestPiece = 4096 + 256;
// Uniform in (-0.03, 0.03), close to the spread of a trained matrix.
constexpr float kLimit = 0.03f;
constexpr std::uint32_t kScale = 0x3a003a00;  // 0.0005 as one f32, and as two bf16

class SampledToken {
 public:
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  float number() { return static_cast<float>(static_cast<std::int32_t>(next())) * (kLimit / 0x1p31f); }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15u;
};

template <typename T, typename Draw>
DeviceMemory piece_of(Device& device, std::size_t bytes, const Draw& draw) {
  SampledToken drawn;
  std::vector<T> values(bytes / sizeof(T));
  for (T& value : values) value = draw(drawn);
  DeviceMemory out(device, bytes, "random numbers");
  device.upload(out.data(), values.data(), bytes);
  return out;
}

// Bits of a small number in f16: the exponent has 3 bits fewer than in f32, the fraction 13; values below 2^-14 become
// 0.
std::uint16_t f16_of(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t size = bits & 0x7fffffffu;
  return static_cast<std::uint16_t>(size < 0x38800000u ? sign : sign | (size - 0x38000000u) >> 13);
}

// Address space that reads as zeros and occupies no memory.
class ZeroPages {
 public:
  explicit ZeroPages(std::size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw StartError("mmap: no " + std::to_string(bytes) + " bytes of address space");
  }
  ~ZeroPages() { munmap(memory_, bytes_); }
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(memory_), bytes_}; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

std::size_t piece_bytes(const Device& device) { return device.name() == "simulated" ? kSmallestPiece : kLargestPiece; }

}  // namespace

RandomNumbers::RandomNumbers(Device& device)
    : device_(device),
      f32_(piece_of<float>(device, piece_bytes(device), [](SampledToken& drawn) { return drawn.number(); })),
      bf16_(piece_of<std::uint16_t>(device, piece_bytes(device),
                                    [](SampledToken& drawn) { return bf16_of_f32(drawn.number()); })),
      f16_(piece_of<std::uint16_t>(device, piece_bytes(device),
                                   [](SampledToken& drawn) { return f16_of(drawn.number()); })),
      bytes_(piece_of<std::uint8_t>(device, piece_bytes(device), [](SampledToken& drawn) {
        return static_cast<std::uint8_t>(drawn.next() & 0xf7u);
      })) {}

void RandomNumbers::copy_piece(const DeviceMemory& piece, void* to, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  for (std::size_t done = 0; done < bytes; done += piece.bytes()) {
    device_.copy(out + done, piece.data(), std::min(piece.bytes(), bytes - done));
  }
}

void RandomNumbers::fill(void* to, std::size_t bytes, std::size_t bytes_of_number) {
  copy_piece(bytes_of_number == 4 ? f32_ : bytes_of_number == 2 ? bf16_ : bytes_, to, bytes);
}

std::unique_ptr<backend::Weight> RandomNumbers::weight(backend::Ops& ops, const backend::WeightShape& shape) {
  const PackedPlaces places = packed_places(shape);
  const auto nothing = std::make_shared<const ZeroPages>(places.end);
  auto weight = ops.adopt(shape, nothing->bytes(), nothing);
  CHECK(weight != nullptr);
  auto* at = static_cast<const DeviceWeight&>(*weight).memory();
  using Element = backend::Format::Element;
  const Element element = shape.format.element;
  const DeviceMemory& piece = element == Element::kF32    ? f32_
                              : element == Element::kF16  ? f16_
                              : element == Element::kBF16 ? bf16_
                                                          : bytes_;
  copy_piece(piece, at, places.scales);
  const std::vector<std::uint32_t> scales((places.bias - places.scales) / sizeof(std::uint32_t), kScale);
  if (!scales.empty()) device_.upload(at + places.scales, scales.data(), scales.size() * sizeof(std::uint32_t));
  copy_piece(f32_, at + places.bias, places.end - places.bias);
  return weight;
}

void RandomNumbers::fill_cache(backend::KvCache& cache) {
  const auto& all = static_cast<const DeviceCache&>(cache);
  const backend::KvType type = all.shape().type;
  const std::size_t size = type == backend::KvType::kF32 ? 4 : type == backend::KvType::kBF16 ? 2 : 1;
  fill(all.numbers(), all.numbers_bytes(), size);
  fill(all.residual_group(0), all.shape().num_residual_groups * all.residual_group_bytes(), sizeof(float));
}

void RandomNumbers::fill_cache(backend::KvCache& cache, std::byte all_alike) {
  const auto& all = static_cast<const DeviceCache&>(cache);
  device_.fill(all.numbers(), all_alike, all.numbers_bytes());
  device_.fill(all.residual_group(0), all_alike, all.shape().num_residual_groups * all.residual_group_bytes());
}

}  // namespace quire::gpu::measure
