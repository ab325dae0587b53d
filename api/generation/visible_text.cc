#include "api/generation/visible_text.h"

#include <utility>

namespace quire::api {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

VisibleText::VisibleText(const std::optional<HiddenText>& hidden) {
  if (!hidden) return;
  marks_ = *hidden;
  place_.in = marks_.is_open ? Place::In::kHidden : Place::In::kBeginning;
  ahead_ = place_;
}

VisibleText::Parts VisibleText::push(std::string_view text) {
  Parts parts;
  if (text.empty()) return parts;
  for (; !text.empty() && place_.in != Place::In::kVisible; text.remove_prefix(1)) take(place_, text.front(), parts);
  parts.visible += text;  // behind any hidden text
  ahead_ = place_;
  return parts;
}

std::string VisibleText::finish() { return std::exchange(place_.held, {}); }

std::string VisibleText::ahead(std::string_view text) {
  Parts parts;
  for (const char c : text) take(ahead_, c, parts);
  return std::move(parts.visible);
}

void VisibleText::take(Place& place, char c, Parts& out) const {
  using In = Place::In;
  switch (place.in) {
    case In::kBeginning:
      place.held += c;
      if (c == marks_.begin[place.matched]) {
        if (++place.matched < marks_.begin.size()) return;
        out.hidden += std::exchange(place.held, {});
        place.matched = 0;
        place.in = In::kHidden;
      } else if (place.matched != 0 || !is_blank(c)) {
        out.visible += std::exchange(place.held, {});
        place.in = In::kVisible;
      }
      return;
    case In::kHidden:  // a mark's first byte occurs in it only once
      out.hidden += c;
      if (c != marks_.end[place.matched]) place.matched = 0;
      if (c == marks_.end[place.matched]) ++place.matched;
      if (place.matched == marks_.end.size()) place.in = In::kBehind;
      return;
    case In::kBehind:
      if (is_blank(c)) {
        out.hidden += c;
        return;
      }
      place.in = In::kVisible;
      [[fallthrough]];
    case In::kVisible:
      out.visible += c;
      return;
  }
}

}  // namespace quire::api
