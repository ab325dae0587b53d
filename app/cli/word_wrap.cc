#include "app/cli/word_wrap.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace quire::app {
namespace {

constexpr std::size_t kNoTerminal = 80;

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string in_lines(const std::vector<std::string>& parts, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t used = width;  // of the line at the end of `out`; full at first
  for (const std::string& part : parts) {
    if (used + 1 + columns(part) > width) {
      if (!out.empty()) out += '\n';
      out += std::string(indent, ' ');
      used = indent;
    } else {
      out += ' ';
      ++used;
    }
    out += part;
    used += columns(part);
  }
  return out.empty() ? out : out + '\n';
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!word.empty()) words.emplace_back(word);
  }
  return in_lines(words, indent, width);
}

std::string with_head(std::string_view head, std::string_view text, std::size_t indent, std::size_t width) {
  std::string lines = wrapped(text, indent, width);
  if (lines.empty()) return std::string(head) + '\n';
  if (columns(head) + 2 > indent) return std::string(head) + '\n' + lines;
  return lines.replace(0, columns(head), head);
}

std::size_t output_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kNoTerminal;
}

}  // namespace quire::app
