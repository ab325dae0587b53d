// Translation of vLLM's and llama.cpp's command lines for `quire serve`: each flag of a command written for one of them
// either means the same here or is rejected with a reason. No flag is ignored silently.
// Shape   same: our flag of that name. mapped: ours under another name. noted: accepted without effect, with a note at
//         start; if `to` is given, only for those values, others are rejected. refused: cannot start; the text says
//         what to do instead. The --no- form of a refused switch asks for what is already so, and is noted.
//         A name that both programs have has vLLM's meaning; the row of llama.cpp says so with kVllm.
// Thread  any; the tables are constant.
// Source  vLLM 0.32.0: engine/arg_utils.py and entrypoints/launchers/cli_args.py. llama.cpp at 0c1e57098:
//         tools/server/README.md. And flags of earlier releases of both that are still found in scripts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"

namespace quire::app {

enum class Arity : std::uint8_t { kNone, kOne, kMany, kMaybe };  // kNone: a switch, with a --no- form
enum class Treatment : std::uint8_t { kSame, kMapped, kNoted, kRefused, kVllm };

struct ForeignFlag {
  std::string_view name;
  std::string_view others;  // other spellings: "-hf|-hfr|--hf-repository"
  Arity arity;
  Treatment treatment;
  // mapped: our flag; with ":s" a plain number is in seconds, with ".key" it is one key of our flag's JSON, with
  // "=value" the switch stands for that value. same: with ":GiB" a plain number is in GiB. noted: the accepted values;
  // empty: all.
  std::string_view to;
  std::string_view text;  // the reason, or what to do instead
  // mapped: the values accepted, and ours for them: "f32|q8_0=int8". "*" is any other value, unchanged; a value that
  // stands for nothing ("*=") is noted. Empty: all, unchanged.
  std::string_view values{};
};

std::span<const ForeignFlag> vllm_flags();
std::span<const ForeignFlag> llama_flags();

// The row of a flag as typed: "-c", "--ctx_size=4096". Null if there is none.
const ForeignFlag* find_foreign(std::string_view word);
std::vector<std::string_view> foreign_names();  // of all rows

struct Translated {
  std::vector<std::string> args;   // ours: "--flag=value"; words after MODEL unchanged, unknown flags unchanged
  std::vector<std::string> notes;  // one per flag without effect
};

// Translates the words after `quire serve`. Single keys of --speculative-config and --kv-events-config are combined; a
// draft model without a method is method draft_model. Dashes and underscores are equivalent, and so are "--flag value"
// and "--flag=value". A flag that takes a list takes all words after it once MODEL has been given, and one word before
// that. Of one flag given twice the last counts; two flags that set one of ours must agree.
Translated translate_foreign(std::span<const std::string> args, Problems& problems);

// The texts of docs/vllm-flags.md and docs/llama-flags.md.
std::string vllm_flags_markdown();
std::string llama_flags_markdown();

}  // namespace quire::app
