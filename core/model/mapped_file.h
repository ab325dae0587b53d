// One regular file, mapped read-only for as long as it lives.
// Shape   bytes() begin on a page; with Pages::kHuge on a huge page, and huge pages are asked for. They come where the file
//         system keeps files in memory in pieces of that size (ext4 on Linux 6.18 does); elsewhere they are small.
// Owner   the caller; the bytes live exactly as long.
// Thread  made by one; its bytes may be read by any.
// Fails   open(): kNotFound where there is no such file, kInternal with the reason where it cannot be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/result.h"

namespace quire::model {

using FileBytes = std::span<const std::byte>;

// What tells one writing of a file from the next without reading it.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
};

class MappedFile {
 public:
  enum class Pages { kSmall, kHuge };

  static Result<std::unique_ptr<MappedFile>> open(const std::string& path, Pages pages = Pages::kSmall);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  FileBytes bytes() const { return bytes_; }
  const FileStamp& stamp() const { return stamp_; }

 private:
  MappedFile() = default;

  FileStamp stamp_;
  FileBytes bytes_;  // an empty file has no mapping
};

// "No such file or directory"
std::string system_error_text(int error);

}  // namespace quire::model
