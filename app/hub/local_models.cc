#include "app/hub/local_models.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>

#include "app/hub/download_display.h"
#include "app/model/embedded_model.h"
#include "app/model/engine_settings.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/arch/config.h"
#include "core/model/source/model_files.h"
#include "core/speculate/speculative_config.h"
#include "hub/pull.h"

namespace quire::app {
namespace {

enum class Role : std::uint8_t { kModel, kDraft, kAny };

// A draft may be a head, whose config.json is read with its target's.
hub::CheckSettings check_for(Role role) {
  return [role](const std::filesystem::path& snapshot) {
    const auto files = model::ModelFiles::directory(snapshot.string());
    const bool has_tokenizer = files->find("tokenizer.json").has_value();
    if (role == Role::kModel && !has_tokenizer) {
      throw StartError(
          fmt::format("{} is missing: the repository has its tokenizer in another form, or is a draft head",
                      files->describe("tokenizer.json")));
    }
    if (role == Role::kModel || (role == Role::kAny && has_tokenizer)) model::load_config(*files);
  };
}

bool is_name(const std::string& model) {
  std::error_code error;
  return !model.empty() && hub::looks_like_model_name(model) && !std::filesystem::exists(model, error);
}

std::filesystem::path pull_shown(const hub::Settings& settings, const hub::ModelName& name, Role role,
                                 const std::stop_token& stop, const OnProgress& on_progress) {
  hub::Progress progress;
  const DownloadDisplay display(name.text(), progress, on_progress);
  return hub::pull(settings, name, check_for(role), progress, stop).snapshot;
}

std::filesystem::path local(const Config& config, const hub::ModelName& name, Role role, const std::stop_token& stop,
                            const OnProgress& on_progress) {
  hub::Settings settings = hub_settings(config);
  if (const auto there = hub::find_pulled(settings, name)) return there->snapshot;
  // Another program may have downloaded all of it; only the hub knows.
  const std::optional<hub::PulledModel> usable = hub::find_usable(settings, name);
  if (settings.offline) {
    if (usable) return usable->snapshot;
    throw StartError(
        fmt::format("{} is not in {}, and HF_HUB_OFFLINE forbids to download it: `quire list` shows what is",
                    name.text(), settings.cache.string()));
  }
  hub::ModelName wanted = name;
  if (usable) {  // that revision is completed; only `pull` looks for a newer one
    wanted.revision = usable->commit;
    settings.max_attempts = 1;
    settings.silence = std::chrono::seconds(5);
  }
  try {
    return pull_shown(settings, wanted, role, stop, on_progress);
  } catch (const StartError& error) {
    if (!usable) throw;
    log_warn("hub_not_asked", "{}: what is in the cache is used as it is: {}", name.text(), error.what());
    return usable->snapshot;
  }
}

}  // namespace

hub::Settings hub_settings(const Config& config) {
  return hub::read_settings(environ, config.download_dir, config.allow_http_hub == "on");
}

hub::ModelName model_name_of(const Config& config) {
  const Result<hub::ModelName> name = hub::parse_model_name(config.model);
  if (!name) throw StartError("MODEL " + name.error().message);
  if (config.revision == hub::kMainRevision) return *name;
  if (!hub::is_revision(config.revision)) {
    throw StartError(fmt::format("--revision '{}': expected a branch, a tag or a commit", log_safe(config.revision)));
  }
  if (name->revision != hub::kMainRevision && name->revision != config.revision) {
    throw StartError(
        fmt::format("--revision {} and MODEL {} name two revisions: leave one out", config.revision, config.model));
  }
  hub::ModelName out = *name;
  out.revision = config.revision;
  return out;
}

std::filesystem::path pull_model(const Config& config, const hub::ModelName& name, const std::stop_token& stop,
                                 const OnProgress& on_progress) {
  const hub::Settings settings = hub_settings(config);
  if (settings.offline) throw StartError("HF_HUB_OFFLINE is set: unset it to download models");
  return pull_shown(settings, name, Role::kAny, stop, on_progress);
}

Config with_local_models(Config config, const std::stop_token& stop, const OnProgress& on_progress) {
  if (config.model != kEmbeddedModel && is_name(config.model)) {
    config.model = local(config, model_name_of(config), Role::kModel, stop, on_progress).string();
  } else if (config.revision != hub::kMainRevision) {
    throw StartError(fmt::format("--revision {} is for a MODEL given by name (ORG/NAME), and MODEL is {}",
                                 log_safe(config.revision), config.model));
  }
  if (config.speculative_config.empty()) return config;
  for (const std::string& model : speculation_of(config).models) {
    if (!is_name(model)) continue;
    const Result<hub::ModelName> name = hub::parse_model_name(model);
    if (!name) throw StartError("--speculative-config: " + name.error().message);
    config.draft_snapshots[model] = local(config, *name, Role::kDraft, stop, on_progress).string();
  }
  return config;
}

}  // namespace quire::app
