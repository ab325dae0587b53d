#include "core/cpu/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/start_error.h"

namespace quire::cpu {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Memory::Memory(std::size_t bytes, const char* what) : bytes_(bytes) {
  if (bytes == 0) return;
  // A size that does not fit into the address space cannot be rounded up either.
  const bool absurd = bytes > SIZE_MAX / 4;
  if (!absurd && bytes < kHugePage) {
    data_ = static_cast<std::byte*>(std::aligned_alloc(kLine, round_up(bytes, kLine)));
    if (data_ != nullptr) std::memset(data_, 0, bytes);
  } else if (!absurd) {
    mapping_bytes_ = round_up(bytes, kHugePage) + kHugePage;
    void* mapping = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping != MAP_FAILED) {
      mapping_ = mapping;
      const auto start = reinterpret_cast<std::uintptr_t>(mapping);
      data_ = static_cast<std::byte*>(mapping) + (round_up(start, kHugePage) - start);
      madvise(data_, round_up(bytes, kHugePage), MADV_HUGEPAGE);  // advice; without huge pages it is only slower
    }
  }
  if (data_ == nullptr) {
    throw StartError("out of memory: " + std::to_string(bytes) + " bytes needed for " + what);
  }
}

Memory::~Memory() {
  if (mapping_ != nullptr) {
    munmap(mapping_, mapping_bytes_);
  } else {
    std::free(data_);
  }
}

}  // namespace quire::cpu
