// The formats in which models write tool calls: a row for each, which the parser, the grammar of forced calls, and the
// calls that this server writes into prompts are made from.
//   section   begin call (between call)* end; in a list, [ before the first call and ] behind the last one
//   call      as CallStyle says: one JSON object, or open, the tool's name, name_end, arguments, close
// Shape   texts are spelled as in the published templates. White space at their ends is written; it need not be read.
// Owner   constants.
// Thread  any.
// Source  the chat templates of the models; `parser` is vLLM's name of the same format, where it has one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace quire::api::chat {

enum class CallFormat : std::uint8_t {
  kNone,     // calls are not read: they are content
  kGeneric,  // Hermes for a model whose template teaches no format: plain_conversation.h describes it in the prompt
  kHermes,   // and Qwen 2.5, Qwen 3, Granite 4, ERNIE 4.5, SmolLM 3
  kLlamaJson,
  kPythonic,     // Llama 3.2 and 4
  kMistral,      // [TOOL_CALLS][{...}, ...]: up to Nemo and Small 3.1
  kMistralArgs,  // [TOOL_CALLS]name[ARGS]{...}: from Small 3.2 on
  kGranite,      // Granite 3
  kPhi4Mini,
  kFunctools,  // Phi-4-mini with the template of vLLM
  kToolCalls,  // <tool_calls>: Hunyuan-A13B, Jamba, MiniMax M1, Apriel
  kHunyuan,    // <tool_calls><tool_call>name: Hunyuan 0.5B to 7B
  kNemotron,
  kInternLm,
  kCommand,   // Command R7B and A
  kCommandR,  // Command R and R+
  kApertus,
  kDeepSeekV3,  // and R1
  kDeepSeekV31,
  kDeepSeekV32,
  kDeepSeekV4,
  kKimiK2,
  kSolarOpen,
  kFunctionTag,  // <function=name>{...}</function>: Functionary 3.1, Llama 3.1
  kFunctionary,  // >>>name: Functionary 3.2
  kGlm4,         // GLM-4-0414
  kGlm45,
  kGlm47,
  kHyV3Preview,  // <tool_sep>: Hunyuan 3, before its release
  kHyV3,         // as released: every mark has a suffix
  kQwen3Coder,   // and Qwen 3.5, Nemotron 3, Step 3.5
  kSeedOss,
  kMiniMaxM2,
  kMiroThinker,
  kLfm2,
  kOlmo3,
  kFunctionGemma,
  kGemma4,
  kHarmony,  // gpt-oss
};

enum class CallStyle : std::uint8_t {
  kObject,    // {"name": "f", "arguments": {...}}
  kNameKey,   // {"f": {...}}
  kJson,      // the name, then a JSON object
  kTagged,    // the name, then parameters between marks: <parameter=city>Oslo</parameter>
  kLiterals,  // the name, then keys with Python literals: (city="Oslo"), or with the strings of Gemma
  kOwn,       // a parser and a grammar of its own
};

// Parameters of kTagged and kLiterals.
struct ParameterSyntax {
  std::string_view key_begin{};
  std::string_view key_end{};
  std::string_view string_begin{};  // between key_end and a string
  std::string_view other_begin{};   // between key_end and any other value
  std::string_view end{};           // behind the value
  std::string_view between{};       // two parameters
  std::string_view quote{};         // kLiterals: around strings; empty: Python's and JSON's quotes
};

struct CallSyntax {
  CallFormat format = CallFormat::kNone;
  std::string_view parser{};  // value of --tool-call-parser
  CallStyle style = CallStyle::kObject;

  std::string_view begin{};  // empty: calls have no mark before them
  // Read as well where a section begins: another mark, or the one before a call.
  std::array<std::string_view, 2> other_begins{};
  std::string_view between{};
  std::string_view end{};
  std::string_view other_end{};  // read as well
  bool is_list = false;
  bool is_bare = false;         // an answer may be calls without `begin`
  bool one_each = false;        // every call has a section of its own
  bool is_numbered = false;     // a colon and the call's number follow the name
  bool has_id = false;          // an id, which is not read, stands between `open` and name_mark
  bool reads_names = false;     // kObject: calls of kJson are read, too
  bool ends_reasoning = false;  // models call from within reasoning, without its end mark

  std::string_view name_key = "name";            // kObject
  std::string_view arguments_key = "arguments";  // kObject

  std::string_view open{};
  std::string_view name_mark{};    // the part of `open` in front of the name, or behind has_id's; empty: all of `open`
  std::string_view name_end{};     // up to `fence`
  std::string_view fence{};        // may stand before the arguments of kJson, or before the list of kObject
  std::string_view fence_close{};  // may stand behind the arguments of kJson
  std::string_view close{};
  ParameterSyntax parameter{};

  // Marks that may be special tokens of a tokenizer: these must not be skipped in the text.
  std::span<const std::string_view> marks{};
};

std::span<const CallSyntax> call_syntaxes();
const CallSyntax& syntax_of(CallFormat format);  // of kNone, too

// The format that the marks in a template's text show; kGeneric: none.
CallFormat call_format_of(std::string_view source);

// The mark that begins a section, as it is read: without white space at its ends.
std::string_view trimmed(std::string_view text);

}  // namespace quire::api::chat
