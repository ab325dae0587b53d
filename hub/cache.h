// The cache of models on disk, in the layout that every program of Hugging Face shares.
// Shape   ROOT/models--ORG--NAME/blobs/HASH, refs/REVISION (a commit), snapshots/COMMIT/PATH (a relative link to its
//         blob), .no_exist/COMMIT/PATH (empty: the repository has no such file), trees/COMMIT.json (by others: the
//         list of files); ROOT/.locks/models--ORG--NAME/HASH.lock. A blob may itself be a link into a store that
//         repositories share.
// Owner   any number of processes at a time, these and other programs.
// Thread  any.
// Fails   reading: what cannot be read is not there. Writing: StartError with the path and the system's text.
// Source  huggingface_hub's documentation of its cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/client.h"
#include "hub/model_name.h"

namespace quire::hub {

class RepoCache {
 public:
  RepoCache(const std::filesystem::path& root, const std::string& repo);

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path blob(const RepoFile& file) const { return directory_ / "blobs" / file.blob; }
  std::filesystem::path snapshot(const std::string& commit) const { return directory_ / "snapshots" / commit; }
  std::filesystem::path lock_of(const std::string& blob) const { return locks_ / (blob + ".lock"); }

  // The commit of a branch or tag when it was last asked for; a commit is its own. nullopt: unknown.
  std::optional<std::string> commit_of(const std::string& revision) const;
  // Branches and tags that were asked for, with their commits; sorted.
  std::vector<std::pair<std::string, std::string>> refs() const;
  std::vector<std::string> commits() const;  // that have a snapshot; sorted

  // True if the blob is there, whole by its size.
  bool has_blob(const RepoFile& file) const;
  bool has(const std::string& commit, const std::string& path) const;
  bool has_link(const std::string& commit, const RepoFile& file) const;  // to that blob
  // True if the repository is known not to have the file at that commit.
  bool is_absent(const std::string& commit, const std::string& path) const;
  // Files of a commit as another program listed them; nullopt: no such list.
  std::optional<std::vector<std::string>> listed(const std::string& commit) const;

  // Each write is one rename: readers see the old state or the new one.
  void link(const std::string& commit, const RepoFile& file) const;
  void note_absent(const std::string& commit, const std::string& path) const;
  void write_ref(const std::string& revision, const std::string& commit) const;

 private:
  std::filesystem::path directory_;
  std::filesystem::path locks_;
};

// The repositories of a cache, "ORG/NAME"; sorted.
std::vector<std::string> repos_in(const std::filesystem::path& root);

// The name in a path of a snapshot: "…/models--ORG--NAME/snapshots/COMMIT" → ORG/NAME. nullopt: it is no such path.
std::optional<std::string> repo_of_snapshot(const std::filesystem::path& path);

// The bytes of a file; "" if it is none that can be read.
std::string contents_of(const std::filesystem::path& path);

// Makes the directory with those above it; StartError if that is not possible.
void make_directories(const std::filesystem::path& path);

}  // namespace quire::hub
