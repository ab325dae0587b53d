#include "hub/model_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/log.h"

namespace quire::hub {
namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_word(std::string_view text) {
  constexpr std::string_view kEnds = ".-";
  return !text.empty() && kEnds.find(text.front()) == kEnds.npos && kEnds.find(text.back()) == kEnds.npos &&
         text.find("--") == text.npos && text.find("..") == text.npos &&
         std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_'; });
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// "a/b" with components that name something below the directory.
template <typename IsSign>
bool is_path_of(std::string_view path, std::size_t longest, IsSign is_sign) {
  if (path.empty() || path.size() > longest) return false;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    if (!std::ranges::all_of(part, is_sign)) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

bool is_repo(std::string_view text) {
  const std::size_t slash = text.find('/');
  return text.size() <= 96 && slash != text.npos && is_word(text.substr(0, slash)) && is_word(text.substr(slash + 1)) &&
         !text.ends_with(".git");
}

bool is_revision(std::string_view text) {
  if (text.find("..") != text.npos || text.starts_with('-') || text.ends_with(".lock")) return false;
  return is_path_of(text, 255, [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_' || c == '+' || c == '#' || c == '=';
  });
}

bool is_commit(std::string_view text) { return text.size() == 40 && is_hex(text); }

bool is_blob(std::string_view text) { return (text.size() == 40 || text.size() == 64) && is_hex(text); }

bool is_safe_path(std::string_view path) {
  return is_path_of(path, 1024, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '\\'; });
}

std::string ModelName::text() const {
  std::string out = repo;
  if (!quant.empty()) out += ":" + quant;
  if (revision != kMainRevision) out += "@" + revision;
  return out;
}

bool looks_like_model_name(std::string_view text) { return is_repo(text.substr(0, text.find_first_of("@:"))); }

Result<ModelName> parse_model_name(std::string_view text) {
  ModelName name;
  const std::size_t end = text.find_first_of("@:");
  name.repo = text.substr(0, end);
  if (!is_repo(name.repo)) {
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}': expected a name of the hub: ORG/NAME, ORG/NAME@REVISION or ORG/NAME:QUANT, of "
                             "letters, digits and the characters - _ .",
                             log_safe(text)),
                 "", 0, nullptr};
  }
  std::string_view rest = end == text.npos ? std::string_view() : text.substr(end);
  bool has_revision = false;
  while (!rest.empty()) {
    const char mark = rest.front();
    const std::size_t next = rest.find_first_of("@:", 1);
    const std::string part(rest.substr(1, next == rest.npos ? next : next - 1));
    rest = next == rest.npos ? std::string_view() : rest.substr(next);
    const bool is_second = mark == '@' ? has_revision : !name.quant.empty();
    const bool is_right = mark == '@' ? is_revision(part) : is_word(part) && part.size() <= 64;
    if (is_second || !is_right) {
      return Error{Code::kInvalidArgument,
                   fmt::format("'{}': expected {} after '{}'", log_safe(text),
                               is_second     ? "only one part"
                               : mark == '@' ? "a branch, a tag or a commit"
                                             : "a quantisation, for example Q4_K_M,",
                               mark),
                   "", 0, nullptr};
    }
    if (mark == '@') {
      has_revision = true;
      name.revision = part;
    } else {
      name.quant = part;
    }
  }
  return name;
}

}  // namespace quire::hub
