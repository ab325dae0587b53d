// Brings a model of a hub into the cache on disk.
// Shape   list the repository; settings; the caller's check of them; weights, several at a time; then the reference
//         from the revision to its commit, so that no reader finds a model that is not whole.
// Owner   the caller; any number of processes may pull the same model at a time.
// Thread  one, which blocks; `stop` ends it within a second, and what has arrived is kept.
// Fails   StartError with the next step; PullStopped if `stop` asked.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "hub/model_name.h"
#include "hub/progress.h"
#include "hub/settings.h"

namespace quire::hub {

struct PullStopped : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Throws StartError if the model with these settings cannot be served; called before weights are downloaded.
using CheckSettings = std::function<void(const std::filesystem::path& snapshot)>;

struct PulledModel {
  std::filesystem::path snapshot;  // its directory; of a GGUF quantisation: its first file
  std::string commit;
};

PulledModel pull(const Settings& settings, const ModelName& name, const CheckSettings& check, Progress& progress,
                 const std::stop_token& stop);

// The model in the cache, without any request. nullopt: it is not there, or not whole.
std::optional<PulledModel> find_pulled(const Settings& settings, const ModelName& name);

// As find_pulled(), but the cache need not know whether optional files exist.
std::optional<PulledModel> find_usable(const Settings& settings, const ModelName& name);

}  // namespace quire::hub
