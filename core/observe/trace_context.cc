#include "core/observe/trace_context.h"

#include <algorithm>
#include <cmath>

namespace quire::observe {
namespace {

constexpr std::size_t kVersionDigits = 2;
constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kSpanDigits = 16;
constexpr std::size_t kFlagsDigits = 2;
constexpr std::size_t kTraceAt = kVersionDigits + 1;
constexpr std::size_t kSpanAt = kTraceAt + kTraceDigits + 1;
constexpr std::size_t kFlagsAt = kSpanAt + kSpanDigits + 1;
constexpr std::size_t kLength = kFlagsAt + kFlagsDigits;  // of version 00; later versions begin with the same fields

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }
unsigned value_of(char hex) { return static_cast<unsigned>(is_digit(hex) ? hex - '0' : hex - 'a' + 10); }

bool all_hex(std::string_view text) { return std::all_of(text.begin(), text.end(), is_hex); }
bool is_id(std::string_view text) { return all_hex(text) && text.find_first_not_of('0') != text.npos; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_key_char(char c) {
  return is_lower(c) || is_digit(c) || std::string_view("_-*/").find(c) != std::string_view::npos;
}
bool is_key_part(std::string_view text, std::size_t max_bytes, bool may_begin_with_digit) {
  if (text.empty() || text.size() > max_bytes) return false;
  if (!is_lower(text[0]) && !(may_begin_with_digit && is_digit(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), is_key_char);
}

// True for a key `vendor` or `tenant@vendor`.
bool is_key(std::string_view key) {
  const std::size_t at = key.find('@');
  if (at == key.npos) return is_key_part(key, 256, false);
  return is_key_part(key.substr(0, at), 241, true) && is_key_part(key.substr(at + 1), 14, false);
}

bool is_value(std::string_view value) {
  if (value.empty() || value.size() > 256 || value.back() == ' ') return false;
  return std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c <= 0x7e && c != ',' && c != '='; });
}

}  // namespace

std::optional<TraceParent> parse_traceparent(std::string_view field) {
  field = trimmed(field);
  if (field.size() < kLength) return std::nullopt;
  const std::string_view version = field.substr(0, kVersionDigits);
  if (!all_hex(version) || version == "ff") return std::nullopt;
  if (field.size() > kLength && (version == "00" || field[kLength] != '-')) return std::nullopt;
  const std::string_view trace = field.substr(kTraceAt, kTraceDigits);
  const std::string_view span = field.substr(kSpanAt, kSpanDigits);
  const std::string_view flags = field.substr(kFlagsAt, kFlagsDigits);
  for (const std::size_t dash : {kTraceAt, kSpanAt, kFlagsAt}) {
    if (field[dash - 1] != '-') return std::nullopt;
  }
  if (!is_id(trace) || !is_id(span) || !all_hex(flags)) return std::nullopt;
  return TraceParent{std::string(trace), std::string(span), (value_of(flags[1]) & 1) != 0};
}

bool is_tracestate(std::string_view fields) {
  if (fields.size() > kMaxTraceStateBytes) return false;
  std::size_t num_members = 0;
  for (bool more = true; more;) {
    const std::size_t comma = fields.find(',');
    const std::string_view member = trimmed(fields.substr(0, comma));
    more = comma != fields.npos;
    if (more) fields.remove_prefix(comma + 1);
    if (member.empty()) continue;  // allowed; does not count as a member
    const std::size_t equals = member.find('=');
    if (equals == member.npos || !is_key(member.substr(0, equals)) || !is_value(member.substr(equals + 1)))
      return false;
    if (++num_members > kMaxTraceStateMembers) return false;
  }
  return num_members > 0;
}

bool Sampler::takes(std::string_view trace_id, const TraceParent* parent) const {
  if (parent != nullptr && follows_parent) return parent->sampled;
  if (root_share >= 1.0) return true;
  // The last 64 bits of a trace id are random: it is sampled if they are below root_share * 2^64.
  std::uint64_t low = 0;
  for (const char digit : trace_id.substr(trace_id.size() - kSpanDigits)) low = low << 4 | value_of(digit);
  return low < static_cast<std::uint64_t>(std::round(std::ldexp(root_share, 64)));
}

}  // namespace quire::observe
