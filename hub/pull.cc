#include "hub/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "hub/blob_download.h"
#include "hub/cache.h"
#include "hub/client.h"
#include "hub/file_lock.h"
#include "hub/needed_files.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSpared = 64u << 20;             // of the disk, for everybody else
constexpr std::uint64_t kMaxSettingsBytes = 256u << 20;  // of one file
constexpr int kMaxRounds = 3;                            // of downloads, if another process removes what arrived

std::string size_text(std::uint64_t bytes) {
  return bytes >= 1u << 30 ? fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1u << 30))
                           : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1u << 20));
}

std::vector<std::string> paths_of(const Listing& listing) {
  std::vector<std::string> paths;
  for (const RepoFile& file : listing.files) paths.push_back(file.path);
  return paths;
}

[[noreturn]] void stop_for(const Failure& failure) {
  if (failure.cancelled) throw PullStopped();
  throw StartError(failure.message);
}

class Pull {
 public:
  Pull(const Settings& settings, const ModelName& name, Progress& progress, const std::stop_token& stop)
      : settings_(settings), name_(name), cache_(settings.cache, name.repo), progress_(progress), stop_(stop) {}

  PulledModel run(const CheckSettings& check) {
    list();
    const Result<NeededFiles> needed = needed_files(name_, paths_of(listing_));
    if (!needed) throw StartError(needed.error().message);
    const std::vector<const RepoFile*> settings = files_of(needed->settings);
    std::vector<const RepoFile*> weights = files_of(needed->weights);
    for (const RepoFile* file : settings) {
      if (file->size <= kMaxSettingsBytes) continue;
      throw StartError(fmt::format("{}: {} has {}; at most {} are read", name_.text(), file->path,
                                   size_text(file->size), size_text(kMaxSettingsBytes)));
    }
    progress_.expect(weights.empty() ? bytes_of_shards() : bytes_of(weights));
    make_directories(cache_.directory());
    expect_room(settings, 0);
    download(settings);
    note_absent();
    if (name_.quant.empty()) {
      if (check) check(cache_.snapshot(listing_.commit));
      if (needed->weights.empty()) weights = files_of(indexed_shards());
    }
    expect_room(weights, kSpared);
    progress_.expect(0);
    download(weights);
    complete(settings, weights);
    cache_.write_ref(name_.revision, listing_.commit);
    return {name_.quant.empty() ? cache_.snapshot(listing_.commit)
                                : cache_.snapshot(listing_.commit) / weights.front()->path,
            listing_.commit};
  }

 private:
  void list() {
    Client client(settings_, stop_);
    Got<Listing> got = client.list(name_, settings_.max_attempts);
    if (const auto* failure = std::get_if<Failure>(&got)) stop_for(*failure);
    listing_ = std::get<Listing>(std::move(got));
    if (listing_.files.empty()) throw StartError(name_.text() + " has no files");
  }

  std::vector<const RepoFile*> files_of(const std::vector<std::string>& paths) const {
    std::vector<const RepoFile*> files;
    for (const std::string& path : paths) {
      files.push_back(listing_.find(path));
      if (files.back() == nullptr) {
        throw StartError(fmt::format("{}: {} names {}, which the repository does not have", name_.text(), kIndexFile,
                                     log_safe(path)));
      }
    }
    return files;
  }

  std::vector<std::string> indexed_shards() const {
    const Result<std::vector<std::string>> shards =
        shards_of(contents_of(cache_.snapshot(listing_.commit) / std::string(kIndexFile)));
    if (!shards) throw StartError(name_.text() + ": " + shards.error().message);
    return *shards;
  }

  // Until the index is here: what it will name.
  std::uint64_t bytes_of_shards() const {
    std::uint64_t bytes = 0;
    for (const RepoFile& file : listing_.files) {
      if (file.path.starts_with("model-") && file.path.ends_with(".safetensors")) bytes += file.size;
    }
    return bytes;
  }

  // Another process may have removed the revision meanwhile.
  void complete(const std::vector<const RepoFile*>& settings, const std::vector<const RepoFile*>& weights) {
    std::vector<const RepoFile*> all = settings;
    all.insert(all.end(), weights.begin(), weights.end());
    for (int round = 1;; ++round) {
      std::vector<const RepoFile*> missing;
      std::ranges::copy_if(all, std::back_inserter(missing), [&](const RepoFile* file) { return !has(*file); });
      if (missing.empty()) return;
      if (round == kMaxRounds) {
        throw StartError(name_.text() + ": another process removes it meanwhile (`quire rm`?); start again after that");
      }
      download(missing);
    }
  }
  bool has(const RepoFile& file) const { return cache_.has_blob(file) && cache_.has_link(listing_.commit, file); }

  static std::uint64_t bytes_of(const std::vector<const RepoFile*>& files) {
    std::uint64_t bytes = 0;
    for (const RepoFile* file : files) bytes += file->size;
    return bytes;
  }

  // So that a later start knows without a request that nothing is missing.
  void note_absent() const {
    for (const std::string_view file : settings_files()) {
      if (listing_.find(file) == nullptr) cache_.note_absent(listing_.commit, std::string(file));
    }
  }

  void expect_room(const std::vector<const RepoFile*>& files, std::uint64_t spared) const {
    std::uint64_t missing = 0;
    for (const RepoFile* file : files) {
      if (!cache_.has_blob(*file)) missing += file->size - bytes_of_earlier_try(cache_, *file);
    }
    std::error_code error;
    const fs::space_info space = fs::space(cache_.directory(), error);
    if (error || missing == 0 || space.available >= missing + spared) return;
    throw StartError(fmt::format(
        "{} needs {} more on the disk of {}, which has {} left: free some, or choose another directory with "
        "--download-dir or HF_HUB_CACHE",
        name_.text(), size_text(missing + spared), settings_.cache.string(), size_text(space.available)));
  }

  void download(const std::vector<const RepoFile*>& files) {
    std::vector<std::size_t> indices;
    for (const RepoFile* file : files) {
      const bool is_there = cache_.has_blob(*file);
      indices.push_back(
          progress_.add(file->path, file->size, is_there ? file->size : bytes_of_earlier_try(cache_, *file)));
    }
    std::atomic<std::size_t> next{0};
    std::stop_source failed;  // the first failure stops the others
    const std::stop_callback passed_on(stop_, [&] { failed.request_stop(); });
    std::mutex mutex;
    std::optional<Failure> first;
    const auto work = [&] {
      try {
        Client client(settings_, failed.get_token());
        for (std::size_t i = next++; i < files.size() && !failed.stop_requested(); i = next++) {
          if (auto failure = download_one(*files[i], indices[i], client, failed.get_token())) {
            const std::scoped_lock lock(mutex);
            if (!first) first = std::move(failure);
            failed.request_stop();
          }
        }
      } catch (const std::exception& error) {
        const std::scoped_lock lock(mutex);
        if (!first) first = Failure{error.what()};
        failed.request_stop();
      }
    };
    {
      std::vector<std::jthread> workers;
      const std::size_t count = std::min<std::size_t>(settings_.num_workers, files.size());
      for (std::size_t i = 0; i < count; ++i) workers.emplace_back(work);
    }
    if (stop_.stop_requested()) throw PullStopped();
    if (first) stop_for(*first);
  }

  // Blob and link under one lock: whoever removes a revision sees both or neither.
  std::optional<Failure> download_one(const RepoFile& file, std::size_t index, Client& client,
                                      const std::stop_token& stop) const {
    if (!has(file)) {
      make_directories(cache_.lock_of(file.blob).parent_path());
      FileLock lock(cache_.lock_of(file.blob));
      const auto on_wait = [&] { log_info("hub_wait", "another process downloads {}", log_safe(file.path)); };
      if (!lock.take(stop, on_wait)) return Failure{.message = "interrupted", .cancelled = true};
      if (!cache_.has_blob(file)) {
        const BlobJob job{name_, listing_.commit, file, index};
        if (auto failure = download_blob(job, lock.is_locked(), cache_, settings_, client, progress_, stop)) {
          return failure;
        }
      }
      cache_.link(listing_.commit, file);
    }
    progress_.set(index, Progress::State::kDone, file.size);
    return std::nullopt;
  }

  const Settings& settings_;
  const ModelName& name_;
  const RepoCache cache_;
  Progress& progress_;
  const std::stop_token& stop_;
  Listing listing_;
};

// The weights of a snapshot, by what it has on disk; empty: they are not all there.
// Without an index only a reference, which is written last, or another program's list says which those are.
std::vector<std::string> weights_on_disk(const RepoCache& cache, const std::string& commit) {
  if (cache.has(commit, "model.safetensors")) return {"model.safetensors"};
  std::vector<std::string> files;
  if (cache.has(commit, std::string(kIndexFile))) {
    const auto shards = shards_of(contents_of(cache.snapshot(commit) / std::string(kIndexFile)));
    if (shards && std::ranges::all_of(*shards, [&](const std::string& file) { return cache.has(commit, file); })) {
      files = *shards;
    }
    return files;
  }
  const auto named = cache.refs();
  const bool is_named = std::ranges::find(named, commit, &std::pair<std::string, std::string>::second) != named.end();
  if (!is_named && !cache.listed(commit)) return files;
  std::error_code error;
  for (fs::directory_iterator entry(cache.snapshot(commit), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (file.ends_with(".safetensors") && cache.has(commit, file)) files.push_back(file);
  }
  return files;
}

// The first file of the quantisation, if all of its parts are there.
std::optional<fs::path> gguf_on_disk(const ModelName& name, const RepoCache& cache, const std::string& commit) {
  std::vector<std::string> files;
  std::error_code error;
  const fs::path snapshot = cache.snapshot(commit);
  for (fs::recursive_directory_iterator entry(snapshot, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().lexically_relative(snapshot).string();
    if (cache.has(commit, file)) files.push_back(file);
  }
  std::ranges::sort(files);
  const Result<NeededFiles> needed = needed_files(name, files);
  if (!needed) return std::nullopt;
  const std::string& first = needed->weights.front();
  return num_parts(first) == needed->weights.size() ? std::optional(snapshot / first) : std::nullopt;
}

std::optional<PulledModel> find(const Settings& settings, const ModelName& name, bool must_be_whole) {
  const RepoCache cache(settings.cache, name.repo);
  const std::optional<std::string> commit = cache.commit_of(name.revision);
  if (!commit) return std::nullopt;
  if (!name.quant.empty()) {
    const auto file = gguf_on_disk(name, cache, *commit);
    return file ? std::optional(PulledModel{*file, *commit}) : std::nullopt;
  }
  if (!cache.has(*commit, "config.json") || weights_on_disk(cache, *commit).empty()) return std::nullopt;
  if (must_be_whole) {
    const auto listed = cache.listed(*commit);
    const bool is_in_one_file = cache.has(*commit, "model.safetensors");
    const auto is_known = [&](std::string_view name_of_file) {
      const std::string file(name_of_file);
      if (file == kIndexFile && is_in_one_file) return true;
      if (cache.has(*commit, file) || cache.is_absent(*commit, file)) return true;
      return listed && std::ranges::find(*listed, file) == listed->end();
    };
    if (!std::ranges::all_of(settings_files(), is_known)) return std::nullopt;
  }
  return PulledModel{cache.snapshot(*commit), *commit};
}

}  // namespace

PulledModel pull(const Settings& settings, const ModelName& name, const CheckSettings& check, Progress& progress,
                 const std::stop_token& stop) {
  return Pull(settings, name, progress, stop).run(check);
}

std::optional<PulledModel> find_pulled(const Settings& settings, const ModelName& name) {
  return find(settings, name, true);
}

std::optional<PulledModel> find_usable(const Settings& settings, const ModelName& name) {
  return find(settings, name, false);
}

}  // namespace quire::hub
