// The CallParser of the Hermes format (call_parser.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "api/answer/call_parser.h"
#include "api/answer/call_reader.h"
#include "api/answer/marker_scanner.h"

namespace quire::api::chat {

class HermesCalls final : public CallParser {
 public:
  explicit HermesCalls(std::span<const std::string> tools) : tools_(tools) {}

  void take(char c, Deltas& out) override;
  void finish(Deltas& out) override;

 private:
  enum class State {
    kText,
    kOpen,    // behind <tool_call>
    kObject,  // inside the call's object
    kBroken,  // everything up to </tool_call> is arguments
    kClose,   // expects </tool_call>
  };

  void take_text(char c, Deltas& out);
  void take_open(char c, Deltas& out);
  void take_object(char c, Deltas& out);
  void take_close(char c, Deltas& out);
  void no_call(char c, Deltas& out);
  void end_call();

  std::span<const std::string> tools_;
  std::size_t num_calls_ = 0;
  State state_ = State::kText;
  MarkerScanner begin_{"<tool_call>"};
  MarkerScanner end_{"</tool_call>"};
  std::string raw_;  // text from <tool_call> on, and white space before it: content if no call follows
  std::optional<CallReader> reader_;
  std::size_t matched_ = 0;  // kClose: matched bytes of </tool_call>
};

}  // namespace quire::api::chat
