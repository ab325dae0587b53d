#include "app/chat/talk.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "core/base/log.h"

namespace quire::app {
namespace {

constexpr const char* kPrompt = ">>> ";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

Result<std::string> read_file(std::string_view path) {
  std::ifstream file{std::string(path), std::ios::binary};
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return invalid("", fmt::format("{}: this file cannot be read", path));
  return text.str();
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

struct Talk::Command {
  std::string_view name;
  std::string_view words;
  std::string_view text;
  void (Talk::*run)(std::string_view words);
};

const Talk::Command Talk::kCommands[] = {
    {"/help", "", "this list", &Talk::help},
    {"/system", "[TEXT]", "set the system message; without a text: show it; -: remove it", &Talk::system},
    {"/set", "[NAME [VALUE]]", "a field of the requests, such as temperature 0.2; without a value: remove it",
     &Talk::set},
    {"/tools", "[FILE|-]", "tools that the model may call, as JSON; -: none", &Talk::tools},
    {"/stats", "", "tokens and times of the last answer", &Talk::stats},
    {"/save", "FILE", "write the conversation as JSON", &Talk::save},
    {"/load", "FILE", "go on with a saved conversation", &Talk::load},
    {"/clear", "", "forget the conversation; settings stay", &Talk::clear},
    {"/exit", "", "end, as Ctrl-D does", &Talk::leave},
};

void Talk::run(LineEditor& editor) {
  editor_ = &editor;
  std::string text;
  while (!over_ && interrupts_.end_signal() == 0) {
    const LineEditor::Got got = editor.read(kPrompt, text);
    if (got == LineEditor::Got::kEnd) {
      screen_.note("");
      break;
    }
    if (got == LineEditor::Got::kInterrupt) {
      if (interrupts_.end_signal() == 0) screen_.note("Ctrl-D or /exit ends the conversation");
      continue;
    }
    const std::string_view line = trimmed(text);
    if (line.starts_with('/') && line.find('\n') == line.npos) {
      obey(line);
    } else if (!line.empty()) {
      ask(text);
    }
  }
  editor_ = nullptr;
}

void Talk::obey(std::string_view line) {
  const std::string_view name = line.substr(0, line.find_first_of(" \t"));
  const auto found = std::ranges::find(kCommands, name, &Command::name);
  if (found == std::end(kCommands)) {
    return screen_.note(fmt::format("{}: no such command; /help lists them", name));
  }
  (this->*found->run)(trimmed(line.substr(name.size())));
}

void Talk::help(std::string_view) {
  for (const Command& command : kCommands) {
    screen_.note(fmt::format("{:<8} {:<15} {}", command.name, command.words, command.text));
  }
  screen_.note(
      "\nA line that ends in \\ goes on in the next one, and so does all between two lines of \"\"\". Lines that are\n"
      "pasted together are one message. Ctrl-C stops an answer; its part stays in the conversation.");
}

void Talk::system(std::string_view text) {
  if (!text.empty()) conversation_.set_system(text == "-" ? "" : std::string(text));
  const std::string& system = conversation_.system();
  screen_.note(system.empty() ? "there is no system message" : "system message: " + system);
}

void Talk::set(std::string_view words) {
  const std::string_view name = words.substr(0, words.find_first_of(" \t"));
  if (!name.empty()) {
    const Result<Done> set = conversation_.set(name, trimmed(words.substr(name.size())));
    if (!set) return screen_.note(set.error().message);
  }
  if (conversation_.settings().empty()) return screen_.note("no setting: those of the server and the model are used");
  for (const auto& [key, value] : conversation_.settings()) {
    screen_.note(fmt::format("{} {}", std::string_view(key), boost::json::serialize(value)));
  }
}

void Talk::tools(std::string_view path) {
  if (!path.empty()) {
    const Result<std::string> text = path == "-" ? Result<std::string>(std::string()) : read_file(path);
    const Result<Done> set = text ? conversation_.set_tools(*text) : Result<Done>(text.error());
    if (!set) return screen_.note(set.error().message);
  }
  const std::size_t count = conversation_.tools().size();
  screen_.note(count == 0 ? "no tools" : fmt::format("{} tool{}", count, count == 1 ? "" : "s"));
}

void Talk::save(std::string_view path) {
  if (path.empty()) return screen_.note("/save FILE: a file name is needed");
  std::ofstream file{std::string(path), std::ios::binary};
  file << conversation_.saved();
  file.close();
  screen_.note(file ? fmt::format("{} messages are in {}", conversation_.num_messages(), path)
                    : fmt::format("{}: this file cannot be written", path));
}

void Talk::load(std::string_view path) {
  if (path.empty()) return screen_.note("/load FILE: a file name is needed");
  const Result<std::string> text = read_file(path);
  const Result<Done> loaded = text ? conversation_.load(*text) : Result<Done>(text.error());
  screen_.note(loaded ? fmt::format("{} messages from {}", conversation_.num_messages(), path)
                      : loaded.error().message);
}

void Talk::stats(std::string_view) {
  if (num_answers_ == 0) return screen_.note("no answer yet");
  screen_.note(fmt::format("prompt: {} tokens, {} of them cached", prompt_tokens_, cached_tokens_));
  const double decoding_s = whole_s_ - first_s_;
  const std::string rate =
      completion_tokens_ > 1 && decoding_s > 0
          ? fmt::format(", {:.1f} tokens/s", static_cast<double>(completion_tokens_ - 1) / decoding_s)
          : "";
  screen_.note(fmt::format("answer: {} tokens, the first after {:.2f} s, all in {:.2f} s{}", completion_tokens_,
                           first_s_, whole_s_, rate));
  screen_.note(fmt::format("conversation: {} messages; {} answers with {} tokens", conversation_.num_messages(),
                           num_answers_, all_completion_tokens_));
}

void Talk::clear(std::string_view) {
  conversation_.clear();
  screen_.note("the conversation is forgotten");
}

void Talk::leave(std::string_view) { over_ = true; }

bool Talk::ask(const std::string& text) {
  conversation_.ask(text);
  return answer();
}

bool Talk::answer() {
  for (;;) {
    switch (take_turn()) {
      case Turn::kDone:
        return true;
      case Turn::kFailed:
        return false;
      case Turn::kCalls:
        if (!run_tools(calls_)) return false;
    }
  }
}

Talk::Turn Talk::fail(const std::string& why) {
  conversation_.take_back_question();
  screen_.note("error: " + why);
  return Turn::kFailed;
}

Talk::Turn Talk::take_turn() {
  const TimePoint begun = SteadyClock().now();
  TimePoint first{};
  screen_.begin_answer();
  AnswerReader reader([&](std::string_view text, bool is_reasoning) { screen_.print(text, is_reasoning); });
  interrupts_.take();
  const auto take = [&](std::string_view bytes) {
    reader.take(bytes);
    if (first == TimePoint{} && reader.has_begun()) first = SteadyClock().now();
  };
  const auto reply =
      client_.send("POST", "/v1/chat/completions", json_fields(key_), conversation_.request(), Duration::max(), take);
  interrupts_.take();
  screen_.end_answer();
  if (!reply) return fail(fmt::format("{}: {}", client_.url().text, reply.error().message));
  if (reply->stopped) {
    screen_.note("[stopped]");
    if (reader.text().empty()) {
      conversation_.take_back_question();
    } else {
      conversation_.add_answer({{"role", "assistant"}, {"content", reader.text()}});
    }
    return Turn::kFailed;
  }
  if (!reply->is_ok()) return fail(error_text(reply->body));
  if (!reader.error().empty()) return fail(reader.error());
  if (reader.finish_reason().empty()) return fail("the answer ended before its end: the connection broke");

  const TimePoint end = SteadyClock().now();
  prompt_tokens_ = reader.prompt_tokens();
  cached_tokens_ = reader.cached_tokens();
  completion_tokens_ = reader.completion_tokens();
  all_completion_tokens_ += completion_tokens_;
  ++num_answers_;
  first_s_ = seconds((first == TimePoint{} ? end : first) - begun);
  whole_s_ = seconds(end - begun);
  conversation_.add_answer(reader.message());
  calls_ = reader.calls();
  if (reader.finish_reason() == "length") screen_.note("[cut at its maximum length: /set max_tokens raises it]");
  if (!reader.has_begun()) screen_.note("[the model ended its answer before the first token]");
  return calls_.empty() ? Turn::kDone : Turn::kCalls;
}

bool Talk::run_tools(const std::vector<ToolCall>& calls) {
  for (const ToolCall& call : calls) {
    screen_.note(fmt::format("[{}({})]", call.name, call.arguments));
    if (editor_ == nullptr) continue;
    std::string result;
    if (editor_->read("its result: ", result) != LineEditor::Got::kText) {
      conversation_.take_back_question();
      screen_.note("[the question is taken back]");
      return false;
    }
    conversation_.add_tool_result(call.id, result);
  }
  return editor_ != nullptr;
}

}  // namespace quire::app
