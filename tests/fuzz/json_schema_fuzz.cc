// Any bytes as a JSON Schema, compiled for a small vocabulary and followed for a while: the first byte picks the way.
// Holds   it ends: a grammar, or an error that says something. What a mask allows is accepted.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/grammar/grammar.h"
#include "core/grammar/json_schema.h"
#include "core/grammar/matcher.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace quire::grammar;
  static const auto vocabulary = [] {
    std::vector<std::string> pieces;
    for (unsigned byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
    pieces.emplace_back();
    return std::make_shared<const Vocabulary>(std::move(pieces), std::vector<quire::TokenId>{256});
  }();
  if (size == 0) return 0;
  SchemaLimits limits;
  limits.max_text_states = 5'000;
  limits.max_shapes = 1'000;
  const auto schema = parse_schema(std::string_view(reinterpret_cast<const char*>(data + 1), size - 1), limits);
  if (!schema) {
    CHECK(!schema.error().message.empty());
    return 0;
  }
  Rules rules;
  const auto done = json_schema(rules, *schema, limits);
  if (!done) {
    CHECK(done.error().message.size() < 1'000);
    return 0;
  }
  const auto grammar = Grammar::compile(rules, vocabulary, {20'000, std::chrono::milliseconds(500)});
  if (!grammar) {
    CHECK(!grammar.error().message.empty());
    return 0;
  }
  Matcher matcher(*grammar);
  std::vector<std::uint32_t> mask(vocabulary->mask_words());
  std::uint32_t at = data[0];
  for (int step = 0; step < 50; ++step) {
    matcher.allowed(mask);
    quire::TokenId chosen = -1;
    for (std::uint32_t i = 0; i < 257 && chosen < 0; ++i) {
      const std::uint32_t token = (at + i) % 257;
      if ((mask[token / 32] >> (token % 32) & 1) != 0) chosen = static_cast<quire::TokenId>(token);
    }
    CHECK(chosen >= 0);
    CHECK(matcher.accept(chosen));
    if (chosen == 256) break;
    at = at * 31 + 7;
  }
  return 0;
}
