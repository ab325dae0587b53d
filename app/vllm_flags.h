// vLLM's command line, flag by flag: what `quire serve` makes of each, so that a command written for vLLM either means
// the same here or is refused with a reason. No flag is dropped in silence.
// Shape   same: our flag of that name. mapped: ours under another name. noted: accepted, no effect, said once at start;
//         with `to`, only for those values, refused for others. refused: cannot start, with what to do instead.
//         The --no- form of a refused switch asks for what is already so, and is noted.
// Thread  any; the table is constant.
// Source  vLLM 0.32.0: engine/arg_utils.py and entrypoints/launchers/cli_args.py; flags of earlier releases where they
//         are still seen in scripts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.h"

namespace quire::app {

enum class Arity : std::uint8_t { kNone, kOne, kMany, kMaybe };  // kNone: a switch, with a --no- form
enum class Treatment : std::uint8_t { kSame, kMapped, kNoted, kRefused };

struct VllmFlag {
  std::string_view name;
  std::string_view short_name;  // "-tp", or empty
  Arity arity;
  Treatment treatment;
  // mapped: our flag, ":s" where a plain number means seconds, ".key" where it is one key of our flag's JSON. same: ":GiB"
  // where a plain number means that. noted: the values accepted, empty: all.
  std::string_view to;
  std::string_view text;  // why, or what to do
};

std::span<const VllmFlag> vllm_flags();

struct Translated {
  std::vector<std::string> args;   // ours: "--flag=value", what follows MODEL as it was, unknown flags untouched
  std::vector<std::string> notes;  // one a flag that has no effect
};

// What follows `quire serve`. Keys of --speculative-config and --kv-events-config that are given one by one are put together. Dashes and underscores are the same; "--flag value" and "--flag=value" too. A flag that
// takes a list takes the words after it once MODEL has been given, one word before.
Translated translate_vllm(std::span<const std::string> args, Problems& problems);

// docs/vllm-flags.md.
std::string vllm_flags_markdown();

}  // namespace quire::app
