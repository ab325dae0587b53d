// The parts of a saved prefix cache (cache_task.h), and a file whose bytes are hashed as they are read or written.
// Owner   a CacheTask.
// Thread  engine.
// Fails   open(): false, with errno, if the file is not there, is no regular file, or is a link. read(), write() and
//         check_hash(): false.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>

namespace quire::engine {

inline constexpr std::array<char, 8> kCacheMagic = {'q', 'u', 'i', 'r', 'e', 'K', 'V', '\0'};
inline constexpr std::uint32_t kCacheVersion = 3;
inline constexpr std::uint32_t kMaxModeBytes = 1 << 16;
inline constexpr std::uint32_t kMaxCacheGroups = 32;

struct CacheHeader {
  std::array<char, 8> magic = kCacheMagic;
  std::uint32_t version = kCacheVersion;
  std::uint32_t block_tokens = 0;
  std::uint64_t block_bytes = 0;
  std::uint32_t mode_bytes = 0;
  std::uint32_t num_groups = 0;
};

struct SavedGroup {
  std::uint32_t kind = 0;
  std::uint32_t tokens = 0;
  friend bool operator==(const SavedGroup&, const SavedGroup&) = default;
};

// Head of an entry; the entry's tokens and the bytes of its blocks follow. The end is a head with id 0 and the number
// of entries as parent.
struct EntryHead {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::uint64_t namespace_high = 0;
  std::uint64_t namespace_low = 0;
  std::uint32_t num_tokens = 0;
  std::uint32_t slots = 0;  // bit g: there is a block of group g
};

class HashedFile {
 public:
  enum class For { kReading, kWriting };
  // A new file is readable by its owner only, because it contains prompts. A symbolic link is not followed.
  HashedFile(const std::string& path, For use);
  ~HashedFile() { close(); }
  HashedFile(const HashedFile&) = delete;
  HashedFile& operator=(const HashedFile&) = delete;

  bool open() const { return file_ != nullptr; }
  std::uint64_t num_bytes() const { return num_bytes_; }

  bool write(std::span<const std::byte> bytes);
  bool read(std::span<std::byte> bytes);
  // Writes the hash of all bytes since the last hash. Bytes must be read in the pieces in which they were written.
  bool write_hash();
  bool check_hash();
  bool at_end() { return std::fgetc(file_) == EOF; }
  bool flush() { return std::fflush(file_) == 0; }
  void close() {
    if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
  }

 private:
  void take(std::span<const std::byte> bytes);

  std::FILE* file_ = nullptr;
  std::uint64_t hash_ = 0;
  std::uint64_t num_bytes_ = 0;
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <typename T>
std::span<std::byte> room_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace quire::engine
