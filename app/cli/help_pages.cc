#include "app/cli/help_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/cli/command_texts.h"
#include "app/cli/word_wrap.h"
#include "app/config/command_flags.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

constexpr std::size_t kManyOptions = 40;  // more of them get a first page that explains some
constexpr std::size_t kIndent = 6;        // of an explanation
constexpr std::string_view kOwnGroup = "Options";

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return out;
}

std::string first_sentence(std::string_view text) { return std::string(text.substr(0, text.find(". "))); }

// "-y, --yes", "--port COUNT", "MODEL, --model MODEL"
std::string head_of(const CLI::Option& option) {
  std::string out = "  ";
  if (option.get_positional()) out += option.get_name(true, false) + ", ";
  for (const std::string& name : option.get_snames()) out += fmt::format("-{}, ", name);
  out += flag_name(option);
  const Field* field = field_named(flag_name(option));
  if (field != nullptr && field->is_switch()) return out + "[=off]";
  if (option.get_expected_max() == 0) return out;
  return out + " " + (option.get_positional() ? option.get_name(true, false) : upper(option.get_type_name()));
}

// Default, range and environment variable of a field; none of them is broken.
std::string facts_of(const Field& field, std::size_t width) {
  std::vector<std::string> facts;
  if (!field.fallback.empty()) facts.push_back(fmt::format("[default: {}]", field.fallback));
  if (!field.range.empty() && choices(field).empty()) facts.push_back(fmt::format("[range: {}]", range_text(field)));
  facts.push_back(fmt::format("[env: {}]", environment_of(field)));
  return in_lines(facts, kIndent, width);
}

// As a sentence: descriptions of options begin with a small letter. A first word with a colon may be a value.
std::string sentence(std::string text) {
  const bool is_small = !text.empty() && text.front() >= 'a' && text.front() <= 'z';
  const std::size_t end = text.find(' ');
  if (is_small && (end == text.npos || text[end - 1] != ':')) text.front() = static_cast<char>(text.front() - 32);
  const bool is_whole = text.empty() || text.back() == '.' || text.back() == ']';
  return is_whole ? text : text + ".";
}

std::string entry(const CLI::Option& option, std::size_t width) {
  const Field* field = field_named(flag_name(option));
  std::string out = head_of(option) + "\n";
  if (field == nullptr) return out + wrapped(sentence(option.get_description()), kIndent, width);
  out += wrapped(sentence(std::string(field->help)), kIndent, width);
  const bool shows_choices = !choices(*field).empty() && !field->is_switch();
  if (shows_choices) out += wrapped(fmt::format("One of: {}.", fmt::join(choices(*field), ", ")), kIndent, width);
  return out + facts_of(*field, width);
}

std::vector<const CLI::Option*> in_group(const CLI::App& command, std::string_view title) {
  std::vector<const CLI::Option*> out = visible_options(command);
  std::erase_if(out, [&](const CLI::Option* option) { return option->get_group() != title; });
  return out;
}

std::string entries(std::string_view title, const std::vector<const CLI::Option*>& options, std::size_t width) {
  if (options.empty()) return "";
  std::string out = fmt::format("\n{}:\n", title);
  for (const CLI::Option* option : options) out += entry(*option, width);
  return out;
}

std::string topics_text(const CLI::App& command) {
  std::string out;
  for (const GroupName& group : groups()) {
    if (!in_group(command, group.title).empty()) out += fmt::format("{}, ", group.topic);
  }
  return out;
}

std::string beginning(const CLI::App& command, std::size_t width) {
  const std::string name = command.get_name();
  const CommandText* text = find_command_text(name);
  std::string usage = fmt::format("Usage: quire {} [OPTIONS]", name);
  if (text != nullptr && !text->words.empty()) usage += fmt::format(" {}", text->words);
  std::string out = wrapped(command.get_description() + ".", 0, width) + "\n" + wrapped(usage, 0, width);
  if (text == nullptr) return out;
  out += "\nExamples:\n";
  for (const Example& example : text->examples) {
    out += fmt::format("  {}\n{}", example.line, wrapped(example.text, kIndent, width));
  }
  return out;
}

std::string help_entry(const CLI::App& command, std::size_t width) {
  const std::string topics = topics_text(command);
  const std::string text =
      topics.empty() ? "Print this page."
                     : fmt::format("Print this page; or, of a TOPIC: {}all, or a flag's name or a part of it.", topics);
  return fmt::format("  -h, --help{}\n", topics.empty() ? "" : "[=TOPIC]") + wrapped(text, kIndent, width);
}

std::string own_options(const CLI::App& command, std::size_t width) {
  const auto own = in_group(command, kOwnGroup);
  return (own.empty() ? fmt::format("\n{}:\n", kOwnGroup) : entries(kOwnGroup, own, width)) +
         help_entry(command, width);
}

std::string all_groups(const CLI::App& command, std::size_t width) {
  std::string out;
  for (const GroupName& group : groups()) out += entries(group.title, in_group(command, group.title), width);
  return out;
}

std::string most_used(const CLI::App& command, std::size_t width) {
  constexpr std::size_t kColumn = 28;
  std::string out = "\nMost used settings:\n";
  for (const std::string_view name : most_used_fields()) {
    const CLI::Option* option = command.get_option_no_throw(fmt::format("--{}", name));
    if (option == nullptr) continue;
    out += with_head(option->get_positional() ? "  MODEL" : head_of(*option), first_sentence(find_field(name)->help),
                     kColumn, width);
  }
  return out;
}

std::string names_by_group(const CLI::App& command, std::size_t width) {
  constexpr std::size_t kColumn = 15;
  std::string out =
      "\n" + wrapped(fmt::format("All settings, by topic; quire {} --help=TOPIC explains them:", command.get_name()), 0,
                     width);
  for (const GroupName& group : groups()) {
    std::vector<std::string> names;
    for (const CLI::Option* option : in_group(command, group.title)) names.push_back(flag_name(*option));
    if (!names.empty()) {
      out += with_head(fmt::format("  {}", group.topic), fmt::format("{}", fmt::join(names, ", ")), kColumn, width);
    }
  }
  return out;
}

std::string ending(std::size_t width) {
  return "\n" +
         wrapped("Settings can also be given as QUIRE_… variables or in a TOML file: see docs/flags.md.", 0, width);
}

std::string first_page(const CLI::App& command, std::size_t width) {
  const bool is_long = visible_options(command).size() > kManyOptions;
  std::string out = beginning(command, width) + own_options(command, width);
  out += is_long ? most_used(command, width) + names_by_group(command, width) : all_groups(command, width);
  return topics_text(command).empty() ? out : out + ending(width);
}

// The options that a topic names: those of a group, one flag, or all whose names contain it.
std::vector<const CLI::Option*> options_about(const CLI::App& command, const std::string& topic) {
  for (const GroupName& group : groups()) {
    if (topic == group.topic || topic == lower(group.title)) return in_group(command, group.title);
  }
  std::vector<const CLI::Option*> out = visible_options(command);
  const auto is_named = [&](const CLI::Option* option) { return flag_name(*option) == "--" + topic; };
  const auto at = std::ranges::find_if(out, is_named);
  if (at != out.end()) return {*at};
  std::erase_if(out, [&](const CLI::Option* option) { return flag_name(*option).find(topic) == std::string::npos; });
  return out;
}

}  // namespace

std::string root_help(const CLI::App& root, std::size_t width) {
  constexpr std::size_t kColumn = 19;
  std::string out =
      wrapped(root.get_description(), 0, width) + "\nUsage: quire COMMAND [OPTIONS] [MODEL]\n\nCommands:\n";
  std::vector<const CLI::App*> commands = root.get_subcommands([](const CLI::App*) { return true; });
  std::ranges::stable_sort(commands, {}, [](const CLI::App* command) {
    const CommandText* text = find_command_text(command->get_name());
    return text == nullptr ? command_texts().size() : static_cast<std::size_t>(text - command_texts().data());
  });
  for (const CLI::App* command : commands) {
    out += with_head("  " + command->get_name(), command->get_description(), kColumn, width);
  }
  out += with_head("  help", "Print the help of a command", kColumn, width);
  out += with_head("  version", "Print the version", kColumn, width);
  out += "\nExamples:\n";
  for (const char* name : {"serve", "chat", "generate"}) {
    const Example& example = find_command_text(name)->examples[1];
    out += fmt::format("  {}\n{}", example.line, wrapped(example.text, kIndent, width));
  }
  out += "\n" + wrapped("quire COMMAND --help explains a command and has examples of it.", 0, width);
  return out +
         wrapped("Settings can also be given as QUIRE_… variables or in a TOML file: see docs/flags.md.", 0, width);
}

Result<std::string> command_help(const CLI::App& command, std::string_view topic, std::size_t width) {
  if (topic.empty()) return first_page(command, width);
  if (topic == "all") {
    return beginning(command, width) + own_options(command, width) + all_groups(command, width) + ending(width);
  }
  if (topic == "flags") {
    std::string out;
    for (const CLI::Option* option : visible_options(command)) out += flag_name(*option) + "\n";
    return out + "--help\n";
  }
  std::string name = lower(topic.substr(std::min(topic.size(), topic.find_first_not_of('-'))));
  std::ranges::replace(name, '_', '-');
  const auto options = options_about(command, name);
  if (options.empty() || name.empty()) {
    return invalid("", fmt::format("--help={}: expected {}all, or a flag's name or a part of it", log_safe(topic),
                                   topics_text(command)));
  }
  std::string out;
  for (const GroupName& group : groups()) {
    std::vector<const CLI::Option*> some = options;
    std::erase_if(some, [&](const CLI::Option* option) { return option->get_group() != group.title; });
    out += entries(group.title, some, width);
  }
  std::vector<const CLI::Option*> own = options;
  std::erase_if(own, [&](const CLI::Option* option) { return option->get_group() != kOwnGroup; });
  out = entries(kOwnGroup, own, width) + out;
  return out.substr(1);  // without the empty line before the first group
}

const char* help_topic(const std::string& word) {
  constexpr std::string_view kWithTopic = "--help=";
  if (word == "-h" || word == "--help") return "";
  return word.starts_with(kWithTopic) ? word.c_str() + kWithTopic.size() : nullptr;
}

std::vector<const CLI::Option*> visible_options(const CLI::App& command) {
  std::vector<const CLI::Option*> out;
  for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; })) {
    if (!option->get_group().empty() && !option->get_lnames().empty()) out.push_back(option);
  }
  return out;
}

std::string flag_name(const CLI::Option& option) { return "--" + option.get_lnames().front(); }

}  // namespace quire::app
