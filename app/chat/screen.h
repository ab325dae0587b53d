// Standard output of `quire chat`: answers as they come, reasoning dimmed, and notes.
// Shape   control characters of answers are shown as ^X and not obeyed: a model may write anything. Notes go to
//         standard error where the output is no terminal, so that a file has the answer alone.
// Owner   the command.
// Thread  main.
#pragma once

#include <string>
#include <string_view>

namespace quire::app {

// `text` with control characters but line ends and tabs as ^X, and U+0080 to U+009F left out.
std::string shown(std::string_view text);

class Screen {
 public:
  Screen();

  void begin_answer();
  void print(std::string_view text, bool is_reasoning);
  void end_answer();  // on a line of its own
  void note(std::string_view text);
  bool is_terminal() const { return is_terminal_; }

 private:
  void dim(bool on);

  const bool is_terminal_;
  const bool dims_;
  bool is_dim_ = false;
  bool at_line_start_ = true;
};

}  // namespace quire::app
