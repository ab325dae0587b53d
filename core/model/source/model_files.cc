#include "core/model/source/model_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>

#include "core/base/start_error.h"
#include "core/model/source/other_formats.h"
#include "core/model/source/safetensors.h"

namespace quire::model {
namespace {

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

bool is_inside(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash == name.npos ? is_plain_name(name)
                            : is_plain_name(name.substr(0, slash)) && is_plain_name(name.substr(slash + 1));
}

class DirectoryFiles final : public ModelFiles {
 public:
  explicit DirectoryFiles(const std::string& path) : path_(path) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    std::error_code error;
    if (!std::filesystem::is_directory(path_, error)) throw StartError("model " + explain_path(path_));
  }

  std::optional<FileBytes> find(std::string_view name) const override {
    if (!is_inside(name)) return std::nullopt;
    if (const auto known = files_.find(name); known != files_.end()) return known->second->bytes();
    const std::string path = describe(name);
    Result<std::unique_ptr<MappedFile>> mapped = MappedFile::open(path);
    if (!mapped && mapped.error().code == Code::kNotFound) return std::nullopt;
    if (!mapped) throw StartError(mapped.error().message);
    if (const auto other = explain_bytes((*mapped)->bytes())) throw StartError(path + " " + *other);
    return files_.emplace(name, *std::move(mapped)).first->second->bytes();
  }

  std::optional<FileStamp> stamp(std::string_view name) const override {
    if (!find(name)) return std::nullopt;
    return files_.find(name)->second->stamp();
  }

  std::string describe(std::string_view name) const override { return path_ + "/" + std::string(name); }

  std::string explain_missing(std::string_view name) const override {
    const std::string known = explain_directory(path_, name);
    return known.empty() ? known : path_ + " " + known;
  }

  void release(FileBytes bytes) const override { release_pages(bytes); }

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

void release_pages(FileBytes bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  // Only a hint: a refusal costs memory, not correctness.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::optional<NamedTensors> ModelFiles::tensors() const { return std::nullopt; }

void ModelFiles::fit(ModelSpec&) const {}

std::unique_ptr<ModelFiles> ModelFiles::directory(const std::string& path) {
  return std::make_unique<DirectoryFiles>(path);
}

std::unique_ptr<ModelFiles> ModelFiles::memory(std::span<const std::pair<std::string_view, FileBytes>> files) {
  return std::make_unique<MemoryFiles>(files);
}

FileBytes ModelFiles::require(std::string_view name) const {
  if (const std::optional<FileBytes> bytes = find(name)) return *bytes;
  const std::string known = explain_missing(name);
  throw StartError(describe(name) + " is missing" + (known.empty() ? "; a model directory needs it" : ": " + known));
}

}  // namespace quire::model
