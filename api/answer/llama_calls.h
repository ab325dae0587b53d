// The CallParser of the Llama 3 format (call_parser.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "api/answer/call_parser.h"
#include "api/answer/call_reader.h"
#include "api/answer/marker_scanner.h"

namespace quire::api::chat {

class LlamaCalls final : public CallParser {
 public:
  explicit LlamaCalls(std::span<const std::string> tools) : tools_(tools) {}

  void take(char c, Deltas& out) override;
  void finish(Deltas& out) override;

 private:
  enum class State {
    kBegin,   // at the beginning of the answer
    kTagged,  // behind <|python_tag|>
    kText,
    kObject,
    kAfter,   // behind a call: another one may follow
    kBroken,  // everything is arguments
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
  std::string raw_;  // held text: content if no call follows
  std::optional<CallReader> reader_;
};

}  // namespace quire::api::chat
