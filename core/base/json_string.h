// Text as a JSON string: what answers, spans and logs are written with.
// Thread  any; a pure function.
// Fails   never: bytes that are not UTF-8 come out as U+FFFD.
// Source  RFC 8259, section 7. What follows ASCII stands as it is.
#pragma once

#include <string>
#include <string_view>

namespace quire {

// With its quotes, appended.
void append_json_string(std::string& out, std::string_view text);

}  // namespace quire
