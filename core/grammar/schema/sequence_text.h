// The text between the brackets of an object or an array, as rules: parts in a fixed order, some of them optional, then
// any number of others. The rules count no further than they have to.
// Shape   parts are written in this order, each at most once; after them `others`, as often as `count` allows. At most
//         one of `others` counts towards count.least, because two of them may be the same member twice.
// Fails   write(): none if that takes more than kMaxSequenceStates.
// Source  ours.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/grammar/schema/json_text.h"
#include "core/grammar/schema/shape.h"

namespace quire::grammar {

inline constexpr std::uint64_t kMaxSequenceStates = 20'000;

class SequenceText {
 public:
  struct Part {
    Expr text;
    bool required = false;
  };

  SequenceText(JsonText& json, std::vector<Part> parts, std::optional<Expr> others, Count count);

  std::optional<Expr> write(char open, char close);

 private:
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // the next part, the number of parts written
  Expr from(std::uint32_t part, std::uint32_t written);
  Expr body(std::uint32_t part, std::uint32_t written);
  Expr end(std::uint32_t written);
  Expr close(std::uint32_t written);
  Expr before(std::uint32_t written) { return written == 0 ? json_.gap() : json_.comma(); }

  JsonText& json_;
  std::vector<Part> parts_;
  std::optional<Expr> others_;
  Count count_;
  std::uint32_t counted_ = 1;  // written parts are counted up to here
  char close_ = '}';
  std::map<Place, Expr> made_;
  std::vector<std::pair<Place, RuleId>> todo_;
};

}  // namespace quire::grammar
