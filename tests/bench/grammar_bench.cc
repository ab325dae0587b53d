// What a grammar costs with a vocabulary of 128,000 tokens: grammar_bench [FILE], where FILE holds the pieces of a real one, each
// a u32 length and bytes.
//   Compile       a schema's rules to a Grammar. Target: 50 ms.
//   FirstMask     the first mask of a state inside a string: a walk over the whole vocabulary.
//   Token         a mask and a token accepted, along a text of the grammar, again and again: what a step pays. Target: 50 us.
//   WorstToken    the dearest of these masks, once everything was seen.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/grammar/ebnf.h"
#include "core/grammar/grammar.h"
#include "core/grammar/matcher.h"

namespace quire::grammar {
namespace {

std::string vocabulary_file;

std::vector<std::string> read_pieces(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good());
  std::vector<std::string> pieces;
  std::uint32_t size = 0;
  while (file.read(reinterpret_cast<char*>(&size), sizeof size)) {
    pieces.emplace_back(size, '\0');
    file.read(pieces.back().data(), size);
  }
  return pieces;
}

// Bytes, words with and without a space before them, numbers, marks in rows, characters of other scripts.
std::vector<std::string> invented_pieces() {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::set<std::string> pieces;
  for (int b = 0; b < 256; ++b) pieces.insert(std::string(1, static_cast<char>(b)));
  const std::string marks = "\"{}[]:,.;!?()<>/\\|-_+=*&^%$#@~`'\n\t ";
  while (pieces.size() < 128'000) {
    std::string piece = below(2) == 0 ? " " : "";
    const std::uint64_t kind = below(20);
    const std::uint64_t length = 1 + below(4) + below(5) + below(5);
    for (std::uint64_t i = 0; i < length; ++i) {
      if (kind < 13) {
        piece += static_cast<char>((i == 0 && below(4) == 0 ? 'A' : 'a') + below(26));
      } else if (kind == 13) {
        piece += static_cast<char>('0' + below(10));
      } else if (kind < 16) {
        piece += marks[below(marks.size())];
      } else {
        const auto c = 0x400 + below(0x5000);
        piece += static_cast<char>(0xE0 | c >> 12);
        piece += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        piece += static_cast<char>(0x80 | (c & 0x3F));
      }
    }
    pieces.insert(piece);
  }
  return {pieces.begin(), pieces.end()};
}

std::vector<std::string> pieces() { return vocabulary_file.empty() ? invented_pieces() : read_pieces(vocabulary_file); }

const std::shared_ptr<const Vocabulary>& vocabulary() {
  static const auto made = std::make_shared<const Vocabulary>(pieces(), std::vector<TokenId>{});
  return made;
}

const char* const kAnyJson = R"x(
root   ::= value
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (pair ("," ws pair)*)? ws "}"
pair   ::= string ":" ws value
array  ::= "[" ws (value ("," ws value)*)? ws "]"
string ::= "\"" char* "\""
char   ::= [^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws     ::= [ \n\t]{0,20}
)x";

const char* const kSchema = R"x(
root    ::= "{" ws "\"name\":" ws string "," ws "\"age\":" ws integer "," ws "\"tags\":" ws tags "," ws "\"address\":" ws address
            ("," ws "\"note\":" ws short)? ws "}"
tags    ::= "[" ws (string ("," ws string){0,9})? ws "]"
address ::= "{" ws "\"street\":" ws string "," ws "\"zip\":" ws "\"" [0-9]{5} "\"" "," ws "\"kind\":" ws ("\"home\"" | "\"work\"") ws "}"
short   ::= "\"" char{0,200} "\""
string  ::= "\"" char* "\""
char    ::= [^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
integer ::= "-"? ("0" | [1-9] [0-9]{0,17})
ws      ::= [ \n\t]{0,20}
)x";

const char* const kText =
    R"({"name": "Ada Lovelace, countess", "age": 36, "tags": ["mathematics", "poetry \u00e9", "engines"],
  "address": {"street": "12 St James's Square", "zip": "12345", "kind": "home"}, "note": "She wrote what is often called the first program, and thought further than the machine."})";

std::shared_ptr<const Grammar> compile(const char* text) {
  Rules rules;
  CHECK(ebnf(rules, text).ok());
  auto grammar = Grammar::compile(rules, vocabulary());
  CHECK(grammar.ok());
  return *grammar;
}

// The longest piece that fits, again and again.
std::vector<TokenId> tokens_of(std::string text) {
  const Vocabulary& pieces = *vocabulary();
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    TokenId best = -1;
    for (const TokenId t : pieces.sorted()) {
      if (text.starts_with(pieces.piece(t)) && (best < 0 || pieces.piece(t).size() > pieces.piece(best).size()))
        best = t;
    }
    tokens.push_back(best);
    text.erase(0, pieces.piece(best).size());
  }
  return tokens;
}

void VocabularyTree(benchmark::State& state) {
  const std::vector<std::string> all = pieces();
  for (auto _ : state) benchmark::DoNotOptimize(Vocabulary(all, {}));
}

void Compile(benchmark::State& state, const char* text) {
  vocabulary();
  for (auto _ : state) benchmark::DoNotOptimize(compile(text));
}

void FirstMask(benchmark::State& state) {
  std::vector<std::uint32_t> mask(vocabulary()->mask_words());
  const std::vector<TokenId> start = tokens_of("\"");
  for (auto _ : state) {
    state.PauseTiming();
    Matcher matcher(compile(kAnyJson));
    CHECK(matcher.accept(start[0]));
    state.ResumeTiming();
    matcher.allowed(mask);
    benchmark::DoNotOptimize(mask.data());
  }
}

void Token(benchmark::State& state, const char* text) {
  const auto grammar = compile(text);
  const std::vector<TokenId> tokens = tokens_of(kText);
  std::vector<std::uint32_t> mask(vocabulary()->mask_words());
  const Matcher start(grammar);
  Matcher matcher(start);
  std::size_t next = 0;
  for (auto _ : state) {
    matcher.allowed(mask);
    CHECK(matcher.accept(tokens[next++]));
    if (next == tokens.size()) matcher = start, next = 0;
  }
}

void WorstToken(benchmark::State& state, const char* text) {
  const auto grammar = compile(text);
  const std::vector<TokenId> tokens = tokens_of(kText);
  std::vector<std::uint32_t> mask(vocabulary()->mask_words());
  const Matcher start(grammar);
  for (int round = 0; auto _ : state) {
    Matcher matcher(start);
    double worst = 0;
    for (const TokenId token : tokens) {
      const auto begin = std::chrono::steady_clock::now();
      matcher.allowed(mask);
      if (round > 0)
        worst = std::max(worst, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      CHECK(matcher.accept(token));
    }
    state.SetIterationTime(worst);
    ++round;
  }
}

BENCHMARK(VocabularyTree)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Compile, any_json, kAnyJson)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Compile, schema, kSchema)->Unit(benchmark::kMillisecond);
BENCHMARK(FirstMask)->Unit(benchmark::kMicrosecond)->Iterations(50);
BENCHMARK_CAPTURE(Token, any_json, kAnyJson)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Token, schema, kSchema)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(WorstToken, any_json, kAnyJson)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(100);
BENCHMARK_CAPTURE(WorstToken, schema, kSchema)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(100);

}  // namespace
}  // namespace quire::grammar

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc > 1) quire::grammar::vocabulary_file = argv[1];
  benchmark::RunSpecifiedBenchmarks();
}
