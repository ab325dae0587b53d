// The CallParser of both Mistral formats (call_parser.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "api/answer/call_parser.h"
#include "api/answer/call_reader.h"
#include "api/answer/json_walker.h"
#include "api/answer/marker_scanner.h"

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
    kItem,       // in the list: expects an object
    kObject,     // inside a call's object
    kAfterItem,  // in the list: expects a comma or its end
    kName,       // in name[ARGS], up to the {
    kArguments,  // from that { on
    kBroken,     // everything is arguments
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
  std::string raw_;   // held text: content if no call follows
  std::string head_;  // kName: the text so far
  bool in_list_ = false;
  std::optional<CallReader> reader_;
  JsonWalker arguments_;
};

}  // namespace quire::api::chat
