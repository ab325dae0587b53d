#include "app/config/api_keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "api/limits/key_file.h"
#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

using api::keys::KeyEntry;
using api::keys::KeyTable;

constexpr std::size_t kMinPlainBytes = 8;
constexpr std::size_t kMaxPlainBytes = 512;

bool is_plain_key(const std::string& key) {
  const auto is_visible = [](char c) { return c > ' ' && c < '\x7f'; };
  return key.size() >= kMinPlainBytes && key.size() <= kMaxPlainBytes && std::ranges::all_of(key, is_visible);
}

// Entries for the keys of --api-key. Their role is user: a key on a command line is shared, and visible to other users
// of this machine. They may read metrics (`monitor`) only if no key file says who may.
std::vector<KeyEntry> plain_entries(const std::vector<std::string>& keys, bool monitor) {
  std::vector<KeyEntry> entries;
  for (const std::string& key : keys) {
    if (!is_plain_key(key)) {
      throw StartError(fmt::format("--api-key: key {} must be {} to {} visible ASCII characters (quire key makes one)",
                                   entries.size() + 1, kMinPlainBytes, kMaxPlainBytes));
    }
    entries.push_back({.name = fmt::format("api-key-{}", entries.size() + 1),
                       .digest = api::keys::digest_of(key),
                       .tenant = std::string(api::keys::kDefaultTenant),
                       .monitors = monitor});
  }
  return entries;
}

std::string all_of(const std::vector<std::string>& problems) {
  constexpr std::size_t kMaxReported = 16;
  std::string out = problems.front();
  for (std::size_t i = 1; i < std::min(problems.size(), kMaxReported); ++i) out += "; " + problems[i];
  if (problems.size() > kMaxReported) out += fmt::format("; and {} more", problems.size() - kMaxReported);
  return out;
}

}  // namespace

Result<KeyFileText> read_key_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return invalid("", std::strerror(errno));
  struct stat facts {};
  const bool plain = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
  KeyFileText out{std::string(api::keys::kMaxFileBytes + 1, '\0'), (facts.st_mode & S_IRWXO) != 0};
  std::size_t size = 0;
  ssize_t got = 1;
  while (plain && got > 0 && size < out.text.size()) {
    got = ::read(fd, out.text.data() + size, out.text.size() - size);
    if (got > 0) size += static_cast<std::size_t>(got);
  }
  close(fd);
  if (!plain) return invalid("", "not a regular file");
  if (got < 0) return invalid("", "cannot be read");
  out.text.resize(size);
  return out;
}

ApiKeys::ApiKeys(std::string file, const std::vector<std::string>& plain)
    : file_(std::move(file)), plain_(plain_entries(plain, file_.empty())) {
  if (file_.empty() && plain_.empty()) return;
  const Result<std::vector<KeyEntry>> entries = read();
  if (!entries) throw StartError(fmt::format("--api-key-file {}: {}", file_, entries.error().message));
  table_ = std::make_unique<concurrent::Latest<KeyTable>>(std::make_shared<const KeyTable>(*entries, nullptr));
}

bool ApiKeys::reload() {
  if (file_.empty()) return true;
  const Result<std::vector<KeyEntry>> entries = read();
  if (!entries) {
    log_error("keys_not_reloaded", "{}: {}; the previous keys stay in use", log_safe(file_), entries.error().message);
    return false;
  }
  table_->put(std::make_shared<const KeyTable>(*entries, table_->get().get()));
  log_info("keys_reloaded", {{"file", log_safe(file_)}, {"keys", entries->size()}});
  return true;
}

Result<std::vector<KeyEntry>> ApiKeys::read() const {
  std::vector<KeyEntry> entries = plain_;
  if (file_.empty()) return entries;
  Result<KeyFileText> text = read_key_file(file_);
  if (!text) return text.error();
  if (text->open_to_others) {
    log_warn("key_file_open", "file={} other users of this machine may read or change it: run chmod o= on it",
             log_safe(file_));
  }
  api::keys::KeyFile read = api::keys::parse_key_file(text->text);
  if (!read.problems.empty()) return invalid("", all_of(read.problems));
  if (read.entries.empty()) return invalid("", "the file has no key; quire key makes one");
  for (KeyEntry& entry : read.entries) {
    const auto twin = std::ranges::find_if(
        plain_, [&](const KeyEntry& one) { return one.name == entry.name || one.digest == entry.digest; });
    if (twin != plain_.end())
      return invalid("", fmt::format("{} has the name or the key of one of --api-key; leave one of them out",
                                     log_safe(entry.name)));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace quire::app
