// List of kernel launches with their grids and arguments, in order. Two lists are equal if all of that is, byte for
// byte: they then do the same to the same memory.
// Shape   arguments are copied; the memory that they point to is not.
// Owner   the recorder. A list that is reused from step to step allocates nothing.
// Thread  one.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "gpu/kernels/table.h"

#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define QUIRE_CLEAR_PADDING(value) __builtin_clear_padding(&(value))
#endif
#endif

namespace quire::gpu {

// Without it (clang 16) equal arguments may differ in their padding, and such a step is captured more often.
#ifdef QUIRE_CLEAR_PADDING
inline constexpr bool kClearsPadding = true;
#else
#define QUIRE_CLEAR_PADDING(value)
inline constexpr bool kClearsPadding = false;
#endif

struct Launch {
  const void* code = nullptr;
  Index grid{};
  unsigned threads = 0;
  std::size_t shared_bytes = 0;
  const void* args = nullptr;
  std::size_t args_bytes = 0;
  bool meets_peers = false;
};

class LaunchList {
 public:
  template <typename Args>
  void add(const Launch& launch, Args args) {
    static_assert(std::is_trivially_copyable_v<Args> && alignof(Args) <= kBoundary);
    QUIRE_CLEAR_PADDING(args);
    const std::size_t place = (args_.size() + kBoundary - 1) / kBoundary * kBoundary;
    args_.resize(place + sizeof(Args));
    std::memcpy(args_.data() + place, &args, sizeof(Args));
    items_.push_back({launch.code, launch.grid.x, launch.grid.y, launch.threads, launch.shared_bytes, place,
                      sizeof(Args), launch.meets_peers});
  }
  void clear() {
    items_.clear();
    args_.clear();
  }

  std::size_t size() const { return items_.size(); }
  Launch at(std::size_t i) const {
    const Item& item = items_[i];
    return {item.code,         {item.grid_x, item.grid_y},     item.threads,
            item.shared_bytes, args_.data() + item.args_place, item.args_bytes,
            item.meets_peers};
  }
  bool operator==(const LaunchList&) const = default;

 private:
  static constexpr std::size_t kBoundary = 16;
  struct Item {
    const void* code = nullptr;
    unsigned grid_x = 0;
    unsigned grid_y = 0;
    unsigned threads = 0;
    std::size_t shared_bytes = 0;
    std::size_t args_place = 0;
    std::size_t args_bytes = 0;
    bool meets_peers = false;
    bool operator==(const Item&) const = default;
  };
  std::vector<Item> items_;
  std::vector<std::byte> args_;
};

}  // namespace quire::gpu
