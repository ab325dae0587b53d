#include "app/cli/key_flags.h"

#include <fmt/format.h>

#include <optional>

#include "api/limits/key_file.h"
#include "app/cli/number_option.h"
#include "core/base/log.h"

namespace quire::app {

void KeyFlags::add(CLI::App& command, KeyOptions& key) {
  const auto add = [&command](const char* name, std::string& out, const char* help, const char* kind) {
    return command.add_option(name, out, help)->type_name(kind)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  add("--name", key.name, "name of the key, shown in metrics and in the log: 1 to 64 letters, digits and - _ .", "text")
      ->required();
  add("--role", role_,
      "permissions: user: all but /admin and /metrics; monitor: only /metrics; admin: everything [user; "
      "user|monitor|admin]",
      "choice");
  command.add_flag("--admin", admin_, "same as --role admin");
  add("--max-running", running_, "maximum running and waiting sequences [unlimited]", "count");
  add("--max-queued", queued_, "maximum waiting sequences [unlimited]", "count");
  add("--tokens-per-minute", tokens_, "maximum tokens of prompts and answers in a minute [unlimited]", "count");
  add("--tenant", key.tenant,
      "tenant: its keys share cached prefixes, and one share of the machine under policy fair [the key's name]",
      "text");
  add("--weight", weight_, "weight of the key within its tenant under policy fair [1]", "count");
  add("--file", key.file, "append the line to this file instead of printing it", "text");
}

void KeyFlags::take(KeyOptions& key, Problems& problems) const {
  constexpr std::uint32_t kMost = 4294967295u;
  convert("--max-running", running_, 1, kMost, key.limits.max_running, problems);
  convert("--max-queued", queued_, 1, kMost, key.limits.max_queued, problems);
  convert("--tokens-per-minute", tokens_, 1, kMost, key.limits.tokens_per_minute, problems);
  std::optional<std::uint32_t> weight;
  convert("--weight", weight_, 1, api::keys::kMaxWeight, weight, problems);
  key.weight = weight.value_or(key.weight);
  const std::string word = role_.empty() ? (admin_ ? "admin" : "user") : role_;
  const std::optional<api::keys::Role> role = api::keys::role_of(word);
  if (!role) problems.push_back(fmt::format("--role '{}': expected user, monitor or admin", log_safe(word)));
  key.role = role.value_or(key.role);
  if (admin_ && key.role != api::keys::Role::kAdmin)
    problems.push_back("--admin and --role differ: leave one of them out");
  constexpr const char* kExpected = "expected 1 to 64 letters, digits and the characters - _ .";
  if (!api::keys::is_name(key.name)) problems.push_back(fmt::format("--name '{}': {}", log_safe(key.name), kExpected));
  if (!key.tenant.empty() && !api::keys::is_name(key.tenant)) {
    problems.push_back(fmt::format("--tenant '{}': {}", log_safe(key.tenant), kExpected));
  }
}

}  // namespace quire::app
