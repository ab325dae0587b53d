// Translation of vLLM's command line for `quire serve`: each flag of a command written for vLLM either means the same
// here or is rejected with a reason. No flag is ignored silently.
// Shape   same: our flag of that name. mapped: ours under another name. noted: accepted without effect, with a note at
//         start; if `to` is given, only for those values, others are rejected. refused: cannot start; the text says
//         what to do instead. The --no- form of a refused switch asks for what is already so, and is noted.
// Thread  any; the table is constant.
// Source  vLLM 0.32.0: engine/arg_utils.py and entrypoints/launchers/cli_args.py; and flags of earlier releases that
//         are still found in scripts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"

namespace quire::app {

enum class Arity : std::uint8_t { kNone, kOne, kMany, kMaybe };  // kNone: a switch, with a --no- form
enum class Treatment : std::uint8_t { kSame, kMapped, kNoted, kRefused };

struct VllmFlag {
  std::string_view name;
  std::string_view short_name;  // "-tp", or empty
  Arity arity;
  Treatment treatment;
  // mapped: our flag; with ":s" a plain number is in seconds, with ".key" it is one key of our flag's JSON. same: with
  // ":GiB" a plain number is in GiB. noted: the accepted values; empty: all.
  std::string_view to;
  std::string_view text;  // the reason, or what to do instead
};

std::span<const VllmFlag> vllm_flags();

struct Translated {
  std::vector<std::string> args;   // ours: "--flag=value"; words after MODEL unchanged, unknown flags unchanged
  std::vector<std::string> notes;  // one per flag without effect
};

// Translates the words after `quire serve`. Single keys of --speculative-config and --kv-events-config are combined.
// Dashes and underscores are equivalent, and so are "--flag value" and "--flag=value". A flag that takes a list takes
// all words after it once MODEL has been given, and one word before that.
Translated translate_vllm(std::span<const std::string> args, Problems& problems);

// The text of docs/vllm-flags.md.
std::string vllm_flags_markdown();

}  // namespace quire::app
