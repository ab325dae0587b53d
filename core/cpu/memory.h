// Zeroed memory, aligned to 64 bytes; large pieces are mapped, on huge pages if the kernel has any.
// Owner   the holder; move-only.
// Fails   StartError with the bytes requested.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace quire::cpu {

class Memory {
 public:
  Memory() = default;
  // Allocates `bytes`; the error names the memory as `what`: "the KV cache".
  Memory(std::size_t bytes, const char* what);
  ~Memory();
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  float* floats() { return reinterpret_cast<float*>(data_); }
  const float* floats() const { return reinterpret_cast<const float*>(data_); }

 private:
  void swap(Memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapping_, other.mapping_);
    std::swap(mapping_bytes_, other.mapping_bytes_);
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  void* mapping_ = nullptr;  // null: from the heap
  std::size_t mapping_bytes_ = 0;
};

// Row stride in floats: 16 more than a whole number of cache lines, because rows whose length is a power of two would
// share a few sets of L1.
constexpr std::size_t row_stride(std::size_t width) { return (width + 15) / 16 * 16 + 16; }

}  // namespace quire::cpu
