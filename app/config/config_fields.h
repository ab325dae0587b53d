// The list of all settings. Flags, environment variables, file keys, --help and docs/flags.md are generated from it.
// Shape   one line per field: name, member, default, range, commands that take its flag, group, help.
//         A range is both shown and checked: "1..65535", "1KiB..1GiB", "1ms..1h", "auto|f32=float32" (choices, with
//         an alternative word for the second), "" for any text. A list with choices takes some of them. The default
//         "auto" leaves an optional member empty.
// Thread  any; the list is constant.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/config/config.h"
#include "core/base/result.h"

namespace quire::app {

enum CommandSet : unsigned {
  kServe = 1,
  kGenerate = 2,
  kBench = 4,
  kInspect = 8,
  kBuildDatastore = 16,
  kPull = 32,
  kList = 64,
  kRemove = 128,
  kPs = 256,
  kStop = 512,
  kDoctor = 1024,
  kQuantize = 2048
};
inline constexpr unsigned kRunning = kServe | kGenerate | kBench;             // commands that run the model
inline constexpr unsigned kLooking = kRunning | kInspect | kDoctor;           // commands that read its weights
inline constexpr unsigned kReading = kLooking | kBuildDatastore | kQuantize;  // commands that read a model
inline constexpr unsigned kNaming = kReading | kPull | kRemove;               // commands that take MODEL
inline constexpr unsigned kAll = kNaming | kList | kPs | kStop;

// The sections of --help and of docs/flags.md, in their order.
enum class Group : std::uint8_t {
  kModel,
  kApi,
  kServer,
  kSecurity,
  kCompute,
  kMemory,
  kScheduling,
  kSpeculation,
  kLogs
};
struct GroupName {
  Group group;
  std::string_view topic;  // in --help=TOPIC
  std::string_view title;
};
std::span<const GroupName> groups();  // one per Group, in order

// The range of a switch: its flag needs no value.
inline constexpr std::string_view kSwitch = "off=false|off=0|on=true|on=1";

using Member = std::variant<std::string Config::*, std::vector<std::string> Config::*, std::uint32_t Config::*,
                            std::optional<std::uint32_t> Config::*, Bytes Config::*, std::optional<Bytes> Config::*,
                            Duration Config::*>;

struct Field {
  std::string_view name;
  Member member;
  std::string_view fallback;
  std::string_view range;
  unsigned commands;
  Group group;
  std::string_view help;

  bool is_secret() const { return name == "api-key"; }  // errors do not repeat the value
  bool is_switch() const { return range == kSwitch; }
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
std::string kind_of(const Field& field);         // "count", "size", "time", "text", "list", "choice", "switch"
std::string range_text(const Field& field);      // as docs/flags.md shows it: without alternative words
std::vector<std::string_view> choices(const Field& field);  // without alternative words; empty if it has no choices
std::string commands_text(const Field& field);              // "serve, generate"

// Stores one value, or all values of a list, in `config`. Errors say what was expected.
Result<Done> store(const Field& field, std::span<const std::string> values, Config& config);

// The name with the smallest edit distance to `given`; empty if none is near enough.
std::string nearest(std::string_view given, std::span<const std::string_view> names);
// The same; or, of a word of three letters or more, the only name that begins with it.
std::string nearest_or_longer(std::string_view given, std::span<const std::string_view> names);

// The text of docs/flags.md.
std::string flags_markdown();

}  // namespace quire::app
