// Text as a JSON string, for answers, spans and logs.
// Thread  any; a pure function.
// Fails   never: bytes that are not UTF-8 become U+FFFD.
// Source  RFC 8259, section 7. Characters beyond ASCII are not escaped.
#pragma once

#include <string>
#include <string_view>

namespace quire {

// Appends the string with its quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace quire
