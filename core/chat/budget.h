// What one rendering may use up, counted as it goes.
// Shape   a step is a node of the template worked on, or 16 bytes of text or one item of a list made.
// Owner   one rendering.
// Fails   TemplateError that names the limit passed. RenderingStopped: the allowance has ended.
// Source  ours: jinja2 has no bounds but a range's length.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "core/base/allowance.h"
#include "core/chat/template_error.h"
#include "core/chat/value.h"

namespace quire::chat {

struct Limits {
  std::size_t max_steps = 4'000'000;
  int max_depth = 300;  // nodes of the template inside each other, through macro calls and all
  std::size_t max_output_bytes = std::size_t{8} << 20;  // also of any text on the way
};

class Budget {
 public:
  // Without an allowance: as long as it takes.
  explicit Budget(const Limits& limits, Allowance* allowance = nullptr) : limits_(limits), allowance_(allowance) {}

  void steps(std::size_t num_steps) {
    if (allowance_ != nullptr && !allowance_->spend(num_steps)) throw RenderingStopped{};
    if (num_steps > limits_.max_steps - num_steps_) {
      fail("rendering takes more than " + std::to_string(limits_.max_steps) + " steps");
    }
    num_steps_ += num_steps;
  }
  // A text of so many bytes is about to be.
  void bytes(std::size_t num_bytes) {
    if (num_bytes > limits_.max_output_bytes) {
      fail("a text is larger than " + std::to_string(limits_.max_output_bytes) + " bytes");
    }
    steps(num_bytes / 16);
  }
  // A text is being written, and one value more is to be added to it.
  void grown(const std::string& text) {
    steps(1);
    if (text.size() > limits_.max_output_bytes) bytes(text.size());
  }
  Value text(std::string text, bool safe = false) {
    bytes(text.size());
    return Value::text(std::move(text), safe);
  }
  Value list(Values values, SequenceKind kind = SequenceKind::kList) {
    steps(values.size());
    return Value::sequence(std::move(values), kind);
  }

  void enter() {
    steps(1);
    if (depth_ >= limits_.max_depth) fail("rendering nests more than " + std::to_string(limits_.max_depth) + " deep");
    ++depth_;
  }
  void leave() { --depth_; }

 private:
  Limits limits_;
  Allowance* allowance_;
  std::size_t num_steps_ = 0;
  int depth_ = 0;
};

// One level of depth, as long as it lives.
class Level {
 public:
  explicit Level(Budget& budget) : budget_(budget) { budget_.enter(); }
  ~Level() { budget_.leave(); }
  Level(const Level&) = delete;

 private:
  Budget& budget_;
};

}  // namespace quire::chat
