// The loop of `quire chat`: questions and commands in, answers out.
// Owner   the command; borrows client, conversation and interrupts.
// Thread  main.
// Fails   an error of the server is shown and takes the question back; the conversation goes on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/chat/answer_reader.h"
#include "app/chat/conversation.h"
#include "app/chat/interrupts.h"
#include "app/chat/line_editor.h"
#include "app/chat/screen.h"
#include "app/http/http_client.h"
#include "core/base/clock.h"

namespace quire::app {

class Talk {
 public:
  // key: sent with each request; empty: none.
  Talk(HttpClient& client, std::string key, Conversation& conversation, Interrupts& interrupts)
      : client_(client), key_(std::move(key)), conversation_(conversation), interrupts_(interrupts) {}

  void run(LineEditor& editor);       // until the end of the input, or /exit
  bool ask(const std::string& text);  // false: no answer came, or not all of it
  void note(std::string_view text) { screen_.note(text); }

 private:
  struct Command;
  static const Command kCommands[];
  enum class Turn { kDone, kFailed, kCalls };

  void obey(std::string_view line);
  void help(std::string_view);
  void system(std::string_view text);
  void save(std::string_view path);
  void load(std::string_view path);
  void set(std::string_view words);
  void tools(std::string_view path);
  void stats(std::string_view);
  void clear(std::string_view);
  void leave(std::string_view);

  bool answer();  // to the last message, tools included
  Turn take_turn();
  Turn fail(const std::string& why);
  bool run_tools(const std::vector<ToolCall>& calls);

  HttpClient& client_;
  const std::string key_;
  Conversation& conversation_;
  Interrupts& interrupts_;
  Screen screen_;
  LineEditor* editor_ = nullptr;  // while run()
  bool over_ = false;
  std::vector<ToolCall> calls_;  // of the last turn

  // Figures for /stats.
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t cached_tokens_ = 0;
  std::uint64_t completion_tokens_ = 0;
  std::uint64_t all_completion_tokens_ = 0;
  std::uint64_t num_answers_ = 0;
  double first_s_ = 0;
  double whole_s_ = 0;
};

}  // namespace quire::app
