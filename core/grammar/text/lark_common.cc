#include "core/grammar/text/lark_common.h"

#include <algorithm>
#include <array>
#include <utility>

namespace quire::grammar {
namespace {

using Terminal = std::pair<std::string_view, std::string_view>;

constexpr std::array kTerminals = {
    Terminal{"DIGIT", R"([0-9])"},
    Terminal{"HEXDIGIT", R"([a-fA-F0-9])"},
    Terminal{"INT", R"([0-9]+)"},
    Terminal{"SIGNED_INT", R"([+-]?[0-9]+)"},
    Terminal{"DECIMAL", R"([0-9]+\.[0-9]*|\.[0-9]+)"},
    Terminal{"_EXP", R"([eE][+-]?[0-9]+)"},
    Terminal{"FLOAT", R"([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    Terminal{"SIGNED_FLOAT", R"([+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?))"},
    Terminal{"NUMBER", R"(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    Terminal{"SIGNED_NUMBER", R"([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    Terminal{"ESCAPED_STRING", R"("([^"\\\n]|\\[^\n])*")"},
    Terminal{"LCASE_LETTER", R"([a-z])"},
    Terminal{"UCASE_LETTER", R"([A-Z])"},
    Terminal{"LETTER", R"([A-Za-z])"},
    Terminal{"WORD", R"([A-Za-z]+)"},
    Terminal{"CNAME", R"([_A-Za-z][_A-Za-z0-9]*)"},
    Terminal{"WS_INLINE", R"([ \t]+)"},
    Terminal{"WS", R"([ \t\f\r\n]+)"},
    Terminal{"CR", R"(\r)"},
    Terminal{"LF", R"(\n)"},
    Terminal{"NEWLINE", R"((\r?\n)+)"},
    Terminal{"SH_COMMENT", R"(#[^\n]*)"},
    Terminal{"CPP_COMMENT", R"(//[^\n]*)"},
    Terminal{"SQL_COMMENT", R"(--[^\n]*)"},
    Terminal{"C_COMMENT", R"(/\*[^*]*\*+([^/*][^*]*\*+)*/)"},
};

}  // namespace

std::string_view common_terminal(std::string_view name) {
  const auto* const found = std::ranges::find(kTerminals, name, &Terminal::first);
  return found == kTerminals.end() ? std::string_view() : found->second;
}

}  // namespace quire::grammar
