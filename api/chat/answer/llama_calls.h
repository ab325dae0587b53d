// The Llama 3 form of call_parser.h.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "api/chat/answer/call_parser.h"
#include "api/chat/answer/call_reader.h"
#include "api/chat/answer/marker_scanner.h"

namespace quire::api::chat {

class LlamaCalls final : public CallParser {
 public:
  explicit LlamaCalls(std::span<const std::string> tools) : tools_(tools) {}

  void take(char c, Deltas& out) override;
  void finish(Deltas& out) override;

 private:
  enum class State {
    kBegin,   // of the answer
    kTagged,  // behind <|python_tag|>
    kText,
    kObject,
    kAfter,   // a call: another one may come
    kBroken,  // all is its arguments
  };

  void take_begin(char c, Deltas& out);
  void take_text(char c, Deltas& out);
  void take_object(char c, Deltas& out);
  void begin_object(char c, Deltas& out);
  void no_call(char c, Deltas& out);

  std::span<const std::string> tools_;
  std::size_t num_calls_ = 0;
  State state_ = State::kBegin;
  MarkerScanner tag_{"<|python_tag|>"};
  std::string raw_;  // what is content if no call comes
  std::optional<CallReader> reader_;
};

}  // namespace quire::api::chat
