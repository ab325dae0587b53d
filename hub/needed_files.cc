#include "hub/needed_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>

#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/readable_json.h"

namespace quire::hub {
namespace {

constexpr std::string_view kSettings[] = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates/tool_use.jinja",
    kIndexFile,
};
constexpr std::string_view kWhole = "model.safetensors";
constexpr std::size_t kNamesShown = 5;

bool has(std::span<const std::string> files, std::string_view name) {
  return std::ranges::binary_search(files, name, {}, [](const auto& file) { return std::string_view(file); });
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::vector<std::string> ending(std::span<const std::string> files, std::string_view end) {
  std::vector<std::string> out;
  std::ranges::copy_if(files, std::back_inserter(out), [&](const std::string& file) { return file.ends_with(end); });
  return out;
}

std::string some_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) {
    text += (i == 0 ? "" : ", ") + log_safe(names[i]);
  }
  return names.size() <= kNamesShown ? text : fmt::format("{} and {} more", text, names.size() - kNamesShown);
}

Error not_found(std::string message) { return {Code::kNotFound, std::move(message), "", 0, nullptr}; }

// Weights in the top directory, in one file or in those that the index names; a head's under its own name.
std::vector<std::string> plain_weights(std::span<const std::string> files) {
  if (has(files, kWhole)) return {std::string(kWhole)};
  std::vector<std::string> out;
  for (const std::string& file : ending(files, ".safetensors")) {
    const bool is_of_others = file.find('/') != file.npos || file.starts_with("consolidated") ||
                              file.starts_with("adapter_") || file.starts_with("model-0");
    if (!is_of_others) out.push_back(file);
  }
  return out;
}

std::string instead(const std::string& repo, std::span<const std::string> files) {
  const auto gguf = ending(files, ".gguf");
  if (has(files, "adapter_config.json")) return "it is an adapter, not a whole model: merge it into its base";
  if (!gguf.empty()) {
    return fmt::format("it has GGUF files ({}): name one of them, {}:QUANT", some_of(gguf), repo);
  }
  for (const std::string_view end : {".bin", ".pt", ".pth", ".ckpt"}) {
    const auto pickles = ending(files, end);
    if (!pickles.empty()) {
      return fmt::format(
          "its weights are pickles ({}), which can run programs and are never opened; look for a "
          "repository or a revision (refs/pr/…) of the same model with safetensors",
          some_of(pickles));
    }
  }
  const auto others = ending(files, ".safetensors");
  if (!others.empty()) return fmt::format("its weights are in another layout ({})", some_of(others));
  if (files.empty()) return "it is empty";
  return fmt::format("it has {}", some_of({files.begin(), files.end()}));
}

// "Q4_K_M" is in "x-Q4_K_M.gguf" and in "Q4_K_M/x-Q4_K_M-00001-of-00003.gguf".
bool names_quant(const std::string& file, const std::string& quant) {
  const std::string text = lower(file);
  const std::string wanted = lower(quant);
  for (std::size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) {
    const char after = at + wanted.size() < text.size() ? text[at + wanted.size()] : '\0';
    if (after == '.' || after == '-') return true;
  }
  return false;
}

// Weights beside those of the model: towers of images, statistics, draft heads.
bool is_of_a_model(const std::string& file) {
  const std::string text = lower(file);
  return std::ranges::none_of(std::initializer_list<const char*>{"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-"},
                              [&](const char* part) { return text.find(part) != text.npos; });
}

constexpr std::size_t kDigits = 5;  // of a part's number, and of the number of parts

// "x-00001-of-00003.gguf" → "x-" and "-of-00003.gguf"; nullopt: not a part of a split file.
std::optional<std::pair<std::string_view, std::string_view>> around_number(std::string_view file) {
  const std::size_t mark = file.rfind("-of-");
  if (mark == file.npos || mark < kDigits || file.size() != mark + 4 + kDigits + 5) return std::nullopt;
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const std::string_view before = file.substr(0, mark - kDigits);
  if (!std::ranges::all_of(file.substr(before.size(), kDigits), is_digit)) return std::nullopt;
  if (!std::ranges::all_of(file.substr(mark + 4, kDigits), is_digit)) return std::nullopt;
  return std::pair(before, file.substr(mark));
}

Result<std::vector<std::string>> gguf_files(const ModelName& name, std::span<const std::string> files) {
  std::vector<std::string> models = ending(files, ".gguf");
  std::erase_if(models, [](const std::string& file) { return !is_of_a_model(file); });
  const auto found =
      std::ranges::find_if(models, [&](const std::string& file) { return names_quant(file, name.quant); });
  if (found == models.end()) {
    return not_found(models.empty()
                         ? fmt::format("{} has no GGUF files: leave :{} out", name.repo, name.quant)
                         : fmt::format("{} has no GGUF file of {}: it has {}", name.repo, name.quant, some_of(models)));
  }
  const auto around = around_number(*found);
  if (!around) return std::vector<std::string>{*found};
  std::vector<std::string> parts;
  std::ranges::copy_if(models, std::back_inserter(parts),
                       [&](const std::string& file) { return around_number(file) == around; });
  return parts;
}

}  // namespace

std::span<const std::string_view> settings_files() { return kSettings; }

Result<NeededFiles> needed_files(const ModelName& name, std::span<const std::string> files) {
  NeededFiles out;
  if (!name.quant.empty()) {
    Result<std::vector<std::string>> weights = gguf_files(name, files);
    if (!weights) return weights.error();
    out.weights = std::move(*weights);
    return out;
  }
  for (const std::string_view one : kSettings) {
    if (has(files, one)) out.settings.emplace_back(one);
  }
  out.weights = plain_weights(files);
  const bool is_whole = has(files, kWhole);
  if (is_whole) std::erase(out.settings, kIndexFile);
  if (!is_whole && has(files, kIndexFile)) out.weights.clear();
  const bool has_weights = !out.weights.empty() || (!is_whole && has(files, kIndexFile));
  if (!has_weights) return not_found(fmt::format("{} has no safetensors: {}", name.repo, instead(name.repo, files)));
  if (!has(files, "config.json")) {
    return not_found(fmt::format("{} has no config.json, which says what kind of model it is", name.repo));
  }
  return out;
}

std::size_t num_parts(std::string_view gguf) {
  const auto around = around_number(gguf);
  std::size_t parts = 1;
  if (around) std::from_chars(around->second.data() + 4, around->second.data() + 4 + kDigits, parts);
  return parts;
}

Result<std::vector<std::string>> shards_of(std::string_view index) {
  const Result<json::Value> value = json::parse(readable_json(std::string(index)), 16);
  const json::Object* object = value ? value->if_object() : nullptr;
  const json::Value* map = object != nullptr ? object->if_contains("weight_map") : nullptr;
  std::set<std::string> names;
  bool is_good = map != nullptr && map->is_object();
  if (is_good) {
    for (const auto& [tensor, file] : map->get_object()) {
      is_good =
          is_good && file.is_string() && is_safe_path(file.get_string()) && file.get_string().ends_with(".safetensors");
      if (is_good) names.insert(file.get_string());
    }
  }
  if (!is_good || names.empty()) {
    return Error{Code::kInvalidArgument, fmt::format("{} does not name the safetensors of its weights", kIndexFile), "",
                 0, nullptr};
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace quire::hub
