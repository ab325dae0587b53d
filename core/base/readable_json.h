// JSON as people's files have it, written so that any parser reads it. JSON has no largest number: transformers writes
// "model_max_length": 1000000000000000019884624838656 into most tokenizer_config.json. Python's writer has NaN and
// Infinity, and editors put a byte order mark in front.
// Shape   whole numbers beyond 64 bits become decimals; numbers beyond a double, and Infinity, its largest or 0; 0 with
//         an exponent 0; NaN becomes null; the mark goes. All else stays, even what is no JSON.
// Thread  any; pure.
// Source  RFC 8259, 6 and 8.1; CPython's json; ours.
#pragma once

#include <string>
#include <string_view>

namespace quire {

std::string readable_json(std::string_view json);

}  // namespace quire
