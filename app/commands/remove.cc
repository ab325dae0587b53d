// quire rm: removes one revision of a downloaded model, once it is confirmed.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include "app/commands/commands.h"
#include "app/config/units.h"
#include "app/hub/local_models.h"
#include "app/model/embedded_model.h"
#include "core/base/start_error.h"
#include "hub/removal.h"

namespace quire::app {
namespace {

bool is_confirmed(const std::string& question) {
  if (isatty(STDIN_FILENO) != 1) throw StartError(question + " Confirm with --yes");
  fmt::print("{} [y/N] ", question);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace

int remove(const Config& config, const RemoveOptions& options) {
  if (config.model == kEmbeddedModel) throw StartError("MODEL is missing: ORG/NAME or ORG/NAME@REVISION");
  const hub::Settings settings = hub_settings(config);
  const hub::CachedRevision revision = hub::find_revision(settings.cache, model_name_of(config));
  std::uint64_t freed = 0;
  for (const std::filesystem::path& blob : hub::blobs_of(settings.cache, revision)) {
    std::error_code error;
    const bool is_link = std::filesystem::is_symlink(blob, error);  // its bytes are others', too
    if (const auto bytes = std::filesystem::file_size(blob, error); !error && !is_link) freed += bytes;
  }
  const std::string which = revision.names.empty() ? revision.commit.substr(0, 12) : revision.names.front();
  const std::string question = fmt::format("Remove {}@{}, {}, which frees {}?", revision.repo, which,
                                           bytes_text(revision.bytes), bytes_text(freed));
  if (!options.yes && !is_confirmed(question)) {
    fmt::print("nothing was removed\n");
    return 1;
  }
  hub::remove_revision(settings.cache, revision);
  fmt::print("removed {}@{}: {} freed\n", revision.repo, which, bytes_text(freed));
  return 0;
}

}  // namespace quire::app
