#include "core/engine/cache/cache_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/base/log.h"
#include "core/engine/cache/cache_file.h"

namespace quire::engine {
namespace {

std::vector<SavedGroup> groups_of(const kv::BlockPool& pool) {
  CHECK_LE(pool.num_groups(), kMaxCacheGroups);
  std::vector<SavedGroup> groups;
  for (const kv::CacheGroup& group : pool.groups()) {
    groups.push_back({static_cast<std::uint32_t>(group.kind), group.tokens});
  }
  return groups;
}

std::string name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// The caller's error has the file's name only, the log the whole path.
Error disk_error(const std::string& path, Code code = Code::kInternal) {
  const int error = errno;
  log_warn("cache_file", "{}: {}", path, std::strerror(error));
  return {code, fmt::format("{}: {}", name_of(path), std::strerror(error)), "path", 0};
}

// A temporary file in the same directory, with a name that no order can have.
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
    for (std::uint32_t place = 0; place < parts.index.num_places(); ++place) {
      const kv::EntryId id = parts.index.entry_at(place).id;
      if (id != kv::PrefixIndex::kRoot) entries_.push_back({id, place});
    }
    // Parents first: a child's entry id is higher than its parent's.
    std::ranges::sort(entries_, {}, &Saved::id);
    if (!file_.open() || !write_header()) fail();
  }
  ~SaveTask() override {
    file_.close();
    if (!finished_) std::remove(part_.c_str());
  }

  void step() override REQUIRES(engine_role) {
    if (next_ == entries_.size()) return finish();
    const auto [id, place] = entries_[next_++];
    if (parts_.index.entry_at(place).id != id) {  // evicted meanwhile, or replaced by a longer entry
      ++report_.num_skipped;
    } else if (write(place)) {
      ++num_written_;
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
    std::uint32_t place;
  };

  bool write_header() {
    const std::vector<SavedGroup> groups = groups_of(parts_.pool);
    CacheHeader header;
    header.block_tokens = parts_.pool.block_tokens();
    header.block_bytes = bytes_.size();
    header.mode_bytes = static_cast<std::uint32_t>(parts_.numeric_mode.size());
    header.num_groups = static_cast<std::uint32_t>(groups.size());
    return file_.write(bytes_of(header)) && file_.write(std::as_bytes(std::span(parts_.numeric_mode))) &&
           file_.write(std::as_bytes(std::span(groups))) && file_.write_hash();
  }
  // An entry without blocks is written for those behind it.
  bool write(std::uint32_t place) REQUIRES(engine_role) {
    const kv::PrefixIndex::Entry& entry = parts_.index.entry_at(place);
    const auto slots = parts_.index.slots_at(place);
    EntryHead head{.id = entry.id.value,
                   .parent = entry.parent.value,
                   .namespace_high = entry.cache_namespace.high,
                   .namespace_low = entry.cache_namespace.low,
                   .num_tokens = entry.num_tokens};
    for (std::uint32_t group = 0; group < slots.size(); ++group) {
      if (slots[group] != kNoBlock) head.slots |= 1u << group;
    }
    if (!file_.write(bytes_of(head)) || !file_.write(std::as_bytes(parts_.index.tokens_at(place)))) return false;
    for (const BlockId block : slots) {
      if (block == kNoBlock) continue;
      parts_.runner.read_block(block, bytes_);
      if (!file_.write(bytes_)) return false;
      ++report_.num_blocks;
    }
    return file_.write_hash();
  }
  void finish() {
    const EntryHead end{.parent = num_written_};
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
  std::uint64_t num_written_ = 0;
  bridge::CacheReport report_;
  bool finished_ = false;
  std::optional<Error> failure_;
};

class LoadTask final : public CacheTask {
 public:
  LoadTask(const std::string& path, const CacheParts& parts)
      : parts_(parts),
        path_(path),
        file_(path, HashedFile::For::kReading),
        bytes_(parts.runner.block_bytes() * parts.pool.num_groups()) {
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
    if (!is_sound(head)) return refuse("an entry is damaged");
    last_id_ = head.id;
    std::vector<TokenId> tokens(head.num_tokens);
    bool is_whole = file_.read(std::as_writable_bytes(std::span(tokens)));
    for (std::size_t i = 0; i < num_slots(head) && is_whole; ++i) {
      const std::size_t each = parts_.runner.block_bytes();  // read as it was written: the hash depends on that
      is_whole = file_.read(std::span(bytes_).subspan(each * i, each));
    }
    if (!is_whole) return refuse("it ends early");
    const auto in_vocab = [this](TokenId t) { return t >= 0 && static_cast<std::uint32_t>(t) < parts_.vocab; };
    if (!file_.check_hash() || !std::ranges::all_of(tokens, in_vocab)) return refuse("an entry is damaged");
    ++num_read_;
    if (!take(head, std::move(tokens))) ++report_.num_skipped;
  }
  bool done() const override { return finished_; }
  Result<bridge::CacheReport> report() const override {
    if (failure_) return *failure_;
    return report_;
  }

 private:
  // A full entry of the file.
  struct Loaded {
    kv::EntryId entry;  // kRoot: it has no blocks, and enters with the first one behind it that has any
    CacheNamespace cache_namespace;
    std::uint64_t parent = 0;       // only then
    std::vector<TokenId> tokens{};  // likewise
  };

  // Ids ascend, and a parent's is lower: ancestors end, whoever wrote the file.
  bool is_sound(const EntryHead& head) const {
    const std::uint32_t block_tokens = parts_.pool.block_tokens();
    return head.id > last_id_ && head.parent < head.id && head.num_tokens > 0 && head.num_tokens <= block_tokens &&
           std::uint64_t{head.slots} >> parts_.pool.num_groups() == 0 &&
           (head.slots != 0 || head.num_tokens == block_tokens);
  }
  static std::size_t num_slots(const EntryHead& head) { return static_cast<std::size_t>(std::popcount(head.slots)); }

  void read_header() {
    CacheHeader header;
    if (!file_.read(room_of(header)) || header.magic != kCacheMagic) return refuse("it is no saved cache");
    if (header.version != kCacheVersion) {
      return refuse(fmt::format("its version is {}, and this server reads {}", header.version, kCacheVersion));
    }
    if (header.mode_bytes > kMaxModeBytes || header.num_groups > kMaxCacheGroups)
      return refuse("its header is damaged");
    std::string mode(header.mode_bytes, '\0');
    std::vector<SavedGroup> groups(header.num_groups);
    if (!file_.read(std::as_writable_bytes(std::span(mode))) ||
        !file_.read(std::as_writable_bytes(std::span(groups))) || !file_.check_hash()) {
      return refuse("its header is damaged");
    }
    if (mode != parts_.numeric_mode) return refuse("it was saved by another model or numeric mode: " + log_safe(mode));
    if (groups != groups_of(parts_.pool)) return refuse("its layers are grouped in another way than this server's");
    if (header.block_tokens != parts_.pool.block_tokens() || header.block_bytes != parts_.runner.block_bytes()) {
      return refuse(fmt::format(
          "its blocks have {} tokens and {} bytes, and this server's {} and {}: start it with the "
          "same --block-size",
          header.block_tokens, header.block_bytes, parts_.pool.block_tokens(), parts_.runner.block_bytes()));
    }
  }

  // Loads an entry into empty blocks, which are cached then. False: too few are empty, its parent is not cached, or it
  // is cached already.
  bool take(const EntryHead& head, std::vector<TokenId> tokens) REQUIRES(engine_role) {
    const CacheNamespace cache_namespace{head.namespace_high, head.namespace_low};
    if (head.slots == 0) {
      if (num_without_blocks_ == parts_.index.num_places()) return false;  // more could not enter
      ++num_without_blocks_;
      entries_[head.id] = {kv::PrefixIndex::kRoot, cache_namespace, head.parent, std::move(tokens)};
      return true;
    }
    if (parts_.pool.num_empty() < num_slots(head)) return false;
    const std::optional<kv::EntryId> parent = enter_ancestors(head.parent, cache_namespace);
    if (!parent) return false;
    std::vector<BlockId> own = write_blocks(head);
    std::vector<BlockId> used = own;
    const bool is_full = tokens.size() == parts_.pool.block_tokens();
    std::optional<kv::EntryId> entry;
    if (parts_.index.has_free_entry()) {
      entry = is_full ? parts_.index.insert(cache_namespace, *parent, tokens, used)
                      : parts_.index.insert_partial(cache_namespace, *parent, tokens, used);
    }
    std::uint32_t num_new = 0;
    for (const BlockId block : own) {
      if (block == kNoBlock) continue;
      num_new += parts_.index.num_relied_tokens(block) > 0;
      parts_.pool.give_back(block);
    }
    parts_.index.forget_if_empty(*parent);
    if (!entry) return false;
    if (is_full) entries_[head.id] = {*entry, cache_namespace};
    loaded_.push_back(*entry);
    report_.num_blocks += num_new;
    return num_new > 0;
  }

  // New blocks with the bytes that were read, [groups].
  std::vector<BlockId> write_blocks(const EntryHead& head) REQUIRES(engine_role) {
    std::vector<BlockId> blocks(parts_.pool.num_groups(), kNoBlock);
    std::size_t next = 0;
    for (std::uint32_t group = 0; group < blocks.size(); ++group) {
      if ((head.slots >> group & 1) == 0) continue;
      blocks[group] = *parts_.pool.take();
      const std::size_t each = parts_.runner.block_bytes();
      parts_.runner.write_block(blocks[group], std::span(bytes_).subspan(each * next++, each));
    }
    return blocks;
  }

  // The entry of the file's entry `id`, which is entered first if it has no blocks, its ancestors likewise. None: one
  // of them is not cached, is not full, or is of another namespace.
  std::optional<kv::EntryId> enter_ancestors(std::uint64_t id, const CacheNamespace& cache_namespace)
      REQUIRES(engine_role) {
    std::vector<Loaded*> to_enter;
    kv::EntryId entry = kv::PrefixIndex::kRoot;
    while (id != 0) {
      const auto at = entries_.find(id);
      if (at == entries_.end() || at->second.cache_namespace != cache_namespace) return std::nullopt;
      entry = at->second.entry;
      if (entry != kv::PrefixIndex::kRoot && parts_.index.has(entry)) break;
      if (at->second.tokens.empty()) return std::nullopt;  // it had blocks, and is evicted
      to_enter.push_back(&at->second);
      id = at->second.parent;
    }
    if (id == 0) entry = kv::PrefixIndex::kRoot;
    std::vector<BlockId> none(parts_.pool.num_groups(), kNoBlock);
    for (auto at = to_enter.rbegin(); at != to_enter.rend(); ++at) {
      std::optional<kv::EntryId> next;
      if (parts_.index.has_free_entry()) {
        next = parts_.index.insert(cache_namespace, entry, (*at)->tokens, none);
      }
      if (!next) {
        parts_.index.forget_if_empty(entry);
        return std::nullopt;
      }
      entry = (*at)->entry = *next;
    }
    return entry;
  }

  void finish() REQUIRES(engine_role) {
    report_.num_bytes = file_.num_bytes();
    finished_ = true;
    // Marks the loaded blocks as used just now, leaves first: leaves are evicted first.
    for (auto entry = loaded_.rbegin(); entry != loaded_.rend(); ++entry) parts_.index.touch(*entry);
    for (const kv::EntryId entry : loaded_) {
      if (parts_.index.is_leaf(entry)) parts_.index.mark_restore_point_at_end(entry);
    }
  }
  void refuse(const std::string& why) {
    failure_ = Error{Code::kInvalidArgument, fmt::format("{}: {}", name_of(path_), why), "path", 0};
    finished_ = true;
  }

  const CacheParts parts_;
  const std::string path_;
  HashedFile file_;
  std::vector<std::byte> bytes_;                       // of an entry's blocks
  std::unordered_map<std::uint64_t, Loaded> entries_;  // by the id in the file
  std::vector<kv::EntryId> loaded_;  // with blocks, in the file's order, including those that were cached already
  std::uint64_t num_read_ = 0;
  std::uint64_t last_id_ = 0;
  std::uint32_t num_without_blocks_ = 0;
  bridge::CacheReport report_;
  bool finished_ = false;
  std::optional<Error> failure_;
};

class ClearTask final : public CacheTask {
 public:
  explicit ClearTask(kv::BlockPool& pool) : pool_(pool) {}

  void step() override REQUIRES(engine_role) {
    report_.num_blocks = pool_.evict_all();
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
