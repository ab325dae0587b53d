// Unicode 16.0 properties of a character: category, white space, lower case, and the four normal forms of text.
// Thread  any; pure functions over constant tables.
// Source  Unicode Character Database 16.0.0; normal forms: UAX #15; Hangul: The Unicode Standard, section 3.12.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::text {

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;

enum class Category : std::uint8_t {
  // clang-format off
  kLu, kLl, kLt, kLm, kLo, kMn, kMc, kMe, kNd, kNl, kNo, kPc, kPd, kPs, kPe,
  kPi, kPf, kPo, kSm, kSc, kSk, kSo, kZs, kZl, kZp, kCc, kCf, kCs, kCo, kCn,
  // clang-format on
};

using CategorySet = std::uint32_t;  // bit i: Category i
constexpr CategorySet set_of(Category category) { return CategorySet{1} << static_cast<unsigned>(category); }

// Categories of "L", "Nd", ...: the name between \p{ and }. nullopt for names that are not general categories.
std::optional<CategorySet> category_set(std::string_view name);

struct CodeRange {
  char32_t first, last;  // inclusive
};

Category category_of(char32_t code);
std::vector<CodeRange> ranges_of(CategorySet categories);  // ascending, disjoint
const std::vector<CodeRange>& white_space_ranges();
bool is_white_space(char32_t code);
// Characters that StripAccents drops: the marks (M) of the Unicode version that the `tokenizers` package uses for it.
bool is_accent(char32_t code);
bool is_word(char32_t code);  // \w: Alphabetic, M, Nd, Pc, Join_Control

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::string normalized(std::string_view valid_text, NormalForm form);

// Maps each character by its own full mapping, without context (a final sigma becomes σ).
std::string lowercased(std::string_view valid_text);

}  // namespace quire::text
