#include "hub/cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>

#include "core/base/json.h"
#include "core/base/start_error.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";
constexpr std::uintmax_t kMaxListBytes = 64u << 20;

// "models--ORG--NAME"; no part of a name has "--".
std::string folder_of(const std::string& repo) {
  std::string folder(kPrefix);
  return folder + repo.substr(0, repo.find('/')) + "--" + repo.substr(repo.find('/') + 1);
}

std::optional<std::string> repo_of_folder(std::string_view folder) {
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  folder.remove_prefix(kPrefix.size());
  const std::size_t mark = folder.find("--");
  if (mark == folder.npos) return std::nullopt;
  const std::string repo = std::string(folder.substr(0, mark)) + "/" + std::string(folder.substr(mark + 2));
  return is_repo(repo) ? std::optional(repo) : std::nullopt;
}

}  // namespace

std::string contents_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};  // reading a directory would throw
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

namespace {

[[noreturn]] void throw_for(const fs::path& path, const std::error_code& error) {
  throw StartError(fmt::format("{}: {}; --download-dir or HF_HUB_CACHE chooses another place for models", path.string(),
                               error.message()));
}

// A name in the repository's directory, where readers look for nothing, that nobody else has.
fs::path unnamed_in(const fs::path& directory) {
  static std::atomic<unsigned> count{0};
  return directory / fmt::format(".new.{}.{}", getpid(), ++count);
}

// Renames `made` to `path`, or removes it and throws.
void put(const fs::path& made, const fs::path& path) {
  std::error_code error;
  fs::rename(made, path, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(made, ignored);
  throw_for(path, error);
}

void write_file(const fs::path& directory, const fs::path& path, const std::string& text) {
  make_directories(path.parent_path());
  const fs::path made = unnamed_in(directory);
  std::ofstream stream(made, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) {
    const std::error_code error(errno != 0 ? errno : EIO, std::generic_category());
    std::error_code ignored;
    fs::remove(made, ignored);
    throw_for(path, error);
  }
  put(made, path);
}

}  // namespace

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw_for(path, error);
}

RepoCache::RepoCache(const fs::path& root, const std::string& repo)
    : directory_(root / folder_of(repo)), locks_(root / ".locks" / folder_of(repo)) {}

std::optional<std::string> RepoCache::commit_of(const std::string& revision) const {
  if (is_commit(revision)) return revision;
  if (!is_revision(revision)) return std::nullopt;
  std::string commit = contents_of(directory_ / "refs" / revision);
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

std::vector<std::pair<std::string, std::string>> RepoCache::refs() const {
  std::vector<std::pair<std::string, std::string>> out;
  std::error_code error;
  const fs::path refs = directory_ / "refs";
  for (fs::recursive_directory_iterator entry(refs, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(refs).string();
    if (const auto commit = commit_of(name); commit && !is_commit(name)) out.emplace_back(name, *commit);
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> RepoCache::commits() const {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator entry(directory_ / "snapshots", error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (is_commit(name)) out.push_back(std::move(name));
  }
  std::ranges::sort(out);
  return out;
}

bool RepoCache::has_blob(const RepoFile& file) const {
  std::error_code error;
  return fs::is_regular_file(blob(file), error) && fs::file_size(blob(file), error) == file.size && !error;
}

bool RepoCache::has(const std::string& commit, const std::string& path) const {
  std::error_code error;
  return fs::is_regular_file(snapshot(commit) / path, error);
}

bool RepoCache::has_link(const std::string& commit, const RepoFile& file) const {
  const fs::path path = snapshot(commit) / file.path;
  std::error_code error;
  return fs::read_symlink(path, error) == blob(file).lexically_relative(path.parent_path()) && !error;
}

bool RepoCache::is_absent(const std::string& commit, const std::string& path) const {
  std::error_code error;
  return fs::exists(directory_ / ".no_exist" / commit / path, error);
}

std::optional<std::vector<std::string>> RepoCache::listed(const std::string& commit) const {
  const fs::path path = directory_ / "trees" / (commit + ".json");
  std::error_code error;
  if (const auto size = fs::file_size(path, error); error || size > kMaxListBytes) return std::nullopt;
  const Result<json::Value> tree = json::parse(contents_of(path), 8);
  const json::Object* object = tree ? tree->if_object() : nullptr;
  const json::Value* files = object != nullptr ? object->if_contains("files") : nullptr;
  if (files == nullptr || !files->is_object()) return std::nullopt;
  std::vector<std::string> out;
  for (const auto& [name, value] : files->get_object()) out.push_back(name);
  return out;
}

void RepoCache::link(const std::string& commit, const RepoFile& file) const {
  const fs::path path = snapshot(commit) / file.path;
  if (has_link(commit, file)) return;
  const fs::path target = blob(file).lexically_relative(path.parent_path());
  std::error_code error;
  make_directories(path.parent_path());
  const fs::path made = unnamed_in(directory_);
  fs::create_symlink(target, made, error);
  if (error) throw_for(path, error);
  put(made, path);
}

void RepoCache::note_absent(const std::string& commit, const std::string& path) const {
  if (!is_absent(commit, path)) write_file(directory_, directory_ / ".no_exist" / commit / path, "");
}

void RepoCache::write_ref(const std::string& revision, const std::string& commit) const {
  if (revision != commit && commit_of(revision) != commit)
    write_file(directory_, directory_ / "refs" / revision, commit);
}

std::vector<std::string> repos_in(const fs::path& root) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    if (auto repo = repo_of_folder(entry->path().filename().string())) out.push_back(std::move(*repo));
  }
  std::ranges::sort(out);
  return out;
}

std::optional<std::string> repo_of_snapshot(const fs::path& path) {
  const fs::path plain = path.lexically_normal();
  const fs::path whole = plain.filename().empty() ? plain.parent_path() : plain;
  if (whole.parent_path().filename() != "snapshots" || !is_commit(whole.filename().string())) return std::nullopt;
  return repo_of_folder(whole.parent_path().parent_path().filename().string());
}

}  // namespace quire::hub
