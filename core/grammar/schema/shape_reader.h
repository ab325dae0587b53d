// Reads the keywords of one schema that constrain a value directly into a Shape: all but $ref, allOf, anyOf, oneOf,
// not, if and the dependent ones.
// Fails   throws Refusal, LanguageTooLarge, and what WriteBudget throws.
#pragma once

#include "core/grammar/schema/document.h"
#include "core/grammar/schema/shape.h"

namespace quire::grammar {

struct ShapeLimits {
  std::uint32_t max_properties = 0;  // of one object
  std::uint32_t max_values = 0;      // of one enum
};

Shape read_shape(Document& document, SchemaId id, const ShapeLimits& limits, StateBudget& budget);

}  // namespace quire::grammar
