// Costs of grammars with a vocabulary of 128,000 tokens: grammar_bench [FILE], where FILE holds the pieces of a real
// one, each a u32 length and bytes.
//   Compile       a schema's rules to a Grammar. Target: 50 ms.
//   FirstMask     the first mask inside a string, which compile() has found.
//   Token         a mask and a token accepted, along a text of the grammar, again and again: what a step pays. Target:
//   50 us.
//   WorstToken    the dearest of these masks, once everything was seen.
//   Case, Slow    of every grammar in grammar_cases.h, along texts of its own: compile_ms; first_us, the dearest mask
//                 of a new grammar; median_us, p99_us and worst_us of all masks once everything was seen, each the
//                 least of some tries. The first two are of processor time.
#include <benchmark/benchmark.h>
#include <time.h>

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
#include "core/grammar/grammar.h"
#include "core/grammar/matcher.h"
#include "core/grammar/text/ebnf.h"
#include "tests/bench/grammar_cases.h"

namespace quire::grammar {
namespace {

using bench::kAnyJson;

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

double microseconds() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of this thread alone, whoever else runs.
double cpu_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

struct Walk {
  std::vector<TokenId> tokens;
  std::vector<double> times;  // of the mask before each, in microseconds
};

TokenId pick(const std::vector<std::uint32_t>& mask, std::mt19937_64& random) {
  std::vector<TokenId> all;
  std::vector<TokenId> marks;  // with what ends strings, objects and the like in them
  for (std::size_t t = 0; t < 32 * mask.size(); ++t) {
    if ((mask[t / 32] >> t % 32 & 1) == 0) continue;
    const auto token = static_cast<TokenId>(t);
    all.push_back(token);
    if (vocabulary()->piece(token).find_first_of("\"{}[],:;.()'-\n") != std::string_view::npos) marks.push_back(token);
  }
  const std::vector<TokenId>& from = marks.empty() || random() % 4 != 0 ? all : marks;
  return from.empty() ? -1 : from[random() % from.size()];
}

// At random, up to so many tokens.
Walk walk(const std::shared_ptr<const Grammar>& grammar, std::size_t most, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Walk out;
  Matcher matcher(grammar);
  std::vector<std::uint32_t> mask(vocabulary()->mask_words());
  while (out.tokens.size() < most) {
    matcher.allowed(mask);
    out.times.push_back(0);
    const TokenId token = pick(mask, random);
    if (token < 0) break;
    out.tokens.push_back(token);
    CHECK(matcher.accept(token));
  }
  return out;
}

void repeat(const std::shared_ptr<const Grammar>& grammar, Walk& walk, bool first, double (*now)()) {
  Matcher matcher(grammar);
  std::vector<std::uint32_t> mask(vocabulary()->mask_words());
  for (std::size_t i = 0; i < walk.times.size(); ++i) {
    const double begin = now();
    matcher.allowed(mask);
    const double time = now() - begin;
    walk.times[i] = first ? time : std::min(walk.times[i], time);
    if (i < walk.tokens.size()) CHECK(matcher.accept(walk.tokens[i]));
  }
}

void Case(benchmark::State& state, const bench::Case& one, std::size_t num_tokens, std::uint64_t num_verifications) {
  vocabulary();
  for (auto _ : state) {
    std::vector<Walk> walks;
    std::shared_ptr<const Grammar> grammar;
    double compile = 1e12;
    double first = 0;
    for (int round = 0; round < 4; ++round) {  // the first one finds the texts
      const double begin = cpu_microseconds();
      grammar = *Grammar::compile(bench::rules_of(one), vocabulary());
      compile = std::min(compile, cpu_microseconds() - begin);
      for (std::uint64_t seed = 0; seed < num_verifications; ++seed) {
        if (round == 0) walks.push_back(walk(grammar, num_tokens, seed));
        if (round > 0) repeat(grammar, walks[seed], round == 1, cpu_microseconds);
      }
    }
    for (const Walk& w : walks) first = std::max(first, *std::max_element(w.times.begin(), w.times.end()));
    std::vector<double> times;
    for (Walk& w : walks) {
      for (int round = 0; round < 6; ++round) repeat(grammar, w, round <= 1, microseconds);
      times.insert(times.end(), w.times.begin(), w.times.end());
    }
    std::sort(times.begin(), times.end());
    state.counters["compile_ms"] = compile / 1000;
    state.counters["first_us"] = first;
    state.counters["tokens"] = static_cast<double>(times.size());
    state.counters["median_us"] = times[times.size() / 2];
    state.counters["p99_us"] = times[times.size() * 99 / 100];
    state.counters["worst_us"] = times.back();
  }
}

void register_cases() {
  for (const bench::Case& one : bench::usual_cases()) {
    benchmark::RegisterBenchmark(("Case/" + std::string(one.name)).c_str(), [one](benchmark::State& state) {
      Case(state, one, 250, 8);
    })->Iterations(1);
  }
  for (const bench::Case& one : bench::slow_cases()) {
    benchmark::RegisterBenchmark(("Slow/" + std::string(one.name)).c_str(), [one](benchmark::State& state) {
      Case(state, one, 60, 1);
    })->Iterations(1);
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
  quire::grammar::register_cases();
  benchmark::RunSpecifiedBenchmarks();
}
