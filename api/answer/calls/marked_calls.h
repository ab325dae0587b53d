// The CallParser of every format that call_format.h spells out.
//   text → the mark that begins a section → calls, as objects or as names with arguments → the mark that ends it → text
// Shape   as call_parser.h says. Where a format has no mark, or allows to leave it out, the answer's first byte decides
//         whether it is calls. Objects are read in every format, whatever its own style is.
// Owner   one per answer. Borrows the tools.
// Thread  one at a time.
// Fails   never. Time is linear in the text: what is held before a call is certain is read again once, and has at most
//         256 bytes, unless it is an object.
// Source  the rows of call_format.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/answer/calls/arguments_reader.h"
#include "api/answer/calls/call_format.h"
#include "api/answer/calls/call_parser.h"
#include "api/answer/calls/call_reader.h"
#include "api/answer/calls/callable_tool.h"
#include "api/answer/parts/marker_scanner.h"

namespace quire::api::chat {

class MarkedCalls final : public CallParser {
 public:
  MarkedCalls(const CallSyntax& syntax, std::span<const CallableTool> tools);

  void take(char c, Deltas& out) override;
  void finish(Deltas& out) override;

 private:
  enum class State : std::uint8_t {
    kBegin,  // at the beginning of an answer that may be calls without a mark
    kText,
    kItem,    // in a section: expects a call, or the [ of a list
    kObject,  // inside a call's object
    kHead,    // up to the arguments: the name, and the marks around it
    kArguments,
    kBehind,  // behind a call
    kBroken,  // everything up to the next mark is arguments
  };

  void take_begin(char c, Deltas& out);
  void take_text(char c, Deltas& out);
  void begin_section(const MarkerScanner& scanner);
  void take_item(char c, Deltas& out);
  void take_object(char c, Deltas& out);
  void take_head(char c, Deltas& out);
  void take_arguments(char c, Deltas& out);
  void take_behind(char c, Deltas& out);
  void take_broken(char c, Deltas& out);

  bool begins_bare(char c) const;
  bool reads_names() const;
  bool begins_name(char c) const;
  bool is_next_call() const;
  void begin_object(char c, Deltas& out);
  bool ends_head(char c) const;
  bool fits_head(char c) const;
  void begin_arguments(const CallableTool& tool, std::string_view rest, Deltas& out);
  const CallableTool* tool_in(std::string_view head) const;
  void emit_json(Deltas& out);
  void end_call();
  void break_off(char c, Deltas& out);
  void end_section();
  void no_call(Deltas& out);
  void text_again(std::string_view text, Deltas& out);

  const CallSyntax& syntax_;
  std::span<const CallableTool> tools_;
  const std::string_view begin_mark_;
  const std::string_view end_mark_;
  const std::string_view close_mark_;
  const std::string_view fence_;
  const std::string_view fence_close_;
  const std::string_view name_mark_;
  std::size_t num_calls_ = 0;
  State state_;
  MarkerScanner begin_;
  MarkerScanner broken_;  // of the marks that end broken arguments
  bool in_list_ = false;
  std::string raw_;        // held text: content if no call follows
  std::size_t fixed_ = 0;  // bytes of raw_ that are a mark, and so not read again
  std::string head_;       // kHead, kBehind: the text so far
  std::optional<CallReader> object_;
  const CallableTool* tool_ = nullptr;  // kArguments
  std::unique_ptr<ArgumentsReader> arguments_;
  std::string json_;         // of arguments, not emitted yet
  bool is_certain_ = false;  // kArguments: the call was emitted
};

}  // namespace quire::api::chat
