// A conversation of `quire chat`: messages, system message, tools and settings, as the body of a chat request.
// Shape   saved as JSON with the members of a request: {"messages":[…],"tools":[…],"temperature":0.2,…}.
// Thread  one.
// Fails   a Result with a text for the user; the conversation is then unchanged.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace quire::app {

class Conversation {
 public:
  explicit Conversation(std::string model) : model_(std::move(model)) {}

  const std::string& model() const { return model_; }
  std::size_t num_messages() const { return messages_.size(); }
  const boost::json::array& tools() const { return tools_; }
  const boost::json::object& settings() const { return settings_; }
  const std::string& system() const { return system_; }

  void ask(std::string_view text);
  void add_answer(boost::json::object message) { messages_.push_back(std::move(message)); }
  void add_tool_result(std::string_view call_id, std::string_view text);
  void take_back_question();  // the last one, and all that followed
  void clear() { messages_.clear(); }

  void set_system(std::string text) { system_ = std::move(text); }
  // `value` is JSON, or text; an empty one removes the setting.
  Result<Done> set(std::string_view name, std::string_view value);
  // JSON: a list of tools, or an object with such a list as `tools`. Empty: none.
  Result<Done> set_tools(std::string_view json);

  std::string request() const;  // of a streamed answer with its usage
  std::string saved() const;
  Result<Done> load(std::string_view json);

 private:
  boost::json::object members() const;

  std::string model_;
  std::string system_;  // empty: there is none
  boost::json::array messages_;
  boost::json::array tools_;
  boost::json::object settings_;
};

}  // namespace quire::app
