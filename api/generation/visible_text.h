// Splits an answer into its hidden beginning (reasoning between marks) and the visible rest. Stop strings count in the
// visible text only.
//   "<think>a\nb</think>\n\nHello" → hidden "<think>a\nb</think>\n\n", visible "Hello"
// Shape   hidden and visible parts, joined, are the text, however it was cut into pushes. Leading white space and a
//         partial mark are held until it is clear which part they belong to.
// Owner   one per answer.
// Thread  one at a time.
// Fails   never. Time is linear in the text.
// Source  ours: vLLM and llama.cpp stop inside reasoning, where a stop string ends an answer that never began.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/fields/generation_request.h"

namespace quire::api {

class VisibleText {
 public:
  // Without `hidden` all text is visible.
  explicit VisibleText(const std::optional<HiddenText>& hidden);

  struct Parts {
    std::string hidden;
    std::string visible;  // follows `hidden`
  };
  Parts push(std::string_view text);
  std::string finish();  // the answer ends: held text is visible

  // The visible part that push() would return, without pushing. Consecutive calls continue each other until the next
  // non-empty push().
  std::string ahead(std::string_view text);

 private:
  struct Place {
    enum class In : std::uint8_t { kBeginning, kHidden, kBehind, kVisible };
    In in = In::kVisible;
    std::size_t matched = 0;  // matched bytes of the mark that ends this state
    std::string held;         // kBeginning
  };
  void take(Place& place, char c, Parts& out) const;

  HiddenText marks_;
  Place place_;
  Place ahead_;
};

}  // namespace quire::api
