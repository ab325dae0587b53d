// Downloads one blob into the cache: resumed where an earlier try ended, verified, then renamed.
// Shape   blobs/HASH.incomplete grows until it is whole and its hash is right; blobs/HASH appears by rename.
// Owner   one worker of pull().
// Thread  the worker's; blocks.
// Fails   a Failure. What has arrived stays for the next try, unless its hash is wrong; the blob itself is whole or
//         absent at every moment. StartError: the directory cannot be written.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "hub/cache.h"
#include "hub/client.h"
#include "hub/progress.h"

namespace quire::hub {

struct BlobJob {
  const ModelName& name;
  const std::string& commit;
  const RepoFile& file;
  std::size_t index = 0;  // in Progress
};

// nullopt: the blob is in the cache. `is_locked`: the caller holds the blob's lock; otherwise nobody can hold it, and
// the part is this process's own.
std::optional<Failure> download_blob(const BlobJob& job, bool is_locked, const RepoCache& cache,
                                     const Settings& settings, Client& client, Progress& progress,
                                     const std::stop_token& stop);

// Bytes of an earlier try.
std::uint64_t bytes_of_earlier_try(const RepoCache& cache, const RepoFile& file);

}  // namespace quire::hub
