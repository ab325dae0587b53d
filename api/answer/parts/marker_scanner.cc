#include "api/answer/parts/marker_scanner.h"

#include <algorithm>
#include <utility>

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxHeldSpace = 64;  // bounded, so that an answer of nothing but line breaks is streamed, too

}  // namespace

MarkerScanner::MarkerScanner(const std::vector<std::string_view>& markers, bool skip_space) : skips_space_(skip_space) {
  for (const std::string_view one : markers) {
    if (!one.empty()) markers_.emplace_back(one);
  }
}

bool MarkerScanner::take(char c, std::string& out) {
  held_ += c;
  const auto begins_marker = [&](const std::string& marker) { return marker.starts_with(held_); };
  while (!held_.empty() && std::ranges::none_of(markers_, begins_marker)) {
    emit(held_.front(), out);
    held_.erase(0, 1);
  }
  if (std::ranges::find(markers_, held_) == markers_.end()) return false;
  skips_space_ = false;
  found_ = std::exchange(held_, {});
  dropped_ = std::exchange(space_, {});
  return true;
}

void MarkerScanner::finish(std::string& out) {
  out += std::exchange(space_, {});
  out += std::exchange(held_, {});
}

// Appends a byte that belongs to no marker; white space is held, because a marker may follow it.
void MarkerScanner::emit(char c, std::string& out) {
  if (!is_space(c)) {
    skips_space_ = false;
    out += std::exchange(space_, {});
    out += c;
    return;
  }
  if (skips_space_) return;
  if (space_.size() == kMaxHeldSpace) {
    out += space_[0];
    space_.erase(0, 1);
  }
  space_ += c;
}

}  // namespace quire::api::chat
