#include "core/model/source/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace quire::model {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

class FileDescriptor {
 public:
  // O_NONBLOCK: opening a pipe would wait for its writer. It has no effect on regular files.
  explicit FileDescriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Error unreadable(const std::string& what) { return {Code::kInternal, what, "", 0}; }

void* map_small(int fd, std::size_t bytes) { return ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0); }

// Maps the file at a huge-page boundary inside a larger reserved address range and unmaps the rest of the range.
void* map_huge(int fd, std::size_t bytes) {
  const std::size_t reserved = bytes + kHugePage;
  void* const room = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return MAP_FAILED;
  auto* const first = static_cast<std::byte*>(room);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(first) % kHugePage;
  void* const address = ::mmap(first + before, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    ::munmap(room, reserved);
    errno = error;
    return MAP_FAILED;
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = before + (bytes + page - 1) / page * page;
  if (before > 0) ::munmap(room, before);
  if (end < reserved) ::munmap(first + end, reserved - end);
  ::madvise(address, bytes, MADV_HUGEPAGE);  // only a hint: a refusal costs speed
  return address;
}

}  // namespace

std::string system_error_text(int error) { return std::generic_category().message(error); }

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path, Pages pages) {
  const FileDescriptor file(path);
  if (file.get() < 0) {
    const int error = errno;
    return Error{error == ENOENT ? Code::kNotFound : Code::kInternal,
                 "cannot open " + path + ": " + system_error_text(error) + "; make it readable for this user", "", 0};
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return unreadable("cannot read " + path + ": " + system_error_text(errno));
  if (!S_ISREG(status.st_mode)) return unreadable(path + " is not a regular file");

  std::unique_ptr<MappedFile> mapped(new MappedFile());
  const auto size = static_cast<std::size_t>(status.st_size);
  mapped->stamp_ = {size, std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
  if (size == 0) return mapped;
  void* const address = pages == Pages::kHuge ? map_huge(file.get(), size) : map_small(file.get(), size);
  if (address == MAP_FAILED) {
    return unreadable("cannot map " + path + " (" + std::to_string(size) + " bytes): " + system_error_text(errno));
  }
  mapped->bytes_ = {static_cast<const std::byte*>(address), size};
  return mapped;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace quire::model
