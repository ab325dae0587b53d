// Turns the arguments of one call, in the spelling of the model, into the text of a JSON object while they arrive.
// Owner   one per call.
// Thread  one at a time.
// Fails   take(): kFault.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "api/answer/calls/call_format.h"
#include "api/answer/calls/callable_tool.h"

namespace quire::api::chat {

enum class ArgumentsState : std::uint8_t {
  kMore,
  kDone,         // the byte ended the arguments, or the mark behind them
  kDoneBefore,   // the arguments were complete before this byte
  kSectionDone,  // the byte ended the mark behind the section of calls
  kFault,        // the byte fits no arguments
};

class ArgumentsReader {
 public:
  virtual ~ArgumentsReader() = default;
  // Appends to `json`. Text that is no arguments at all is a kFault before anything is appended.
  virtual ArgumentsState take(char c, std::string& json) = 0;
  // The answer has ended: closes arguments that are complete but for their last mark.
  virtual void finish(std::string&) {}
};

// The reader for what follows the name of `tool`, which outlives it. Of kJson, kTagged and kLiterals.
std::unique_ptr<ArgumentsReader> make_arguments_reader(const CallSyntax& syntax, const CallableTool& tool);

}  // namespace quire::api::chat
