#include "api/sequences/rules.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace quire::api {
namespace {

Result<Done> append_bad_word(const std::string& word, const Services& services, sample::Rules& rules) {
  const std::string bare = word.substr(std::min(word.find_first_not_of(' '), word.size()));
  for (const std::string& spelling : {bare, ' ' + bare}) {
    std::vector<TokenId> ids = services.tokenizer->encode(spelling, false);
    if (ids.empty()) return invalid("bad_words", "bad_words holds a text without tokens: leave it out");
    if (!all_below(ids, services.logits_width)) continue;  // the model cannot sample it
    if (std::find(rules.bad_words.begin(), rules.bad_words.end(), ids) != rules.bad_words.end()) continue;
    rules.bad_words.push_back(std::move(ids));
  }
  return Done{};
}

bool contains(std::span<const TokenId> ids, TokenId id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

// A list of allowed tokens must leave one that may be sampled at every position.
Result<Done> check_allowed(const sample::Rules& rules, std::span<const TokenId> ends) {
  if (rules.allowed.empty()) return Done{};
  const auto is_bad = [&](TokenId id) {
    return std::find(rules.bad_words.begin(), rules.bad_words.end(), std::vector<TokenId>{id}) != rules.bad_words.end();
  };
  const auto sayable = [&](TokenId id) { return !is_bad(id) && (rules.min_tokens == 0 || !contains(ends, id)); };
  if (std::any_of(rules.allowed.begin(), rules.allowed.end(), sayable)) return Done{};
  return invalid("allowed_token_ids",
                 "allowed_token_ids leaves no token to sample: bad_words forbids all of them, or min_tokens forbids "
                 "those that end the answer");
}

}  // namespace

Result<std::shared_ptr<const sample::Rules>> rules_of(const GenerationRequest& request, std::span<const TokenId> ends,
                                                      const Services& services) {
  if (!request.has_rules()) return std::shared_ptr<const sample::Rules>();
  auto rules = std::make_shared<sample::Rules>(request.rules);
  for (const std::string& word : request.bad_words) {
    if (Result<Done> appended = append_bad_word(word, services, *rules); !appended) return appended.error();
  }
  if (Result<Done> checked = check_allowed(*rules, ends); !checked) return checked.error();
  return std::shared_ptr<const sample::Rules>(std::move(rules));
}

}  // namespace quire::api
