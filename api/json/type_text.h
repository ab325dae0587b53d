// Types of JSON values as text, in the tables that describe bodies and answers.
// Shape   alternatives are separated by |: string, integer, number, boolean, null, object, any; [T] a list of T; {T} an
//         object whose members have type T; 'word' the string "word"; a name that begins with a capital letter is a
//         schema of /openapi.json.
// Thread  any; pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quire::api {

// The alternatives of a type, as views into it.
std::vector<std::string_view> alternatives_of(std::string_view type);

// The type without items, words and names, for documents: "array|string" for "[integer]|'auto'|string".
std::string plain_type(std::string_view type);

}  // namespace quire::api
