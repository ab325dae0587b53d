// Rewrites JSON found in model files so that any parser reads it. JSON has no largest number: transformers writes
// "model_max_length": 1000000000000000019884624838656 into most tokenizer_config.json. Python's json writes NaN and
// Infinity, and editors add a byte order mark.
// Shape   integers beyond 64 bits get a ".0"; numbers out of a double's range become 0 if they have a negative
//         exponent, else the largest double with their sign; Infinity becomes that double, too; 0 with an exponent
//         becomes 0, NaN null; the byte order mark is removed. All else stays, even text that is not JSON.
// Thread  any; pure.
// Source  RFC 8259, 6 and 8.1; CPython's json; ours.
#pragma once

#include <string>
#include <string_view>

namespace quire {

std::string readable_json(std::string_view json);

}  // namespace quire
