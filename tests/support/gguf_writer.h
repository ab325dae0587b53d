// GGUF files, written field by field: the malformed ones, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::test {

inline constexpr std::uint32_t kUint32 = 4;
inline constexpr std::uint32_t kFloat = 6;
inline constexpr std::uint32_t kBool = 7;
inline constexpr std::uint32_t kString = 8;
inline constexpr std::uint32_t kArray = 9;
inline constexpr std::uint32_t kUint64 = 10;
inline constexpr std::uint32_t kInt64 = 11;

// A GGUF file, written field by field.
class GgufWriter {
 public:
  template <typename T>
  GgufWriter& put(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufWriter& text(std::string_view value) {
    put<std::uint64_t>(value.size());
    bytes += value;
    return *this;
  }
  GgufWriter& head(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    bytes += "GGUF";
    return put(version).put(tensors).put(keys);
  }
  GgufWriter& key(std::string_view name, std::uint32_t type) { return text(name).put(type); }
  GgufWriter& array(std::string_view name, std::uint32_t type, std::uint64_t count) {
    return key(name, kArray).put(type).put(count);
  }
  GgufWriter& tensor(std::string_view name, std::vector<std::uint64_t> extents, std::uint32_t type,
                     std::uint64_t offset) {
    text(name).put(static_cast<std::uint32_t>(extents.size()));
    for (const std::uint64_t extent : extents) put(extent);
    return put(type).put(offset);
  }
  GgufWriter& pad(std::size_t alignment = 32) {
    while (bytes.size() % alignment != 0) bytes += '\0';
    return *this;
  }
  GgufWriter& data(std::size_t count, char value = 7) {
    bytes.append(count, value);
    return *this;
  }

  std::string bytes;
};

}  // namespace quire::test
