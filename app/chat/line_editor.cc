#include "app/chat/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <string_view>

#include "core/base/start_error.h"

namespace quire::app {
namespace {

constexpr std::string_view kBlock = "\"\"\"";
constexpr const char* kContinued = "... ";

std::string the_prompt;
char* prompt_of(EditLine*) { return the_prompt.data(); }

bool more_is_there() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&input, 1, 0) > 0 && (input.revents & POLLIN) != 0;
}

EditLine* editor_of(void* editor) { return static_cast<EditLine*>(editor); }
History* history_of(void* history) { return static_cast<History*>(history); }

}  // namespace

LineEditor::LineEditor(Interrupts& interrupts) : interrupts_(interrupts) {
  // libedit reads characters of the locale: UTF-8 wherever the environment says nothing else.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
  editor_ = el_init("quire", stdin, isatty(STDOUT_FILENO) == 1 ? stdout : stderr, stderr);
  history_ = history_init();
  if (editor_ == nullptr || history_ == nullptr) throw StartError("the terminal cannot be used for typing");
  HistEvent event{};
  history(history_of(history_), &event, H_SETSIZE, 1000);
  history(history_of(history_), &event, H_SETUNIQUE, 1);
  EditLine* const editor = editor_of(editor_);
  el_set(editor, EL_PROMPT, &prompt_of);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 1);
  el_set(editor, EL_HIST, &history, history_);
  el_source(editor, nullptr);  // the user's ~/.editrc
}

LineEditor::~LineEditor() {
  el_end(editor_of(editor_));
  history_end(history_of(history_));
}

LineEditor::Got LineEditor::read_line(const std::string& prompt, std::string& line) {
  the_prompt = prompt;
  int count = 0;
  const char* read = el_gets(editor_of(editor_), &count);
  if (interrupts_.take()) {
    std::fputs("\n", isatty(STDOUT_FILENO) == 1 ? stdout : stderr);
    return Got::kInterrupt;
  }
  if (read == nullptr || count <= 0) return Got::kEnd;
  line.assign(read, static_cast<std::size_t>(count));
  if (line.ends_with('\n')) line.pop_back();
  return Got::kText;
}

LineEditor::Got LineEditor::read(const std::string& prompt, std::string& text) {
  text.clear();
  std::string line;
  bool in_block = false;
  for (bool first = true;; first = false) {
    const Got got = read_line(first ? prompt : kContinued, line);
    if (got == Got::kEnd && !first) break;
    if (got != Got::kText) return got;
    if (line == kBlock) {
      in_block = !in_block;
      if (!in_block && !more_is_there()) break;
      continue;
    }
    const bool continues = !in_block && line.ends_with('\\');
    if (continues) line.pop_back();
    text += (text.empty() ? "" : "\n") + line;
    if (!in_block && !continues && !more_is_there()) break;
  }
  HistEvent event{};
  if (!text.empty()) history(history_of(history_), &event, H_ENTER, text.c_str());
  return Got::kText;
}

}  // namespace quire::app
