#include "core/model/model_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <system_error>

#include "core/base/start_error.h"

namespace quire::model {
namespace {

std::string error_text(int error) { return std::generic_category().message(error); }

// One file, mapped read-only for as long as it lives. An empty file has no mapping.
class MappedFile {
 public:
  MappedFile(int fd, std::size_t size, const std::string& path) : size_(size) {
    if (size == 0) return;
    address_ = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address_ == MAP_FAILED) {
      const int error = errno;
      address_ = nullptr;
      throw StartError("cannot map " + path + " (" + std::to_string(size) + " bytes): " + error_text(error));
    }
  }
  ~MappedFile() {
    if (address_ != nullptr) ::munmap(address_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  FileBytes bytes() const { return {static_cast<const std::byte*>(address_), address_ == nullptr ? 0 : size_}; }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

class FileDescriptor {
 public:
  // O_NONBLOCK: opening a pipe would wait for its writer; on a regular file it means nothing.
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

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

class DirectoryFiles final : public ModelFiles {
 public:
  explicit DirectoryFiles(const std::string& path) : path_(path) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0) {
      throw StartError("model directory " + path + ": " + error_text(errno) +
                       "; give the path of a directory with config.json, model.safetensors and tokenizer.json");
    }
    if (!S_ISDIR(status.st_mode)) {
      throw StartError("model " + path + " is not a directory; give the directory that holds config.json, not a file");
    }
  }

  std::optional<FileBytes> find(std::string_view name) const override {
    if (!is_plain_name(name)) return std::nullopt;
    if (const auto known = files_.find(name); known != files_.end()) return known->second->bytes();
    const std::string path = describe(name);
    const FileDescriptor file(path);
    if (file.get() < 0) {
      if (errno == ENOENT) return std::nullopt;
      throw StartError("cannot open " + path + ": " + error_text(errno) + "; make it readable for this user");
    }
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) throw StartError("cannot read " + path + ": " + error_text(errno));
    if (!S_ISREG(status.st_mode)) throw StartError(path + " is not a regular file");
    auto mapped = std::make_unique<MappedFile>(file.get(), static_cast<std::size_t>(status.st_size), path);
    return files_.emplace(name, std::move(mapped)).first->second->bytes();
  }

  std::string describe(std::string_view name) const override { return path_ + "/" + std::string(name); }

  void release(FileBytes bytes) const override {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
    // Advice only: a refusal costs memory, not correctness.
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }

 private:
  std::string path_;
  mutable std::map<std::string, std::unique_ptr<MappedFile>, std::less<>> files_;
};

class MemoryFiles final : public ModelFiles {
 public:
  explicit MemoryFiles(std::span<const std::pair<std::string_view, FileBytes>> files)
      : files_(files.begin(), files.end()) {}

  std::optional<FileBytes> find(std::string_view name) const override {
    const auto found = files_.find(name);
    return found == files_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string describe(std::string_view name) const override { return "embedded:" + std::string(name); }
  void release(FileBytes) const override {}

 private:
  std::map<std::string_view, FileBytes> files_;
};

}  // namespace

std::unique_ptr<ModelFiles> ModelFiles::directory(const std::string& path) {
  return std::make_unique<DirectoryFiles>(path);
}

std::unique_ptr<ModelFiles> ModelFiles::memory(std::span<const std::pair<std::string_view, FileBytes>> files) {
  return std::make_unique<MemoryFiles>(files);
}

FileBytes ModelFiles::require(std::string_view name) const {
  if (const std::optional<FileBytes> bytes = find(name)) return *bytes;
  throw StartError(describe(name) + " is missing; a model directory needs it");
}

}  // namespace quire::model
