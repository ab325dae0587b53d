#include "core/text/unicode/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/text/unicode/unicode_tables.h"
#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

namespace tables = unicode_tables;

constexpr unsigned kNumCategories = 30;
constexpr std::string_view kCategoryNames = "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCoCn";

// Hangul syllables are composed arithmetically (section 3.12).
constexpr char32_t kHangulBase = 0xAC00, kLeadBase = 0x1100, kVowelBase = 0x1161, kTailBase = 0x11A7;
constexpr char32_t kNumLeads = 19, kNumVowels = 21, kNumTails = 28, kNumSyllables = kNumLeads * kNumVowels * kNumTails;

constexpr char32_t kFirstThatChanges = 0xC0;     // below it, NFD and NFC change nothing
constexpr char32_t kFirstThatComposes = 0x0300;  // below it, NFC changes nothing
constexpr char32_t kFirstCompatible = 0xA0;      // below it, no form changes anything

unsigned combining_class(char32_t code) {
  if (code < kFirstThatComposes) return 0;
  const auto after = std::upper_bound(tables::kCombiningRuns.begin(), tables::kCombiningRuns.end(), code << 8 | 0xFF);
  return *std::prev(after) & 0xFF;
}

void append_table_decomposition(std::u32string& out, char32_t code, bool compatible) {
  const auto find = [&](std::uint32_t key) {
    const auto at = std::lower_bound(tables::kDecompositions.begin(), tables::kDecompositions.end(), key,
                                     [](const tables::Decomposition& d, std::uint32_t k) { return d.key < k; });
    return at != tables::kDecompositions.end() && at->key == key ? &*at : nullptr;
  };
  const tables::Decomposition* found = compatible ? find(code * 2 + 1) : nullptr;
  if (found == nullptr) found = find(code * 2);
  if (found == nullptr) {
    out += code;
    return;
  }
  out.append(tables::kDecompositionPool.begin() + found->offset,
             tables::kDecompositionPool.begin() + found->offset + found->length);
}

void append_decomposition(std::u32string& out, char32_t code, bool compatible) {
  const char32_t syllable = code - kHangulBase;
  if (code < kFirstCompatible) {
    out += code;
  } else if (code >= kHangulBase && syllable < kNumSyllables) {
    out += kLeadBase + syllable / (kNumVowels * kNumTails);
    out += kVowelBase + syllable / kNumTails % kNumVowels;
    if (syllable % kNumTails != 0) out += kTailBase + syllable % kNumTails;
  } else {
    append_table_decomposition(out, code, compatible);
  }
}

// Sorts every run of combining marks by class; equal classes keep their order.
void order_marks(std::u32string& codes) {
  struct Mark {
    char32_t code;
    unsigned order;
  };
  std::vector<Mark> marks;
  for (std::size_t begin = 0; begin < codes.size();) {
    if (combining_class(codes[begin]) == 0) {
      ++begin;
      continue;
    }
    marks.clear();
    std::size_t end = begin;
    for (; end < codes.size(); ++end) {
      const unsigned order = combining_class(codes[end]);
      if (order == 0) break;
      marks.push_back({codes[end], order});
    }
    std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.order < b.order; });
    for (const Mark& mark : marks) codes[begin++] = mark.code;
  }
}

std::optional<char32_t> composite(char32_t first, char32_t second) {
  if (first - kLeadBase < kNumLeads && second - kVowelBase < kNumVowels) {
    return kHangulBase + ((first - kLeadBase) * kNumVowels + (second - kVowelBase)) * kNumTails;
  }
  if (first - kHangulBase < kNumSyllables && (first - kHangulBase) % kNumTails == 0 &&
      second - kTailBase - 1 < kNumTails - 1) {
    return first + (second - kTailBase);
  }
  const auto pair = std::pair<std::uint32_t, std::uint32_t>(first, second);
  const auto at = std::lower_bound(
      tables::kCompositions.begin(), tables::kCompositions.end(), pair,
      [](const tables::Composition& c, const auto& wanted) { return std::pair(c.first, c.second) < wanted; });
  if (at == tables::kCompositions.end() || std::pair(at->first, at->second) != pair) return std::nullopt;
  return at->composite;
}

// UAX #15, D117: a character joins the last starter unless a character between them has the same or a higher class.
void compose(std::u32string& codes) {
  constexpr std::size_t kNoStarter = static_cast<std::size_t>(-1);
  std::size_t starter = kNoStarter, size = 0;
  unsigned last_class = 0;
  for (const char32_t code : codes) {
    const unsigned own_class = combining_class(code);
    const bool adjacent = starter != kNoStarter && starter + 1 == size;
    const bool blocked = !adjacent && last_class >= own_class;
    if (starter != kNoStarter && !blocked) {
      if (const auto joined = composite(codes[starter], code)) {
        codes[starter] = *joined;
        continue;
      }
    }
    if (own_class == 0) starter = size;
    last_class = own_class;
    codes[size++] = code;
  }
  codes.resize(size);
}

bool is_already(std::string_view text, NormalForm form) {
  const char32_t limit = form == NormalForm::kNfc   ? kFirstThatComposes
                         : form == NormalForm::kNfd ? kFirstThatChanges
                                                    : kFirstCompatible;
  for (std::size_t at = 0; at < text.size();) {
    if (next_code_point(text, at) >= limit) return false;
  }
  return true;
}

}  // namespace

std::optional<CategorySet> category_set(std::string_view name) {
  CategorySet found = 0;
  if (name.empty() || name.size() > 2) return std::nullopt;
  for (unsigned i = 0; i < kNumCategories; ++i) {
    if (kCategoryNames.substr(2 * i, name.size()) == name) found |= CategorySet{1} << i;
  }
  return found == 0 ? std::nullopt : std::optional(found);
}

Category category_of(char32_t code) {
  const auto after = std::upper_bound(tables::kCategoryRuns.begin(), tables::kCategoryRuns.end(), code << 5 | 0x1F);
  return static_cast<Category>(*std::prev(after) & 0x1F);
}

std::vector<CodeRange> ranges_of(CategorySet categories) {
  std::vector<CodeRange> ranges;
  for (std::size_t i = 0; i < tables::kCategoryRuns.size(); ++i) {
    const std::uint32_t run = tables::kCategoryRuns[i];
    if ((categories >> (run & 0x1F) & 1) == 0) continue;
    const char32_t first = run >> 5;
    const char32_t last =
        i + 1 < tables::kCategoryRuns.size() ? (tables::kCategoryRuns[i + 1] >> 5) - 1 : kMaxCodePoint;
    if (!ranges.empty() && ranges.back().last + 1 == first) {
      ranges.back().last = last;
    } else {
      ranges.push_back({first, last});
    }
  }
  return ranges;
}

const std::vector<CodeRange>& white_space_ranges() {
  static const std::vector<CodeRange> kRanges = {{0x09, 0x0D},     {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                                 {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                                 {0x205F, 0x205F}, {0x3000, 0x3000}};
  return kRanges;
}

bool is_white_space(char32_t code) {
  return std::any_of(white_space_ranges().begin(), white_space_ranges().end(),
                     [&](const CodeRange& range) { return range.first <= code && code <= range.last; });
}

bool is_accent(char32_t code) {
  const auto after = std::upper_bound(tables::kAccentRuns.begin(), tables::kAccentRuns.end(), code << 1 | 1);
  return (*std::prev(after) & 1) != 0;
}

bool is_word(char32_t code) {
  // Alphabetic is L, Nl and Other_Alphabetic. Of the latter, only these circled and squared letters are not in M.
  constexpr CodeRange kOtherAlphabetic[] = {
      {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  constexpr CodeRange kJoinControl = {0x200C, 0x200D};
  const auto holds = [&](const CodeRange& range) { return range.first <= code && code <= range.last; };
  static const CategorySet kWord =
      *category_set("L") | *category_set("M") | *category_set("Nl") | *category_set("Nd") | *category_set("Pc");
  return (kWord & set_of(category_of(code))) != 0 || holds(kJoinControl) ||
         std::any_of(std::begin(kOtherAlphabetic), std::end(kOtherAlphabetic), holds);
}

std::string normalized(std::string_view valid_text, NormalForm form) {
  if (is_already(valid_text, form)) return std::string(valid_text);
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  std::u32string codes;
  codes.reserve(valid_text.size());
  for (std::size_t at = 0; at < valid_text.size();) {
    append_decomposition(codes, next_code_point(valid_text, at), compatible);
  }
  order_marks(codes);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) compose(codes);
  return utf8_of(codes);
}

std::string lowercased(std::string_view valid_text) {
  std::string out;
  out.reserve(valid_text.size());
  for (std::size_t at = 0; at < valid_text.size();) {
    const char32_t code = next_code_point(valid_text, at);
    if (code == 0x130) {  // the only character with two characters as lower case: i and a dot above
      out += "i\xCC\x87";
      continue;
    }
    const auto after = std::upper_bound(tables::kLowercaseRuns.begin(), tables::kLowercaseRuns.end(), code,
                                        [](char32_t c, const tables::LowercaseRun& run) { return c < run.first; });
    char32_t lower = code;
    if (after != tables::kLowercaseRuns.begin()) {
      const tables::LowercaseRun& run = *std::prev(after);
      if (code <= run.last && (code - run.first) % run.step == 0) {
        lower = static_cast<char32_t>(static_cast<std::int32_t>(code) + run.delta);
      }
    }
    append_utf8(out, lower);
  }
  return out;
}

}  // namespace quire::text
