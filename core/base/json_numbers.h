// Numbers of JSON that a parser may not hold, written so that it does. JSON has no largest number: transformers writes
// "model_max_length": 1000000000000000019884624838656 into most tokenizer_config.json.
// Shape   whole numbers beyond 64 bits become decimals, what is beyond a double its largest or 0, and 0 with an exponent 0. All else
//         stays, what is no JSON, too.
// Thread  any; pure.
// Source  RFC 8259, 6; ours.
#pragma once

#include <string>
#include <string_view>

namespace quire {

std::string with_readable_numbers(std::string_view json);

}  // namespace quire
