// Formats that quantised matrices are brought into, by the bits of a code and the inputs that share a scale.
// Thread  any; pure.
#pragma once

#include <cstdint>
#include <optional>

#include "core/backend/weights/format.h"

namespace quire::model {

// Blocks with the same codes as `like`, for groups of so many inputs (0: all of them): of the largest size that divides
// both the group and the number of inputs. Nothing: no size does.
std::optional<backend::Format> grouped_format(backend::BlockType like, std::uint64_t group, std::uint64_t inputs);

// Of integers of 2 to 8 bits; has_zeros: a zero is not the middle of the codes. Zeros of 4 and 8 bits lie beside the
// codes. Other codes are less their zero, which takes a bit more; 5 to 7 bits have 8.
std::optional<backend::Format> int_format(std::uint64_t bits, bool has_zeros, std::uint64_t group,
                                          std::uint64_t inputs);

}  // namespace quire::model
