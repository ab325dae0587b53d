// Parts what an answer says into the text that nobody sees, which is at its beginning if anywhere, and the rest: stop strings count in
// the rest alone.
//   "<think>a\nb</think>\n\nHello" → hidden "<think>a\nb</think>\n\n", visible "Hello"
// Shape   parts put together are the text; how it was cut makes no difference. White space and part of a mark at the beginning are held
//         until it is known which they are.
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

#include "api/openai/generation/request.h"

namespace quire::api::openai {

class VisibleText {
 public:
  // None: all is visible.
  explicit VisibleText(const std::optional<HiddenText>& hidden);

  struct Parts {
    std::string hidden;
    std::string visible;  // behind it
  };
  Parts push(std::string_view text);
  std::string finish();  // what was held is visible: the answer ends here

  // What push() would give as visible. Texts of several calls follow each other, until something is pushed.
  std::string ahead(std::string_view text);

 private:
  struct Place {
    enum class In : std::uint8_t { kBeginning, kHidden, kBehind, kVisible };
    In in = In::kVisible;
    std::size_t matched = 0;  // bytes of the mark that may end this
    std::string held;         // kBeginning
  };
  void take(Place& place, char c, Parts& out) const;

  HiddenText marks_;
  Place place_;
  Place ahead_;
};

}  // namespace quire::api::openai
