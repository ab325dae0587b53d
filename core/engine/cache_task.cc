#include "core/engine/cache_task.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "core/base/log.h"
#include "core/model/numeric_mode.h"

namespace quire::engine {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'q', 'u', 'i', 'r', 'e', 'K', 'V', '\0'};
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kMaxModeBytes = 1 << 16;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t block_tokens = 0;
  std::uint64_t block_bytes = 0;
  std::uint32_t mode_bytes = 0;
  std::uint32_t reserved = 0;
};

// Before an entry's tokens and its block's bytes; an end has id 0 and the number of entries as its parent.
struct EntryHead {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::uint64_t root_high = 0;
  std::uint64_t root_low = 0;
  std::uint32_t num_tokens = 0;
  std::uint32_t reserved = 0;
};

// A file whose parts are hashed as they go by.
class HashedFile {
 public:
  enum class For { kReading, kWriting };
  // A new file is its owner's alone, prompts are in it; a link is never followed.
  HashedFile(const std::string& path, For use) {
    const int flags = use == For::kReading ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
    // A pipe or a device at that place could hold us up for good: it is not waited for, and not taken.
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
  ~HashedFile() { close(); }
  HashedFile(const HashedFile&) = delete;
  HashedFile& operator=(const HashedFile&) = delete;

  bool open() const { return file_ != nullptr; }
  std::uint64_t num_bytes() const { return num_bytes_; }

  bool write(std::span<const std::byte> bytes) {
    take(bytes);
    return std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  }
  bool read(std::span<std::byte> bytes) {
    const bool good = std::fread(bytes.data(), 1, bytes.size(), file_) == bytes.size();
    if (good) take(bytes);
    return good;
  }
  // The hash of everything since the last one.
  bool write_hash() {
    const std::uint64_t hash = std::exchange(hash_, 0);
    num_bytes_ += sizeof(hash);
    return std::fwrite(&hash, sizeof(hash), 1, file_) == 1;
  }
  bool check_hash() {
    std::uint64_t stored = 0;
    num_bytes_ += sizeof(stored);
    return std::fread(&stored, sizeof(stored), 1, file_) == 1 && stored == std::exchange(hash_, 0);
  }
  bool at_end() { return std::fgetc(file_) == EOF; }
  bool flush() { return std::fflush(file_) == 0; }
  void close() {
    if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
  }

 private:
  void take(std::span<const std::byte> bytes) {
    hash_ = model::hash_bytes(bytes, hash_);
    num_bytes_ += bytes.size();
  }
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

std::string name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// The caller hears of the file's name, the log of the whole path.
Error disk_error(const std::string& path, Code code = Code::kInternal) {
  const int error = errno;
  log_warn("cache_file", "{}: {}", path, std::strerror(error));
  return {code, fmt::format("{}: {}", name_of(path), std::strerror(error)), "path", 0};
}

// Beside the file, and no name that an order can have.
std::string part_of(const std::string& path) {
  return (std::filesystem::path(path).parent_path() / ("." + name_of(path) + ".part")).string();
}

class SaveTask final : public CacheTask {
 public:
  SaveTask(const std::string& path, const CacheParts& parts) REQUIRES(engine_role)
      : parts_(parts),
        path_(path),
        part_(part_of(path)),
        file_(part_, HashedFile::For::kWriting),
        bytes_(parts.runner.block_bytes()) {
    for (std::uint32_t i = 0; i < parts.pool.num_blocks(); ++i) {
      const BlockId block(i);
      const kv::EntryId id = parts.index.entry(block).id;
      if (id != kv::PrefixIndex::kRoot) entries_.push_back({id, block});
    }
    // A child's number is higher than its parent's.
    std::ranges::sort(entries_, {}, &Saved::id);
    if (!file_.open() || !write_header()) fail();
  }
  ~SaveTask() override {
    file_.close();
    if (!finished_) std::remove(part_.c_str());
  }

  void step() override REQUIRES(engine_role) {
    if (next_ == entries_.size()) return finish();
    const auto [id, block] = entries_[next_++];
    const kv::PrefixIndex::Entry& entry = parts_.index.entry(block);
    if (entry.id != id) {  // evicted since, or grown
      ++report_.num_skipped;
      return;
    }
    parts_.runner.read_block(block, bytes_);
    const EntryHead head{id.value, entry.parent.value, entry.root.high, entry.root.low, entry.num_tokens, 0};
    if (file_.write(bytes_of(head)) && file_.write(std::as_bytes(parts_.index.tokens(block))) && file_.write(bytes_) &&
        file_.write_hash()) {
      ++report_.num_blocks;
    } else {
      fail();
    }
  }
  bool done() const override { return finished_ || failure_.has_value(); }
  Result<bridge::CacheReport> report() const override {
    if (failure_) return *failure_;
    return report_;
  }

 private:
  struct Saved {
    kv::EntryId id;
    BlockId block;
  };

  bool write_header() {
    Header header;
    header.block_tokens = parts_.pool.block_tokens();
    header.block_bytes = bytes_.size();
    header.mode_bytes = static_cast<std::uint32_t>(parts_.numeric_mode.size());
    return file_.write(bytes_of(header)) && file_.write(std::as_bytes(std::span(parts_.numeric_mode))) &&
           file_.write_hash();
  }
  void finish() {
    const EntryHead end{0, report_.num_blocks, 0, 0, 0, 0};
    if (!file_.write(bytes_of(end)) || !file_.write_hash() || !file_.flush()) return fail();
    file_.close();
    if (std::rename(part_.c_str(), path_.c_str()) != 0) return fail();
    report_.num_bytes = file_.num_bytes();
    finished_ = true;
  }
  void fail() { failure_ = disk_error(path_); }

  const CacheParts parts_;
  const std::string path_;
  const std::string part_;
  HashedFile file_;
  std::vector<std::byte> bytes_;  // of one block
  std::vector<Saved> entries_;
  std::size_t next_ = 0;
  bridge::CacheReport report_;
  bool finished_ = false;
  std::optional<Error> failure_;
};

class LoadTask final : public CacheTask {
 public:
  LoadTask(const std::string& path, const CacheParts& parts)
      : parts_(parts), path_(path), file_(path, HashedFile::For::kReading), bytes_(parts.runner.block_bytes()) {
    if (!file_.open()) {
      failure_ = disk_error(path, errno == ENOENT ? Code::kNotFound : Code::kInternal);
    } else {
      read_header();
    }
    if (failure_) finished_ = true;
  }

  void step() override REQUIRES(engine_role) {
    EntryHead head;
    if (!file_.read(room_of(head))) return refuse("it ends early");
    if (head.id == 0) {
      const bool good = file_.check_hash() && head.parent == num_read_ && file_.at_end();
      return good ? finish() : refuse("its end is damaged");
    }
    if (head.num_tokens == 0 || head.num_tokens > parts_.pool.block_tokens()) return refuse("an entry is damaged");
    tokens_.resize(head.num_tokens);
    if (!file_.read(std::as_writable_bytes(std::span(tokens_))) || !file_.read(bytes_)) return refuse("it ends early");
    const auto in_vocab = [this](TokenId t) { return t >= 0 && static_cast<std::uint32_t>(t) < parts_.vocab; };
    if (!file_.check_hash() || !std::ranges::all_of(tokens_, in_vocab)) return refuse("an entry is damaged");
    ++num_read_;
    if (!take(head)) ++report_.num_skipped;
  }
  bool done() const override { return finished_; }
  Result<bridge::CacheReport> report() const override {
    if (failure_) return *failure_;
    return report_;
  }

 private:
  struct Loaded {
    kv::EntryId entry;
    BlockId block;
  };

  void read_header() {
    Header header;
    if (!file_.read(room_of(header)) || header.magic != kMagic) return refuse("it is no saved cache");
    if (header.version != kVersion) {
      return refuse(fmt::format("its version is {}, and this server reads {}", header.version, kVersion));
    }
    if (header.mode_bytes > kMaxModeBytes) return refuse("its header is damaged");
    std::string mode(header.mode_bytes, '\0');
    if (!file_.read(std::as_writable_bytes(std::span(mode))) || !file_.check_hash()) {
      return refuse("its header is damaged");
    }
    if (mode != parts_.numeric_mode) return refuse("it was saved by another model or numeric mode: " + log_safe(mode));
    if (header.block_tokens != parts_.pool.block_tokens() || header.block_bytes != bytes_.size()) {
      return refuse(
          fmt::format("its blocks have {} tokens and {} bytes, and this server's {} and {}: start it with the "
                      "same --block-size",
                      header.block_tokens, header.block_bytes, parts_.pool.block_tokens(), bytes_.size()));
    }
  }

  // Into an empty block and the index, where nobody holds it. False: no room, no parent, or there already.
  bool take(const EntryHead& head) REQUIRES(engine_role) {
    kv::EntryId parent = kv::PrefixIndex::kRoot;
    if (head.parent != 0) {
      const auto at = entry_of_.find(head.parent);
      if (at == entry_of_.end() || !is_there(at->second)) return false;
      parent = at->second.entry;
    }
    if (parts_.pool.num_empty() == 0) return false;
    const BlockId block = *parts_.pool.take();
    parts_.runner.write_block(block, bytes_);
    const CacheRoot root{head.root_high, head.root_low};
    BlockId there = block;
    if (tokens_.size() == parts_.pool.block_tokens()) {
      there = parts_.index.insert(root, parent, tokens_, block).block;
    } else {
      parts_.index.insert_tail(root, parent, tokens_, block);
    }
    parts_.pool.give_back(block);
    const kv::EntryId entry = parts_.index.entry(there).id;
    if (entry == kv::PrefixIndex::kRoot) return false;  // a tail that another entry begins with
    entry_of_[head.id] = {entry, there};
    loaded_.push_back({entry, there});
    if (there != block) return false;
    ++report_.num_blocks;
    return true;
  }

  bool is_there(const Loaded& one) const { return parts_.index.entry(one.block).id == one.entry; }

  void finish() REQUIRES(engine_role) {
    report_.num_bytes = file_.num_bytes();
    finished_ = true;
    // Wanted just now, leaves first: of what was loaded they are the first to be evicted.
    for (auto one = loaded_.rbegin(); one != loaded_.rend(); ++one) {
      if (!is_there(*one)) continue;
      parts_.pool.share(one->block);
      parts_.pool.give_back(one->block);
    }
  }
  void refuse(const std::string& why) {
    failure_ = Error{Code::kInvalidArgument, fmt::format("{}: {}", name_of(path_), why), "path", 0};
    finished_ = true;
  }

  const CacheParts parts_;
  const std::string path_;
  HashedFile file_;
  std::vector<std::byte> bytes_;  // of one block
  std::vector<TokenId> tokens_;
  std::unordered_map<std::uint64_t, Loaded> entry_of_;  // by the file's numbers
  std::vector<Loaded> loaded_;                          // in the file's order, those that were there included
  std::uint64_t num_read_ = 0;
  bridge::CacheReport report_;
  bool finished_ = false;
  std::optional<Error> failure_;
};

class ClearTask final : public CacheTask {
 public:
  explicit ClearTask(kv::BlockPool& pool) : pool_(pool) {}

  void step() override REQUIRES(engine_role) {
    report_.num_blocks = pool_.empty_kept();
    done_ = true;
  }
  bool done() const override { return done_; }
  Result<bridge::CacheReport> report() const override { return report_; }

 private:
  kv::BlockPool& pool_;
  bridge::CacheReport report_;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<CacheTask> make_cache_task(const bridge::ControlOrder& order, const CacheParts& parts) {
  if (order.kind == bridge::ControlOrder::Kind::kClearCache) return std::make_unique<ClearTask>(parts.pool);
  if (order.kind == bridge::ControlOrder::Kind::kSaveCache) return std::make_unique<SaveTask>(order.path, parts);
  return std::make_unique<LoadTask>(order.path, parts);
}

}  // namespace quire::engine
