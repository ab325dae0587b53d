#include "hub/removal.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stop_token>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "hub/cache.h"
#include "hub/file_lock.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

template <typename Visit>
void for_files(const fs::path& directory, Visit visit) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (!entry->is_directory(unknown)) visit(entry->path());
  }
}

// The blob that a file of a snapshot leads to, one link far.
fs::path target_of(const fs::path& file) {
  std::error_code error;
  const fs::path target = fs::read_symlink(file, error);
  return error ? fs::path() : (file.parent_path() / target).lexically_normal();
}

// Every blob that a snapshot of any repository leads to, but for `without`. Models, datasets and spaces alike.
std::set<fs::path> blobs_in_use(const fs::path& root, const fs::path& without) {
  std::set<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator repo(root, error), end; !error && repo != end; repo.increment(error)) {
    std::error_code none;
    for (fs::directory_iterator snapshot(repo->path() / "snapshots", none);
         !none && snapshot != fs::directory_iterator(); snapshot.increment(none)) {
      if (snapshot->path() == without) continue;
      for_files(snapshot->path(), [&](const fs::path& file) {
        if (fs::path blob = target_of(file); !blob.empty()) out.insert(std::move(blob));
      });
    }
  }
  return out;
}

bool has_blobs_in_use(const fs::path& root, const RepoCache& cache) {
  const fs::path blobs = (cache.directory() / "blobs").lexically_normal();
  return std::ranges::any_of(blobs_in_use(root, {}), [&](const fs::path& blob) { return blob.parent_path() == blobs; });
}

void remove_whole(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw StartError(fmt::format("{}: {}", path.string(), error.message()));
}

CachedRevision revision_of(const RepoCache& cache, const std::string& repo, const std::string& commit) {
  CachedRevision out{repo, commit, {}, cache.snapshot(commit), 0};
  for (const auto& [name, its_commit] : cache.refs()) {
    if (its_commit == commit) out.names.push_back(name);
  }
  std::set<fs::path> seen;
  for_files(out.snapshot, [&](const fs::path& file) {
    std::error_code error;
    const fs::path blob = target_of(file);
    if (!seen.insert(blob.empty() ? file : blob).second) return;
    if (const auto size = fs::file_size(file, error); !error) out.bytes += size;
  });
  return out;
}

std::string text_of(const CachedRevision& revision) {
  return revision.names.empty() ? revision.commit.substr(0, 12) : revision.names.front();
}

}  // namespace

std::vector<CachedRevision> cached_revisions(const fs::path& root) {
  std::vector<CachedRevision> out;
  for (const std::string& repo : repos_in(root)) {
    const RepoCache cache(root, repo);
    for (const std::string& commit : cache.commits()) out.push_back(revision_of(cache, repo, commit));
  }
  return out;
}

CachedRevision find_revision(const fs::path& root, const ModelName& name) {
  const RepoCache cache(root, name.repo);
  const std::vector<std::string> commits = cache.commits();
  if (commits.empty()) {
    throw StartError(fmt::format("{} is not in {}; `quire list` shows what is", name.repo, root.string()));
  }
  std::vector<std::string> found;
  const std::optional<std::string> named = cache.commit_of(name.revision);
  for (const std::string& commit : commits) {
    if (commit == named || (name.revision.size() >= 7 && commit.starts_with(name.revision))) found.push_back(commit);
  }
  if (found.empty() && name.revision == kMainRevision && commits.size() == 1) found = commits;
  if (found.size() == 1) return revision_of(cache, name.repo, found.front());
  std::string all;
  for (const std::string& commit : commits) {
    all += (all.empty() ? "" : ", ") + text_of(revision_of(cache, name.repo, commit));
  }
  throw StartError(fmt::format("{}@{} is not in {}: its revisions there are {}", name.repo, log_safe(name.revision),
                               root.string(), all));
}

std::vector<fs::path> blobs_of(const fs::path& root, const CachedRevision& revision) {
  const RepoCache cache(root, revision.repo);
  const std::set<fs::path> in_use = blobs_in_use(root, revision.snapshot);
  const fs::path blobs = (cache.directory() / "blobs").lexically_normal();
  std::set<fs::path> out;
  for_files(revision.snapshot, [&](const fs::path& file) {
    fs::path blob = target_of(file);
    if (blob.parent_path() == blobs && !in_use.contains(blob)) out.insert(std::move(blob));
  });
  return {out.begin(), out.end()};
}

void remove_revision(const fs::path& root, const CachedRevision& revision) {
  const RepoCache cache(root, revision.repo);
  const std::vector<fs::path> blobs = blobs_of(root, revision);
  for (const auto& [name, commit] : cache.refs()) {
    if (commit == revision.commit) remove_whole(cache.directory() / "refs" / name);
  }
  remove_whole(revision.snapshot);
  remove_whole(cache.directory() / ".no_exist" / revision.commit);
  remove_whole(cache.directory() / "trees" / (revision.commit + ".json"));
  make_directories(root / ".locks" / cache.directory().filename());
  for (const fs::path& blob : blobs) {
    FileLock lock(cache.lock_of(blob.filename().string()));
    lock.take(std::stop_token(), [&] { log_info("hub_wait", "another process uses {}", blob.string()); });
    // Another process may have linked it since, in the same snapshot, too.
    if (!blobs_in_use(root, {}).contains(blob)) remove_whole(blob);
  }
  if (!cache.commits().empty() || has_blobs_in_use(root, cache)) return;
  for_files(cache.directory() / "blobs", [&](const fs::path& file) {  // of interrupted downloads
    FileLock lock(cache.lock_of(file.stem().string()));
    lock.take(std::stop_token(), [&] { log_info("hub_wait", "another process uses {}", file.string()); });
    if (cache.commits().empty()) remove_whole(file);
  });
  for (const char* notes : {"refs", ".no_exist", "trees"}) {
    if (cache.commits().empty()) remove_whole(cache.directory() / notes);
  }
  // Directories in which another process has begun something are no longer empty, and stay.
  std::error_code ignored;
  for (const char* part : {"blobs", "snapshots", ""}) fs::remove(cache.directory() / part, ignored);
}

}  // namespace quire::hub
