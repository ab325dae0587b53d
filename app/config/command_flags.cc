#include "app/config/command_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/log.h"

namespace quire::app {
namespace {

// A flag that only other commands have is reported as theirs: suggesting it would lead to the same error again.
std::string unknown_flag(const std::string& word, const CLI::App& command) {
  const Field* field = field_named(word);
  const bool has = field != nullptr && command.get_option_no_throw(flag_of(*field)) != nullptr;
  if (field == nullptr || has) return unknown_text("flag", word, "--");
  return fmt::format("unknown flag {}: it belongs to {}, not to {}", log_safe(word), commands_text(*field),
                     command.get_name());
}

}  // namespace

void add_fields(CLI::App& command, CommandSet bit, Typed& typed) {
  for (const Field& field : fields()) {
    if ((field.commands & bit) == 0) continue;
    std::string names = flag_of(field);
    if (field.name == "model") names += ",MODEL";
    std::string help(field.help);
    help += fmt::format(" [{}{}{}]", field.fallback.empty() ? "" : fmt::format("{}; ", field.fallback),
                        field.range.empty() ? "" : fmt::format("{}; ", range_text(field)), environment_of(field));
    if (field.is_switch()) {
      command.add_flag(names + "{on}", typed[field.name], help);
      continue;
    }
    CLI::Option* option = command.add_option(names, typed[field.name], help)->type_name(kind_of(field))->expected(1);
    // All values of MODEL are collected, too, so that a second one can be rejected.
    const bool take_all = field.is_list() || field.name == "model";
    if (!take_all) option->allow_extra_args(false);  // the word after the value is MODEL
    option->multi_option_policy(take_all ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
  }
}

Layer take_settings(const CLI::App& command, Typed& typed, Problems& problems) {
  bool flag_unknown = false;
  for (const std::string& word : command.remaining()) {
    if (!word.starts_with('-')) continue;
    flag_unknown = true;
    problems.push_back(unknown_flag(word, command));
  }
  const std::vector<std::string>& models = typed["model"];
  if (models.size() > 1 && !flag_unknown) {  // otherwise it may be the value of the unknown flag
    problems.push_back(fmt::format("unexpected word {}: only one MODEL is allowed", log_safe(models[1])));
  }
  Layer settings;
  for (auto& [name, values] : typed) {
    if (!values.empty()) settings[std::string(name)] = Setting{fmt::format("--{}", name), std::move(values)};
  }
  return settings;
}

const Field* field_named(const std::string& flag) {
  if (!flag.starts_with("--")) return nullptr;
  std::string name = flag.substr(2, flag.find('=') - 2);
  std::replace(name.begin(), name.end(), '_', '-');
  return find_field(name);
}

}  // namespace quire::app
