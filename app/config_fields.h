// The one list of everything that can be set. Flags, environment, file, --help and docs/flags.md are made from it.
// Shape   a field is a line: name, where it is kept, default, range, which commands take its flag, help.
//         The range is what people read and what is checked: "1..65535", "1KiB..1GiB", "1ms..1h", "auto|f32=float32" (a
//         choice and another word for it), "" for any text. A list with choices takes some of them. The default "auto"
//         leaves an optional member empty.
// Thread  any; the list is constant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/config.h"
#include "core/base/result.h"

namespace quire::app {

enum CommandSet : unsigned { kServe = 1, kGenerate = 2, kBench = 4, kInspect = 8, kBuildDatastore = 16 };
inline constexpr unsigned kRunning = kServe | kGenerate | kBench;  // commands that run the model
inline constexpr unsigned kLooking = kRunning | kInspect;          // that read its weights
inline constexpr unsigned kAll = kLooking | kBuildDatastore;

using Member = std::variant<std::string Config::*, std::vector<std::string> Config::*, std::uint32_t Config::*,
                            std::optional<std::uint32_t> Config::*, Bytes Config::*, std::optional<Bytes> Config::*,
                            Duration Config::*>;

struct Field {
  std::string_view name;
  Member member;
  std::string_view fallback;
  std::string_view range;
  unsigned commands;
  std::string_view help;

  bool is_secret() const { return name == "api-key"; }  // errors do not repeat it
  bool is_list() const { return std::holds_alternative<std::vector<std::string> Config::*>(member); }
  bool is_optional() const {
    return std::holds_alternative<std::optional<std::uint32_t> Config::*>(member) ||
           std::holds_alternative<std::optional<Bytes> Config::*>(member);
  }
};

std::span<const Field> fields();
const Field* find_field(std::string_view name);

std::string flag_of(const Field& field);         // "--max-model-len"
std::string environment_of(const Field& field);  // "QUIRE_MAX_MODEL_LEN"
std::string kind_of(const Field& field);         // "count", "size", "time", "text", "list", "choice"
std::string range_text(const Field& field);      // as --help shows it: without the other words for a choice
std::string commands_text(const Field& field);   // "serve, generate"

// Puts one value, or a list's values, into `config`. Errors say what was expected.
Result<Done> store(const Field& field, std::span<const std::string> values, Config& config);

// The name nearest to `given` by edits, if any is near enough to be what was meant.
std::string nearest(std::string_view given, std::span<const std::string_view> names);

// docs/flags.md.
std::string flags_markdown();

}  // namespace quire::app
