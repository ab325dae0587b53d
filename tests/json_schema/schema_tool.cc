// Lets the Python tests of this directory ask what quire makes of JSON Schemas: schema_tool < requests > answers, a line each.
// Shape   {"schema": TEXT, "texts": [TEXT...]} → {"accepted": [bool...]}, whether each is a text of the schema's grammar.
//         {"schema": TEXT, "walks": N, "seed": N} → {"texts": [TEXT...], "unfinished": N}: random walks through the grammar.
//         {"tables": true} → {"keywords": [[name, use, note]...], "formats": [[name, note]...]}
//         Instead of an answer, {"refused": MESSAGE}. Every answer to a schema has "ms", what compiling took.
//         {"object": true} or {"choice": [TEXT...]} may stand in the place of "schema".
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/grammar/grammar.h"
#include "core/grammar/json_schema.h"
#include "core/grammar/matcher.h"
#include "core/grammar/schema/formats.h"
#include "core/grammar/schema/keywords.h"
#include "core/grammar/text/choice.h"
#include "tests/support/patient.h"

namespace {

namespace bjson = boost::json;
using namespace quire;
using namespace quire::grammar;

constexpr TokenId kEnd = 256;             // tokens 0 to 255 are the bytes
constexpr std::size_t kTired = 400;       // bytes after which a walk goes home
constexpr std::size_t kMaxWalk = 20'000;  // and where it gives up

std::shared_ptr<const Vocabulary> bytes() {
  std::vector<std::string> pieces;
  for (unsigned byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  pieces.emplace_back();
  return std::make_shared<const Vocabulary>(std::move(pieces), std::vector<TokenId>{kEnd});
}

Result<std::shared_ptr<const Grammar>> compile(const bjson::object& request) {
  static const auto vocabulary = bytes();
  Rules rules;
  if (request.contains("object")) {
    json_object(rules);
  } else if (const auto* texts = request.if_contains("choice")) {
    const auto made = choice(rules, bjson::value_to<std::vector<std::string>>(*texts));
    if (!made) return made.error();
  } else {
    const auto schema = parse_schema(std::string_view(request.at("schema").as_string()));
    if (!schema) return schema.error();
    const auto made = json_schema(rules, *schema);
    if (!made) return made.error();
  }
  return Grammar::compile(rules, vocabulary, quire::testing::kPatient);
}

bool accepts(const Matcher& start, std::string_view text) {
  Matcher matcher(start);
  for (const char c : text) {
    if (!matcher.accept(static_cast<unsigned char>(c))) return false;
  }
  return matcher.complete();
}

// One of the allowed tokens: mostly what people write, and once it is tired what brings it to an end.
TokenId pick(const std::vector<TokenId>& allowed, bool tired, std::mt19937_64& random) {
  const auto has = [&](TokenId token) { return std::find(allowed.begin(), allowed.end(), token) != allowed.end(); };
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  for (const TokenId home : {kEnd, TokenId{'}'}, TokenId{']'}, TokenId{'"'}}) {
    if (has(home) && (tired || one_in(6))) return home;
  }
  std::vector<TokenId> some;
  for (const TokenId token : allowed) {
    const bool usual = (token > 0x20 && token < 0x7F && token != '\\') || token == kEnd;
    if (usual && (!tired || (token != '{' && token != '[' && token != ','))) some.push_back(token);
  }
  const auto& from = some.empty() || (!tired && one_in(12)) ? allowed : some;
  return from[random() % from.size()];
}

bjson::object walk(const Matcher& start, const bjson::object& request) {
  std::mt19937_64 random(static_cast<std::uint64_t>(request.at("seed").as_int64()));
  bjson::array texts;
  std::int64_t unfinished = 0;
  for (std::int64_t i = 0; i < request.at("walks").as_int64(); ++i) {
    Matcher matcher(start);
    std::string text;
    std::vector<std::uint32_t> mask((256 + 1 + 31) / 32);
    while (text.size() < kMaxWalk) {
      matcher.allowed(mask);
      std::vector<TokenId> allowed;
      for (TokenId token = 0; token <= kEnd; ++token) {
        if ((mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0) allowed.push_back(token);
      }
      if (allowed.empty()) throw std::runtime_error("nothing is allowed after: " + text);
      const TokenId token = pick(allowed, text.size() > kTired, random);
      if (!matcher.accept(token)) throw std::runtime_error("an allowed token is refused after: " + text);
      if (token == kEnd) break;
      text += static_cast<char>(token);
    }
    if (text.size() < kMaxWalk) {
      texts.emplace_back(text);
    } else {
      ++unfinished;
    }
  }
  return {{"texts", texts}, {"unfinished", unfinished}};
}

bjson::object tables() {
  static constexpr const char* kUses[] = {"enforced", "partly", "annotation", "refused"};
  bjson::array names;
  for (const Keyword& keyword : keywords()) {
    names.push_back(
        bjson::array{std::string(keyword.name), kUses[static_cast<int>(keyword.use)], std::string(keyword.note)});
  }
  bjson::array of_strings;
  for (const Format& format : formats())
    of_strings.push_back(bjson::array{std::string(format.name), std::string(format.note)});
  return {{"keywords", names}, {"formats", of_strings}};
}

bjson::object answer(const bjson::object& request) {
  if (request.contains("tables")) return tables();
  const auto before = std::chrono::steady_clock::now();
  const auto grammar = compile(request);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count();
  if (!grammar) return {{"refused", grammar.error().message}, {"ms", ms}};
  const Matcher start(*grammar);
  bjson::object out;
  if (request.contains("walks")) {
    out = walk(start, request);
  } else {
    bjson::array accepted;
    for (const auto& text : request.at("texts").as_array()) accepted.emplace_back(accepts(start, text.as_string()));
    out["accepted"] = accepted;
  }
  out["ms"] = ms;
  return out;
}

}  // namespace

int main() try {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << bjson::serialize(answer(bjson::parse(line).as_object())) << "\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
