#include "core/grammar/schema/keywords.h"

#include <algorithm>

namespace quire::grammar {
namespace {

using enum KeywordUse;
using enum KeywordHolds;

constexpr Keyword kKeywords[] = {
    {"$schema", kPartly, kNoSchema, "drafts 7, 2019-09 and 2020-12"},
    {"$id", kPartly, kNoSchema, "at the root"},
    {"$ref", kPartly, kNoSchema, "inside the document, recursion included; keywords beside it apply, too"},
    {"$anchor", kEnforced, kNoSchema, ""},
    {"$dynamicAnchor", kPartly, kNoSchema, "same as $anchor"},
    {"$defs", kEnforced, kNamedSchemas, ""},
    {"definitions", kEnforced, kNamedSchemas, ""},
    {"$dynamicRef", kRefused, kNoSchema, "use $ref"},
    {"$recursiveRef", kRefused, kNoSchema, "use $ref"},
    {"$recursiveAnchor", kRefused, kNoSchema, "use $ref"},
    {"$vocabulary", kRefused, kNoSchema, "leave it out"},

    {"type", kEnforced, kNoSchema, ""},
    {"enum", kPartly, kNoSchema, "arrays and objects in it only if no other keyword constrains them"},
    {"const", kPartly, kNoSchema, "same as enum"},

    {"allOf", kEnforced, kSchemas, "the schemas are merged"},
    {"anyOf", kEnforced, kSchemas, ""},
    {"oneOf", kPartly, kSchemas,
     "branches that exclude each other: by type, by const or enum, by range, by a property"},
    {"not", kPartly, kSchema, "true, false, or only a type"},
    {"if", kPartly, kSchema, "true or false, or without then and else"},
    {"then", kPartly, kSchema, "see if"},
    {"else", kPartly, kSchema, "see if"},
    {"dependentRequired", kEnforced, kNoSchema, ""},
    {"dependentSchemas", kEnforced, kNamedSchemas, ""},
    {"dependencies", kEnforced, kNamedSchemas, ""},

    {"properties", kEnforced, kNamedSchemas, "written in this order"},
    {"required", kEnforced, kNoSchema, ""},
    {"additionalProperties", kEnforced, kSchema, "absent: no other properties than those in properties"},
    {"patternProperties", kPartly, kNamedSchemas, "up to four patterns per object"},
    {"propertyNames", kEnforced, kSchema, ""},
    {"minProperties", kPartly, kNoSchema, "if the named properties reach it, or are only one short"},
    {"maxProperties", kEnforced, kNoSchema, ""},
    {"unevaluatedProperties", kPartly, kSchema, "without keywords that apply other schemas in place"},

    {"items", kEnforced, kSchema, ""},
    {"prefixItems", kEnforced, kSchemas, ""},
    {"additionalItems", kPartly, kSchema, "with a list of items, before 2020-12"},
    {"minItems", kEnforced, kNoSchema, ""},
    {"maxItems", kEnforced, kNoSchema, ""},
    {"uniqueItems", kPartly, kNoSchema, "false; with maxItems up to 1; or with items of an enum, written in its order"},
    {"contains", kRefused, kSchema, "describe the items with items and prefixItems"},
    {"minContains", kPartly, kNoSchema, "ignored without contains"},
    {"maxContains", kPartly, kNoSchema, "ignored without contains"},
    {"unevaluatedItems", kPartly, kSchema, "without keywords that apply other schemas in place"},

    {"minLength", kEnforced, kNoSchema, "code points"},
    {"maxLength", kEnforced, kNoSchema, "code points"},
    {"pattern", kPartly, kNoSchema, "regular expressions of ECMA-262 without look-around and back-references"},
    {"format", kPartly, kNoSchema, "see below"},

    {"minimum", kEnforced, kNoSchema, ""},
    {"maximum", kEnforced, kNoSchema, ""},
    {"exclusiveMinimum", kEnforced, kNoSchema, ""},
    {"exclusiveMaximum", kEnforced, kNoSchema, ""},
    {"multipleOf", kPartly, kNoSchema, "integers; the numbers are then written without a point"},

    {"title", kAnnotation, kNoSchema, ""},
    {"description", kAnnotation, kNoSchema, ""},
    {"markdownDescription", kAnnotation, kNoSchema, ""},
    {"default", kAnnotation, kNoSchema, ""},
    {"example", kAnnotation, kNoSchema, ""},
    {"examples", kAnnotation, kNoSchema, ""},
    {"$comment", kAnnotation, kNoSchema, ""},
    {"deprecated", kAnnotation, kNoSchema, ""},
    {"readOnly", kAnnotation, kNoSchema, ""},
    {"writeOnly", kAnnotation, kNoSchema, ""},
    {"contentEncoding", kAnnotation, kNoSchema, ""},
    {"contentMediaType", kAnnotation, kNoSchema, ""},
    {"contentSchema", kAnnotation, kNoSchema, ""},
    {"discriminator", kAnnotation, kNoSchema, ""},
    {"externalDocs", kAnnotation, kNoSchema, ""},
    {"xml", kAnnotation, kNoSchema, ""},
    {"nullable", kPartly, kNoSchema, "false only; for true use type: [..., \"null\"]"},
};

}  // namespace

std::span<const Keyword> keywords() { return kKeywords; }

const Keyword* find_keyword(std::string_view name) {
  static constexpr Keyword kExtension{"x-", kAnnotation, kNoSchema, ""};
  if (name.starts_with("x-")) return &kExtension;
  const auto* found =
      std::find_if(std::begin(kKeywords), std::end(kKeywords), [&](const auto& k) { return k.name == name; });
  return found == std::end(kKeywords) ? nullptr : found;
}

}  // namespace quire::grammar
