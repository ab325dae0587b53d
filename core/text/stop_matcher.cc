#include "core/text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace quire::text {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    if (text.empty()) continue;
    Stop stop{std::move(text), {0, 0}, 0};
    for (std::size_t n = 1, matched = 0; n < stop.text.size(); ++n) {
      while (matched > 0 && stop.text[matched] != stop.text[n]) matched = stop.border[matched];
      if (stop.text[matched] == stop.text[n]) ++matched;
      stop.border.push_back(matched);
    }
    stops_.push_back(std::move(stop));
  }
  std::stable_sort(stops_.begin(), stops_.end(),
                   [](const Stop& a, const Stop& b) { return a.text.size() > b.text.size(); });
}

StopMatcher::Step StopMatcher::push(std::string_view text) {
  if (stopped_by_) return {"", true, *stopped_by_};
  const std::size_t before_text = held_.size();
  held_ += text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const Stop* complete = nullptr;
    for (Stop& stop : stops_) {
      if (advance(stop, text[i]) && complete == nullptr) complete = &stop;
    }
    if (complete != nullptr) {
      stopped_by_ = complete->text;
      std::string before = held_.substr(sent_, before_text + i + 1 - complete->text.size() - sent_);
      held_.clear();
      sent_ = 0;
      return {std::move(before), true, *stopped_by_};
    }
  }
  std::size_t keep = 0;
  for (const Stop& stop : stops_) keep = std::max(keep, stop.matched);
  std::string safe = held_.substr(sent_, held_.size() - keep - sent_);
  sent_ += safe.size();
  if (sent_ > keep) {  // else moving what is kept would cost more than was sent since the last time
    held_.erase(0, sent_);
    sent_ = 0;
  }
  return {std::move(safe), false, ""};
}

std::string StopMatcher::finish() { return std::exchange(held_, {}).substr(std::exchange(sent_, 0)); }

bool StopMatcher::advance(Stop& stop, char byte) {
  while (stop.matched > 0 && stop.text[stop.matched] != byte) stop.matched = stop.border[stop.matched];
  if (stop.text[stop.matched] == byte) ++stop.matched;
  return stop.matched == stop.text.size();
}

}  // namespace quire::text
