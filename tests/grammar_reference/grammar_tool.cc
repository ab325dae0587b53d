// Lets the tests beside it ask quire's grammars: grammar_tool SEED < requests > answers.
// Shape   a request is one byte, w a regular expression for the whole text, s one for a part of it, e and l grammars in
//         EBNF and in lark's form; then the pattern, a u32 number of texts, and these; pattern and texts are a u32
//         length and bytes.
//         An answer is one byte, and behind
//           e  a u32 length and why the pattern was refused
//           o  for every text one byte: y it is a match, n it is not and something could still follow what was read of
//              it, d it is not, and nothing could, by whatever tokens the text was cut into; l it was not followed to
//              its end, for it has too many readings
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/grammar/grammar.h"
#include "core/grammar/matcher.h"
#include "core/grammar/text/ebnf.h"
#include "core/grammar/text/lark.h"
#include "core/grammar/text/regex.h"
#include "tests/support/patient.h"

namespace {

using namespace quire;
using namespace quire::grammar;

template <typename T>
T read() {
  T value{};
  std::cin.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

std::string read_text() {
  std::string text(read<std::uint32_t>(), '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

// All bytes, and random pieces of the texts.
std::shared_ptr<const Vocabulary> vocabulary_of(const std::vector<std::string>& texts, std::mt19937_64& random) {
  std::vector<std::string> pieces;
  for (int b = 0; b < 256; ++b) pieces.push_back(std::string(1, static_cast<char>(b)));
  for (int i = 0; i < 200 && !texts.empty(); ++i) {
    const std::string& text = texts[random() % texts.size()];
    if (!text.empty()) pieces.push_back(text.substr(random() % text.size(), 1 + random() % 6));
  }
  return std::make_shared<const Vocabulary>(std::move(pieces), std::vector<TokenId>{});
}

// Nothing may follow: with all bytes for tokens, only what has too many readings comes to this.
bool lost(Matcher& matcher, std::vector<std::uint32_t>& mask) {
  matcher.allowed(mask);
  return !matcher.complete() && std::all_of(mask.begin(), mask.end(), [](std::uint32_t word) { return word == 0; });
}

// Feeds the text in tokens taken at random; the mask has to agree with every one that is tried.
char verdict(const std::shared_ptr<const Grammar>& grammar, const std::string& text, std::mt19937_64& random) {
  const Vocabulary& vocabulary = grammar->vocabulary();
  Matcher matcher(grammar);
  std::vector<std::uint32_t> mask(vocabulary.mask_words());
  for (std::size_t at = 0; at < text.size();) {
    std::vector<TokenId> fit;
    for (const TokenId token : vocabulary.sorted()) {
      if (text.compare(at, vocabulary.piece(token).size(), vocabulary.piece(token)) == 0) fit.push_back(token);
    }
    const TokenId token = fit.at(random() % fit.size());
    matcher.allowed(mask);
    const bool allowed = (mask[static_cast<std::size_t>(token) / 32] >> token % 32 & 1) != 0;
    if (matcher.accept(token) != allowed && !lost(matcher, mask))
      throw std::runtime_error("the mask and accept() disagree");
    if (lost(matcher, mask)) return 'l';
    if (!allowed) return 'd';
    at += vocabulary.piece(token).size();
  }
  return matcher.complete() ? 'y' : 'n';
}

Result<std::shared_ptr<const Grammar>> compile(char what, const std::string& pattern,
                                               std::shared_ptr<const Vocabulary> vocabulary) {
  Rules rules;
  if (what == 'e') {
    if (const auto root = ebnf(rules, pattern); !root) return root.error();
  } else if (what == 'l') {
    if (const auto root = lark(rules, pattern); !root) return root.error();
  } else {
    const RuleId root = rules.declare("root");
    const auto body = regex(rules, pattern, what == 'w' ? RegexUse::kWhole : RegexUse::kSearch);
    if (!body) return body.error();
    rules.define(root, *body);
  }
  return Grammar::compile(rules, std::move(vocabulary), quire::testing::kPatient);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: grammar_tool SEED < requests > answers\n";
    return 2;
  }
  std::mt19937_64 random(std::strtoull(argv[1], nullptr, 10));
  char what;
  while (std::cin.get(what)) {
    const std::string pattern = read_text();
    std::vector<std::string> texts(read<std::uint32_t>());
    for (std::string& text : texts) text = read_text();
    const auto grammar = compile(what, pattern, vocabulary_of(texts, random));
    if (!grammar) {
      const std::string& why = grammar.error().message;
      const auto size = static_cast<std::uint32_t>(why.size());
      std::cout.put('e').write(reinterpret_cast<const char*>(&size), sizeof size).write(why.data(), size);
      continue;
    }
    std::cout.put('o');
    for (const std::string& text : texts) std::cout.put(verdict(*grammar, text, random));
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
