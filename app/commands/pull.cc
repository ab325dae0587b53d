// quire pull: downloads a model by name, or what is new of it, and prints where it lies. The built-in model and
// directories need no download.
#include "hub/pull.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <stop_token>

#include "app/commands/commands.h"
#include "app/hub/local_models.h"
#include "app/model/embedded_model.h"
#include "app/process/signals.h"

namespace quire::app {

int pull(const Config& config) {
  if (config.model == kEmbeddedModel) {
    fmt::print("{} is inside the binary; `quire pull ORG/NAME` downloads a model of the hub\n", kEmbeddedModel);
    return 0;
  }
  std::error_code error;
  if (std::filesystem::is_directory(config.model, error)) {
    fmt::print("{}\n", config.model);
    return 0;
  }
  const hub::ModelName name = model_name_of(config);
  std::stop_source stop;
  std::atomic<int> signal{0};
  Signals signals;
  signals.on_first([&](int number) {
    signal = number;
    stop.request_stop();
  });
  try {
    fmt::print("{}\n", pull_model(config, name, stop.get_token()).string());
    return 0;
  } catch (const hub::PullStopped&) {
    fmt::print(stderr, "interrupted: quire pull {} goes on where this ended\n", name.text());
    return 128 + signal;
  }
}

}  // namespace quire::app
