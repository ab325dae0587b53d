// Lines that a person types: editing, history and window size by libedit on a terminal, else lines as they are.
// Shape   UTF-8. Lines that were pasted together are one input, as are lines that end in a backslash and those between
//         two lines of """.
// Owner   the command; one per process.
// Thread  main.
#pragma once

#include <string>

#include "app/chat/interrupts.h"

namespace quire::app {

class LineEditor {
 public:
  explicit LineEditor(Interrupts& interrupts);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Got { kText, kInterrupt, kEnd };
  Got read(const std::string& prompt, std::string& text);

 private:
  Got read_line(const std::string& prompt, std::string& line);

  Interrupts& interrupts_;
  void* editor_;
  void* history_;
};

}  // namespace quire::app
