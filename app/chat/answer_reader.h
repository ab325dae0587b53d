// Reads the server-sent events of a streamed chat answer.
// Shape   text and reasoning are passed on as they come, and kept; calls of tools and figures are kept.
// Thread  one.
// Fails   never: an error, of the server or of what it sent, is in error().
// Source  WHATWG HTML, section 9.2; chunks of POST /v1/chat/completions.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::app {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON, as the model wrote it
};

class AnswerReader {
 public:
  using OnText = std::function<void(std::string_view text, bool is_reasoning)>;
  explicit AnswerReader(OnText on_text) : on_text_(std::move(on_text)) {}

  void take(std::string_view bytes);

  const std::string& text() const { return text_; }
  const std::vector<ToolCall>& calls() const { return calls_; }
  const std::string& finish_reason() const { return finish_reason_; }  // empty: it has not ended
  const std::string& error() const { return error_; }                  // empty: there was none
  std::uint64_t prompt_tokens() const { return prompt_tokens_; }
  std::uint64_t cached_tokens() const { return cached_tokens_; }
  std::uint64_t completion_tokens() const { return completion_tokens_; }
  bool has_begun() const { return has_begun_; }  // some text, reasoning or call has come
  boost::json::object message() const;           // for the conversation

 private:
  void take_line(std::string_view line);
  void take_event(const boost::json::object& event);
  void take_delta(const boost::json::object& delta);
  void take_usage(const boost::json::object& usage);

  const OnText on_text_;
  std::string line_;  // its beginning
  std::string text_;
  std::string reasoning_;
  std::vector<ToolCall> calls_;
  std::string finish_reason_;
  std::string error_;
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t cached_tokens_ = 0;
  std::uint64_t completion_tokens_ = 0;
  bool has_begun_ = false;
};

// The message of an error object {"error":{"message":…}}; `text` itself if it is no such object.
std::string error_text(std::string_view text);

}  // namespace quire::app
