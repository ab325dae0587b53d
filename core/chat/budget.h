// Limits of one rendering's work, depth and text sizes, counted while it runs.
// Shape   a step is one evaluated template node, 16 bytes of new text, or one item of a new list.
// Owner   one rendering.
// Fails   TemplateError that names the exceeded limit. RenderingStopped if the allowance has ended.
// Source  ours: jinja2 limits only the length of a range.
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
  int max_depth = 300;                                  // nested template nodes, through macro calls too
  std::size_t max_output_bytes = std::size_t{8} << 20;  // also of every intermediate text
};

class Budget {
 public:
  // Without an allowance the time is not limited.
  explicit Budget(const Limits& limits, Allowance* allowance = nullptr) : limits_(limits), allowance_(allowance) {}

  void steps(std::size_t num_steps) {
    if (allowance_ != nullptr && !allowance_->spend(num_steps)) throw RenderingStopped{};
    if (num_steps > limits_.max_steps - num_steps_) {
      fail("rendering takes more than " + std::to_string(limits_.max_steps) + " steps");
    }
    num_steps_ += num_steps;
  }
  // Counts a text of `num_bytes` before it is made.
  void bytes(std::size_t num_bytes) {
    if (num_bytes > limits_.max_output_bytes) {
      fail("a text is larger than " + std::to_string(limits_.max_output_bytes) + " bytes");
    }
    steps(num_bytes / 16);
  }
  // Counts one more value that is about to be appended to `text`.
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
    if (depth_ >= limits_.max_depth)
      fail("rendering is nested more than " + std::to_string(limits_.max_depth) + " deep");
    ++depth_;
  }
  void leave() { --depth_; }

 private:
  Limits limits_;
  Allowance* allowance_;
  std::size_t num_steps_ = 0;
  int depth_ = 0;
};

// RAII: one level of depth for its lifetime.
class Level {
 public:
  explicit Level(Budget& budget) : budget_(budget) { budget_.enter(); }
  ~Level() { budget_.leave(); }
  Level(const Level&) = delete;

 private:
  Budget& budget_;
};

}  // namespace quire::chat
