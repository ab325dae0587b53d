// What the cache holds, and the removal of one revision.
// Shape   a blob goes with the last snapshot that has it; a blob that is a link into a store shared by repositories goes
//         as a link, its bytes stay. A repository without snapshots goes whole.
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
