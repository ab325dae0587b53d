#include "core/grammar/schema/formats.h"

#include <algorithm>
#include <vector>

namespace quire::grammar {
namespace {

// Every date from 0001-01-01 to 9999-12-31, and no 30th of February.
std::string date() {
  const std::string year = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)";
  const std::string leap_year = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
  return "(?:" + year +
         "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
         "|02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
         leap_year + "-02-29)";
}

std::string time() {
  const std::string hour_minute = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
  return hour_minute + ":[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-]" + hour_minute + ")";
}

std::string duration() {
  const std::string n = "[0-9]{1,9}";
  const std::string clock = "T(?:" + n + "H(?:" + n + "M(?:" + n + "S)?)?|" + n + "M(?:" + n + "S)?|" + n + "S)";
  const std::string days = "(?:" + n + "Y(?:" + n + "M(?:" + n + "D)?)?|" + n + "M(?:" + n + "D)?|" + n + "D)";
  return "P(?:" + n + "W|" + days + "(?:" + clock + ")?|" + clock + ")";
}

std::string ipv4() {
  const std::string byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return "(?:" + byte + "\\.){3}" + byte;
}

std::string ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  std::string out = "(?:(?:" + group + ":){7}" + group + "|::";
  for (int before = 0; before < 7; ++before) {  // :: stands for one group or more
    const std::string most = std::to_string(6 - before);
    const std::string left = before == 0 ? "" : group + "(?::" + group + "){" + std::to_string(before - 1) + "}";
    out += "|" + left + "::" + (before == 6 ? group : group + "(?::" + group + "){0," + most + "}");
    if (before > 0) out += "|" + left + "::";
  }
  return out + "|(?:" + group + ":){7}:)";
}

// A hostname of up to five labels, of up to 49 characters each, without two hyphens in a row, which mark punycode.
std::string hostname() {
  const std::string label = "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,24}";
  return label + "(?:\\." + label + "){0,3}(?:\\.[A-Za-z](?:-?[A-Za-z0-9]){0,24})?";
}

std::string email() {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}";
  return atom + "(?:\\." + atom + "){0,2}@" + hostname();
}

std::string uri() {
  const std::string unreserved = "A-Za-z0-9._~!$&'()*+,;=:@-";
  const std::string escaped = "%[0-9A-Fa-f]{2}";
  const std::string path = "(?:[" + unreserved + "]|" + escaped + ")";
  const std::string query = "(?:[/?" + unreserved + "]|" + escaped + ")";
  return "[a-z][a-z0-9+.-]{0,15}://" + hostname() + "(?::[0-9]{1,5})?(?:/" + path + "*)*(?:\\?" + query + "*)?(?:#" +
         query + "*)?";
}

const std::vector<Format>& table() {
  static const std::vector<Format> kFormats = {
      {"date", "every day of the years 0001 to 9999", date()},
      {"time", "with a zone, up to nine digits of a second, no leap seconds", time()},
      {"date-time", "a date, T and a time", date() + "T" + time()},
      {"duration", "up to nine digits per number", duration()},
      {"uuid", "", "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"},
      {"ipv4", "", ipv4()},
      {"ipv6", "without a part in IPv4 notation", ipv6()},
      {"hostname", "up to five labels, no two hyphens in a row", hostname()},
      {"email", "up to three atoms, @ and a hostname", email()},
      {"uri", "scheme://hostname, then port, path, query, fragment; no user, no address", uri()},
      {"json-pointer", "", "(?:/(?:[^~/]|~[01])*)*"},
      {"int32", "integers from -2147483648 to 2147483647", ""},
      {"int64", "same as integer", ""},
      {"float", "same as number", ""},
      {"double", "same as number", ""},
      {"password", "a hint for forms, not enforced", ""},
  };
  return kFormats;
}

}  // namespace

std::span<const Format> formats() { return table(); }

const Format* find_format(std::string_view name) {
  const auto found = std::find_if(table().begin(), table().end(), [&](const Format& f) { return f.name == name; });
  return found == table().end() ? nullptr : &*found;
}

}  // namespace quire::grammar
