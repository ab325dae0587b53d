// read_file(): the only unit that includes toml++.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "app/config/config.h"
#include "app/config/config_fields.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

std::optional<std::vector<std::string>> values_of(const toml::node& node, bool is_list) {
  if (auto text = scalar_text(node)) return std::vector<std::string>{std::move(*text)};
  const auto* array = node.as_array();
  if (array == nullptr || !is_list) return std::nullopt;
  std::vector<std::string> out;
  for (const toml::node& element : *array) {
    auto text = scalar_text(element);
    if (!text) return std::nullopt;
    out.push_back(std::move(*text));
  }
  return out;
}

}  // namespace

Layer read_file(const std::string& path, Problems& problems) {
  Layer layer;
  toml::table table;
  std::error_code error_of_path;
  if (std::filesystem::is_directory(path, error_of_path)) {  // toml++ reads it as an empty file
    problems.push_back(fmt::format("--config {}: this is a directory, not a file", path));
    return layer;
  }
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    problems.push_back(fmt::format("--config {}:{}: {}", path, error.source().begin.line, error.description()));
    return layer;
  }
  for (const auto& [key, node] : table) {
    const std::string given(key.str());
    const std::string where = fmt::format("{}:{}: {}", path, node.source().begin.line, log_safe(given));
    std::string name = given;
    std::replace(name.begin(), name.end(), '_', '-');
    const Field* field = find_field(name);
    if (field == nullptr) {
      problems.push_back(fmt::format("{}: {}", path, unknown_text("key", given, "")));
    } else if (field->name == "config") {
      problems.push_back(where + ": a settings file cannot name another settings file");
    } else if (auto values = values_of(node, field->is_list())) {
      const bool is_new = layer.emplace(name, Setting{where, std::move(*values)}).second;
      if (!is_new) problems.push_back(where + ": set twice, with a dash and with an underscore");
    } else {
      problems.push_back(where + ": expected " +
                         (field->is_list() ? "a string or a list of strings" : "an integer or a string"));
    }
  }
  return layer;
}

}  // namespace quire::app
