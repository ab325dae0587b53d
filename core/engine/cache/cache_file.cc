#include "core/engine/cache/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/model/source/digest.h"

namespace quire::engine {

static_assert(std::endian::native == std::endian::little);

HashedFile::HashedFile(const std::string& path, For use) {
  const int flags = use == For::kReading ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
  // O_NONBLOCK, because opening a pipe or a device could block for ever; only a regular file is accepted.
  const int descriptor = ::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0) return;
  struct stat facts {};
  if (::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode)) {
    file_ = ::fdopen(descriptor, use == For::kReading ? "rb" : "wb");
  } else {
    ::close(descriptor);
    errno = EINVAL;
  }
}

bool HashedFile::write(std::span<const std::byte> bytes) {
  take(bytes);
  return std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
}

bool HashedFile::read(std::span<std::byte> bytes) {
  const bool good = std::fread(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  if (good) take(bytes);
  return good;
}

bool HashedFile::write_hash() {
  const std::uint64_t hash = std::exchange(hash_, 0);
  num_bytes_ += sizeof(hash);
  return std::fwrite(&hash, sizeof(hash), 1, file_) == 1;
}

bool HashedFile::check_hash() {
  std::uint64_t stored = 0;
  num_bytes_ += sizeof(stored);
  return std::fread(&stored, sizeof(stored), 1, file_) == 1 && stored == std::exchange(hash_, 0);
}

void HashedFile::take(std::span<const std::byte> bytes) {
  hash_ = model::hash_bytes(bytes, hash_);
  num_bytes_ += bytes.size();
}

}  // namespace quire::engine
