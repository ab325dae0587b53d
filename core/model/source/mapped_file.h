// One regular file, mapped read-only for the lifetime of the object.
// Shape   bytes() begin at a page; with Pages::kHuge at a huge-page boundary, and huge pages are requested. The kernel
//         gives them if the file system caches files in pieces of that size (ext4 on Linux 6.18 does); otherwise pages
//         are small.
// Owner   the caller; bytes() are valid as long as the object.
// Thread  made by one thread; any thread may read the bytes.
// Fails   open(): kNotFound if there is no such file, kInternal with the reason if it cannot be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/result.h"

namespace quire::model {

using FileBytes = std::span<const std::byte>;

// Size and modification time: distinguish two versions of a file without reading it.
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
