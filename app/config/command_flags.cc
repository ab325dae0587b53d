#include "app/config/command_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/config/foreign_flags.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

std::string nearest_flag(const std::string& word, const CLI::App& command) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string_view> names = {"help"};
  for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& one : option->get_lnames()) names.push_back(one);
  }
  std::string plain = name.substr(std::min(name.size(), name.find_first_not_of('-')));
  std::replace(plain.begin(), plain.end(), '_', '-');
  const std::string own = nearest_or_longer(plain, names);
  const bool translates = command.get_name() == "serve";
  return own.empty() && translates ? nearest_or_longer(plain, foreign_names()) : own;
}

// A flag that only other commands have is reported as theirs: suggesting it would lead to the same error again.
std::string unknown_flag(const std::string& word, const CLI::App& command) {
  const auto has = [&](std::string_view name) {
    return command.get_option_no_throw(fmt::format("--{}", name)) != nullptr;
  };
  const Field* field = field_named(word);
  if (field != nullptr && !has(field->name)) {
    return fmt::format("unknown flag {}: it belongs to {}, not to {}", log_safe(word), commands_text(*field),
                       command.get_name());
  }
  std::string suggestion;
  if (const ForeignFlag* row = field == nullptr ? find_foreign(word) : nullptr; row != nullptr) {
    const std::string target(row->treatment == Treatment::kMapped ? row->to.substr(0, row->to.find_first_of(":.="))
                                                                  : "");
    if (!has(row->name) && !has(target)) {
      return fmt::format("unknown flag {}: only serve reads this flag of vLLM or llama.cpp", log_safe(word));
    }
    suggestion = has(row->name) ? std::string(row->name) : target;
  } else {
    suggestion = nearest_flag(word, command);
  }
  if (suggestion.empty()) return unknown_text("flag", word, "--");
  return fmt::format("unknown flag {}: did you mean --{}?", log_safe(word), suggestion);
}

}  // namespace

void add_fields(CLI::App& command, CommandSet bit, Typed& typed) {
  for (const Field& field : fields()) {
    if ((field.commands & bit) == 0) continue;
    std::string names = flag_of(field);
    if (field.name == "model") names += ",MODEL";
    const std::string group(groups()[static_cast<std::size_t>(field.group)].title);
    const std::string help(field.help);
    if (field.is_switch()) {
      command.add_flag(names + "{on}", typed[field.name], help)->group(group);
      continue;
    }
    CLI::Option* option = command.add_option(names, typed[field.name], help)->type_name(kind_of(field))->expected(1);
    option->group(group);
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
