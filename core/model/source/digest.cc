#include "core/model/source/digest.h"

#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace quire::model {
namespace {

constexpr std::uint64_t kSecret[] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu,
                                     0xd6e8feb86659fd93u};
constexpr std::size_t kLanes = 4;
constexpr std::size_t kStrideBytes = kLanes * 16;

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t word(const std::byte* bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// Each lane takes 16 bytes. Adding (a ^ rotl(b)) to the folded product keeps one factor's bits if the other is zero.
void take_stride(std::array<std::uint64_t, kLanes>& lanes, const std::byte* bytes) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t a = word(bytes + 16 * lane) ^ kSecret[lane];
    const std::uint64_t b = word(bytes + 16 * lane + 8) ^ lanes[lane];
    lanes[lane] = fold(a, b) + (a ^ std::rotl(b, 29));
  }
}

}  // namespace

std::uint64_t hash_bytes(FileBytes bytes, std::uint64_t seed) {
  std::array<std::uint64_t, kLanes> lanes{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = seed + kSecret[lane];
  std::size_t at = 0;
  for (; bytes.size() - at >= kStrideBytes; at += kStrideBytes) take_stride(lanes, bytes.data() + at);
  std::array<std::byte, kStrideBytes> rest{};
  if (at < bytes.size()) std::memcpy(rest.data(), bytes.data() + at, bytes.size() - at);
  take_stride(lanes, rest.data());

  std::uint64_t hash = fold(bytes.size() ^ kSecret[1], seed ^ kSecret[0]);
  for (std::size_t lane = 0; lane < kLanes; ++lane) hash = fold(hash ^ lanes[lane], kSecret[lane]) + lanes[lane];
  return fold(hash ^ kSecret[2], kSecret[3]);
}

std::uint64_t tensor_digest(const Tensor& tensor) {
  std::string head = tensor.name + "\n" + tensor.dtype + "\n" + shape_text(tensor.shape);
  for (const float factor : tensor.factors) head += "\n" + std::to_string(std::bit_cast<std::uint32_t>(factor));
  if (tensor.matrix != nullptr) head += "\n" + tensor.matrix->settings();
  std::uint64_t digest = hash_bytes(std::as_bytes(std::span(head)), 0);
  const std::vector<FileBytes> parts = tensor.parts();
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) digest = hash_bytes(*part, digest);
  return digest;
}

std::uint64_t checkpoint_digest(const Checkpoint& checkpoint) {
  std::uint64_t digest = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) digest += tensor_digest(tensor);
  return digest;
}

}  // namespace quire::model
