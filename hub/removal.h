// The revisions in the cache, and the removal of one.
// Shape   a blob is removed with the last snapshot that has it. Of a blob that is a link into a store shared by
//         repositories the link is removed. A repository without snapshots is removed whole.
// Thread  any; remove_revision() takes the locks of the blobs that it removes.
// Fails   StartError with the next step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hub/model_name.h"

namespace quire::hub {

struct CachedRevision {
  std::string repo;
  std::string commit;
  std::vector<std::string> names;  // branches and tags
  std::filesystem::path snapshot;
  std::uint64_t bytes = 0;  // of its files; those of other revisions may be the same
};

// Sorted by repository.
std::vector<CachedRevision> cached_revisions(const std::filesystem::path& root);

// The revision that a name means in the cache; StartError if it has none, or several and the name says neither.
CachedRevision find_revision(const std::filesystem::path& root, const ModelName& name);

// Blobs that only this revision has.
std::vector<std::filesystem::path> blobs_of(const std::filesystem::path& root, const CachedRevision& revision);

void remove_revision(const std::filesystem::path& root, const CachedRevision& revision);

}  // namespace quire::hub
