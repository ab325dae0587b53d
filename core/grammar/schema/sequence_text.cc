#include "core/grammar/schema/sequence_text.h"

#include <algorithm>

namespace quire::grammar {

SequenceText::SequenceText(JsonText& json, std::vector<Part> parts, std::optional<Expr> others, Count count,
                           const SequenceSpelling& spelling)
    : json_(json), parts_(std::move(parts)), others_(others), count_(count), spelling_(spelling) {
  const auto num_required =
      static_cast<std::uint32_t>(std::ranges::count_if(parts_, [](const Part& part) { return part.required; }));
  if (count_.least <= num_required) count_.least = 0;
  if (!others_ && count_.most >= parts_.size()) count_.most = kUnbounded;
  counted_ = std::max(1u, count_.most == kUnbounded ? count_.least : count_.most);
}

std::optional<Expr> SequenceText::write() {
  if (count_.least > parts_.size() + 1) return json_.nothing();
  if ((parts_.size() + 1) * (std::uint64_t{counted_} + 1) > kMaxSequenceStates && !parts_.empty()) return std::nullopt;
  const Expr inside = from(0, 0);
  while (!todo_.empty()) {
    const auto [place, rule] = todo_.back();
    todo_.pop_back();
    json_.rules().define(rule, body(place.first, place.second));
  }
  return json_.sequence({json_.rules().bytes(spelling_.open), inside});
}

// The text after `written` parts, with `part` as the next one to write or leave out.
Expr SequenceText::from(std::uint32_t part, std::uint32_t written) {
  const Place place{part, written};
  if (const auto found = made_.find(place); found != made_.end()) return found->second;
  if (part == parts_.size()) return made_.emplace(place, end(written)).first->second;
  const RuleId rule = json_.rules().declare("part " + std::to_string(part));
  todo_.emplace_back(place, rule);
  return made_.emplace(place, json_.rules().use(rule)).first->second;
}

Expr SequenceText::body(std::uint32_t part, std::uint32_t written) {
  std::vector<Expr> ways;
  if (written < count_.most) {
    const Expr rest = from(part + 1, std::min(counted_, written + 1));
    ways.push_back(json_.sequence({before(written), parts_[part].text, rest}));
  }
  if (!parts_[part].required) ways.push_back(from(part + 1, written));
  return json_.rules().choice(ways);
}

Expr SequenceText::close(std::uint32_t written) {
  const Expr bracket = json_.rules().bytes(spelling_.close);
  return written == 0 ? bracket : json_.sequence({gap(), bracket});
}

Expr SequenceText::end(std::uint32_t written) {
  const std::uint32_t missing = count_.least > written ? count_.least - written : 0;
  const std::uint32_t room = count_.most == kUnbounded ? kUnbounded : count_.most - written;
  std::vector<Expr> ways;
  if (missing == 0) ways.push_back(close(written));
  if (others_ && missing <= 1 && room > 0) {
    const Expr more = json_.repeat(json_.sequence({between(), *others_}), 0, room == kUnbounded ? room : room - 1);
    ways.push_back(json_.sequence({before(written), *others_, more, close(1)}));
  }
  return json_.rules().choice(ways);
}

}  // namespace quire::grammar
