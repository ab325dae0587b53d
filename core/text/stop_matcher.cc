#include "core/text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace quire::text {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    if (text.empty()) continue;
    Stop stop{std::move(text), {0, 0}};
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
  if (text.empty()) return {};  // keeps the texts of would_stop()
  const std::size_t before_text = held_.size();
  held_ += text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const Stop* complete = nullptr;
    for (Stop& stop : stops_) {
      if (advance(stop, stop.matched, text[i]) && complete == nullptr) complete = &stop;
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
  for (Stop& stop : stops_) {
    keep = std::max(keep, stop.matched);
    stop.ahead = stop.matched;
  }
  std::string safe = held_.substr(sent_, held_.size() - keep - sent_);
  sent_ += safe.size();
  if (sent_ > keep) {  // otherwise moving the kept text would cost more than was sent since the last move
    held_.erase(0, sent_);
    sent_ = 0;
  }
  return {std::move(safe), false, ""};
}

std::string StopMatcher::finish() { return std::exchange(held_, {}).substr(std::exchange(sent_, 0)); }

bool StopMatcher::would_stop(std::string_view text) {
  bool complete = false;
  for (const char byte : text) {
    for (Stop& stop : stops_) complete |= advance(stop, stop.ahead, byte);
  }
  return complete;
}

bool StopMatcher::advance(const Stop& stop, std::size_t& matched, char byte) {
  if (matched == stop.text.size()) matched = stop.border[matched];
  while (matched > 0 && stop.text[matched] != byte) matched = stop.border[matched];
  if (stop.text[matched] == byte) ++matched;
  return matched == stop.text.size();
}

}  // namespace quire::text
