#include "api/answer/parts/marker_scanner.h"

#include <utility>

#include "core/base/check.h"

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxHeldSpace = 64;  // bounded, so that an answer of nothing but line breaks is streamed, too

}  // namespace

MarkerScanner::MarkerScanner(std::string_view marker, bool skip_space)
    : marker_(marker), borders_(marker.size(), 0), skips_space_(skip_space) {
  CHECK(!marker_.empty());
  for (std::size_t i = 1, border = 0; i < marker_.size(); ++i) {
    while (border > 0 && marker_[i] != marker_[border]) border = borders_[border - 1];
    if (marker_[i] == marker_[border]) ++border;
    borders_[i] = border;
  }
}

bool MarkerScanner::take(char c, std::string& out) {
  if (c != marker_[matched_]) {
    while (matched_ > 0 && c != marker_[matched_]) give_up_marker(borders_[matched_ - 1], out);
    if (c != marker_[matched_]) {
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
  give_up_marker(0, out);
}

void MarkerScanner::give_up_marker(std::size_t keep, std::string& out) {
  if (matched_ == 0) return;
  out += space_;
  space_.clear();
  out.append(marker_, 0, matched_ - keep);
  matched_ = keep;
}

}  // namespace quire::api::chat
