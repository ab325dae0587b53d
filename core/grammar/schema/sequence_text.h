// The text between the brackets of an object or an array, as rules: parts in a fixed order, some of them optional, then
// any number of others. The rules count no further than they have to.
// Shape   parts are written in this order, each at most once; after them `others`, as often as `count` allows. At most
//         one of `others` counts towards count.least, because two of them may be the same member twice.
// Fails   write(): none if that takes more than kMaxSequenceStates.
// Source  ours.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/grammar/schema/json_text.h"
#include "core/grammar/schema/shape.h"

namespace quire::grammar {

inline constexpr std::uint64_t kMaxSequenceStates = 20'000;

// The text around and between the parts. `gaps`: optional white space stands inside the brackets and behind `between`.
struct SequenceSpelling {
  std::string_view open;
  std::string_view close;
  std::string_view between = ",";
  bool gaps = true;
};
inline constexpr SequenceSpelling kObjectBraces = {"{", "}"};
inline constexpr SequenceSpelling kArrayBrackets = {"[", "]"};

class SequenceText {
 public:
  struct Part {
    Expr text;
    bool required = false;
  };

  SequenceText(JsonText& json, std::vector<Part> parts, std::optional<Expr> others, Count count,
               const SequenceSpelling& spelling);

  std::optional<Expr> write();

 private:
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // the next part, the number of parts written
  Expr from(std::uint32_t part, std::uint32_t written);
  Expr body(std::uint32_t part, std::uint32_t written);
  Expr end(std::uint32_t written);
  Expr close(std::uint32_t written);
  Expr gap() { return spelling_.gaps ? json_.gap() : json_.rules().bytes(""); }
  Expr between() { return spelling_.gaps ? json_.comma() : json_.rules().bytes(spelling_.between); }
  Expr before(std::uint32_t written) { return written == 0 ? gap() : between(); }

  JsonText& json_;
  std::vector<Part> parts_;
  std::optional<Expr> others_;
  Count count_;
  SequenceSpelling spelling_;
  std::uint32_t counted_ = 1;  // written parts are counted up to here
  std::map<Place, Expr> made_;
  std::vector<std::pair<Place, RuleId>> todo_;
};

}  // namespace quire::grammar
