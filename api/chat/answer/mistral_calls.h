// The Mistral forms of call_parser.h.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "api/chat/answer/call_parser.h"
#include "api/chat/answer/call_reader.h"
#include "api/chat/answer/json_walker.h"
#include "api/chat/answer/marker_scanner.h"

namespace quire::api::chat {

class MistralCalls final : public CallParser {
 public:
  explicit MistralCalls(std::span<const std::string> tools) : tools_(tools) {}

  void take(char c, Deltas& out) override;
  void finish(Deltas& out) override;

 private:
  enum class State {
    kText,
    kOpen,       // behind [TOOL_CALLS]
    kItem,       // of the list: an object should come
    kObject,     // of a call
    kAfterItem,  // a comma or the end of the list should come
    kName,       // name[ARGS], up to the {
    kArguments,  // behind it
    kBroken,     // all is arguments
  };

  void take_text(char c, Deltas& out);
  void take_open(char c, Deltas& out);
  void take_item(char c, Deltas& out);
  void take_object(char c, Deltas& out);
  void take_after_item(char c, Deltas& out);
  void take_name(char c, Deltas& out);
  void take_arguments(char c, Deltas& out);
  void begin_object(char c, bool in_list, Deltas& out);
  void go_back_to_text();
  void no_call(char c, Deltas& out);

  std::span<const std::string> tools_;
  std::size_t num_calls_ = 0;
  State state_ = State::kText;
  MarkerScanner begin_{"[TOOL_CALLS]"};
  std::string raw_;   // what is content if no call comes
  std::string head_;  // kName
  bool in_list_ = false;
  std::optional<CallReader> reader_;
  JsonWalker arguments_;
};

}  // namespace quire::api::chat
