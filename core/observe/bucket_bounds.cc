#include "core/observe/bucket_bounds.h"

#include <string_view>

namespace quire::observe {

std::string with_points(const std::string& text) {
  constexpr std::string_view kBound = "le=\"";
  std::string out;
  out.reserve(text.size() + text.size() / 32);
  std::size_t copied = 0;
  for (std::size_t at = text.find(kBound); at != text.npos; at = text.find(kBound, at + 1)) {
    const std::size_t begin = at + kBound.size();
    const std::size_t end = text.find_first_not_of("0123456789", begin);
    const bool is_label = at > 0 && (text[at - 1] == '{' || text[at - 1] == ',');
    if (!is_label || end == begin || end == text.npos || text[end] != '"') continue;
    out.append(text, copied, end - copied);
    out += ".0";
    copied = end;
  }
  out.append(text, copied);
  return out;
}

}  // namespace quire::observe
