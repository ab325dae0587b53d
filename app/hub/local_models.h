// Models by name: a MODEL or draft model that is no directory but a name of a hub becomes a directory of the cache,
// downloaded first where it is missing.
// Thread  main, while starting; `on_progress` is called by the display's thread.
// Fails   StartError with the next step; hub::PullStopped if `stop` asked.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "app/config/config.h"
#include "hub/model_name.h"
#include "hub/settings.h"

namespace quire::app {

using OnProgress = std::function<void(double fraction)>;

// The settings with directories in place of names. Whatever is in the cache is used without a request.
Config with_local_models(Config config, const std::stop_token& stop = {}, const OnProgress& on_progress = nullptr);

// The name that MODEL gives together with --revision; StartError if both name a revision and differ.
hub::ModelName model_name_of(const Config& config);
hub::Settings hub_settings(const Config& config);

// Downloads what is missing or new; shows the progress. The result is a directory, or a GGUF file.
std::filesystem::path pull_model(const Config& config, const hub::ModelName& name, const std::stop_token& stop,
                                 const OnProgress& on_progress = nullptr);

}  // namespace quire::app
