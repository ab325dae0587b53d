// The shapes that a schema allows, with $ref, allOf, anyOf, oneOf, not, if and the dependent keywords expanded.
// Shape   of(ids) is a list of shapes; a value is valid for all of the schemas if it has one of them. Empty: none is.
// Owner   caches its results; owned by the front end of one schema.
// Fails   throws Refusal for schemas that cannot be expressed as shapes and beyond the limits; LanguageTooLarge, and
//         what WriteBudget throws.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/grammar/schema/document.h"
#include "core/grammar/schema/shape.h"
#include "core/grammar/schema/shape_reader.h"

namespace quire::grammar {

struct AlternativeLimits {
  ShapeLimits shape;
  std::uint32_t max_shapes = 0;  // made in total
};

class Alternatives {
 public:
  Alternatives(Document& document, const AlternativeLimits& limits, StateBudget& budget)
      : document_(document), limits_(limits), budget_(budget) {}

  std::vector<Shape> of(std::span<const SchemaId> ids);
  // The same; none if one of them is still being worked out by a caller.
  std::optional<std::vector<Shape>> of_if_known(std::span<const SchemaId> ids);

  // The strings that are valid for all of `schemas`.
  Language strings(std::span<const SchemaId> schemas);
  static Language strings(const Shape& shape, StateBudget& budget);

 private:
  const std::vector<Shape>& of_one(SchemaId id);
  std::vector<Shape> work_out(SchemaId id);
  std::vector<Shape> all_of_both(const std::vector<Shape>& a, const std::vector<Shape>& b, SchemaId at);
  void apply_one_of(SchemaId id, std::vector<Shape>& shapes);
  void apply_not(SchemaId id, std::vector<Shape>& shapes);
  void apply_if(SchemaId id, std::vector<Shape>& shapes);
  void apply_dependent(SchemaId id, std::string_view keyword, std::vector<Shape>& shapes);
  std::size_t list_size(SchemaId id, std::string_view keyword) const;

  Document& document_;
  AlternativeLimits limits_;
  StateBudget& budget_;
  std::uint32_t num_shapes_ = 0;
  std::unordered_map<SchemaId, std::vector<Shape>> known_;
  std::vector<SchemaId> in_progress_;
};

}  // namespace quire::grammar
