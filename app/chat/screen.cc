#include "app/chat/screen.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace quire::app {
namespace {

bool may_dim() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

std::string shown(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      ++i;
    } else if ((byte >= 0x20 || byte == '\n' || byte == '\t') && byte != 0x7f) {
      out += text[i];
    } else {
      out += '^';
      out += static_cast<char>(byte ^ 0x40);
    }
  }
  return out;
}

Screen::Screen() : is_terminal_(isatty(STDOUT_FILENO) == 1), dims_(is_terminal_ && may_dim()) {}

void Screen::begin_answer() { at_line_start_ = true; }

void Screen::dim(bool on) {
  if (!dims_ || on == is_dim_) return;
  std::fputs(on ? "\x1b[2m" : "\x1b[22m", stdout);
  is_dim_ = on;
}

void Screen::print(std::string_view text, bool is_reasoning) {
  if (is_reasoning && !is_terminal_) return;
  if (!is_reasoning && is_dim_ && !at_line_start_) std::fputs("\n", stdout);
  dim(is_reasoning);
  const std::string safe = shown(text);
  std::fwrite(safe.data(), 1, safe.size(), stdout);
  std::fflush(stdout);
  at_line_start_ = safe.ends_with('\n');
}

void Screen::end_answer() {
  dim(false);
  if (!at_line_start_) std::fputs("\n", stdout);
  at_line_start_ = true;
  std::fflush(stdout);
}

void Screen::note(std::string_view text) {
  std::FILE* const out = is_terminal_ ? stdout : stderr;
  fmt::print(out, "{}\n", shown(text));
  std::fflush(out);
}

}  // namespace quire::app
