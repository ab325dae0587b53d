#include "api/answer/marker_scanner.h"

#include <utility>

#include "core/base/check.h"

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxHeldSpace = 64;  // bounded, so that an answer of nothing but line breaks is streamed, too

}  // namespace

MarkerScanner::MarkerScanner(std::string_view marker, bool skip_space) : marker_(marker), skips_space_(skip_space) {
  CHECK(!marker_.empty() && marker_.find(marker_[0], 1) == marker_.npos);
}

bool MarkerScanner::take(char c, std::string& out) {
  if (c != marker_[matched_]) {
    give_up_marker(out);
    if (c != marker_[0]) {
      if (is_space(c)) {
        if (skips_space_) return false;
        if (space_.size() == kMaxHeldSpace) {
          out += space_[0];
          space_.erase(0, 1);
        }
        space_ += c;
        return false;
      }
      skips_space_ = false;
      out += space_;
      space_.clear();
      out += c;
      return false;
    }
  }
  skips_space_ = false;
  if (++matched_ < marker_.size()) return false;
  matched_ = 0;
  dropped_ = std::exchange(space_, {});
  return true;
}

void MarkerScanner::finish(std::string& out) {
  out += space_;
  space_.clear();
  give_up_marker(out);
}

// Emits a partial match: it is no marker.
void MarkerScanner::give_up_marker(std::string& out) {
  if (matched_ == 0) return;
  out += space_;
  space_.clear();
  out.append(marker_, 0, matched_);
  matched_ = 0;
}

}  // namespace quire::api::chat
