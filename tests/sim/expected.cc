#include "tests/sim/expected.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "tests/support/plain_rules.h"
#include "tests/support/toy_beams.h"
#include "tests/support/toy_grammars.h"
#include "tests/support/toy_model.h"

namespace quire::sim {
namespace {

using quire::testing::ToyModel;
using quire::testing::ToyPast;
using testing::toy_mix;

ToyModel model_of(const World& world) {
  return {.vocab = static_cast<std::uint32_t>(world.vocab), .groups = groups_of(world)};
}

TokenId text_token(int text, std::size_t position, const World& world) {
  return static_cast<TokenId>(toy_mix(toy_mix(7, static_cast<std::uint64_t>(text)), position) %
                              static_cast<std::uint64_t>(world.vocab));
}

// Of a small vocabulary, so that they often matter. Some forbid everything sooner or later.
std::shared_ptr<const sample::Rules> rules_of(const World& world, const Arrival& one) {
  if (one.rules == 0) return nullptr;
  std::uint64_t state = toy_mix(99, static_cast<std::uint64_t>(one.rules));
  const auto below = [&state](std::uint64_t limit) { return (state = toy_mix(state, 5)) % limit; };
  const auto token = [&] { return static_cast<TokenId>(below(static_cast<std::uint64_t>(world.vocab))); };
  auto rules = std::make_shared<sample::Rules>();
  if (below(2) == 0) rules->repetition_penalty = 0.5f + static_cast<float>(below(8)) / 4.0f;
  if (below(2) == 0) rules->frequency_penalty = static_cast<float>(below(9)) / 4.0f - 1.0f;
  if (below(2) == 0) rules->presence_penalty = static_cast<float>(below(9)) / 4.0f - 1.0f;
  if (below(3) == 0) {
    const TokenId first = token();
    rules->bias.push_back({first, static_cast<float>(below(9)) - 4.0f});
    if (first + 1 < world.vocab) rules->bias.push_back({first + 1, 0.5f});
  }
  const bool allows_few = below(4) == 0;
  for (TokenId id = 0; id < world.vocab && allows_few; ++id) {
    if (below(3) != 0) rules->allowed.push_back(id);
  }
  for (std::uint64_t words = below(4); words > 0; --words) {
    auto& word = rules->bad_words.emplace_back();
    for (std::uint64_t tokens = 1 + below(3); tokens > 0; --tokens) word.push_back(token());
  }
  rules->min_tokens = static_cast<std::uint32_t>(below(static_cast<std::uint64_t>(one.gen) + 1));
  return rules;
}

// The same for all arrivals, because compiling takes longer than most schedules.
std::shared_ptr<const grammar::Grammar> grammar_of(const World& world, int number) {
  static std::map<std::pair<int, int>, std::shared_ptr<const grammar::Grammar>> known;
  if (number == 0) return nullptr;
  auto& grammar = known[{world.vocab, number}];
  if (!grammar)
    grammar = testing::toy_grammar(number, testing::toy_vocabulary(static_cast<std::uint32_t>(world.vocab)));
  return grammar;
}

std::string text_of(const grammar::Vocabulary& vocabulary, std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens) text += vocabulary.piece(token);
  return text;
}

// What is said under rules and a grammar instead of `token`; -1: nothing is allowed.
TokenId choose_as_allowed(const World& world, const flow::Request& request, int number, std::uint64_t hash,
                          std::span<const TokenId> answer, TokenId token) {
  const std::vector<float> row = toy_row(hash, model_of(world));
  std::vector<float> adjusted = row;
  std::vector<TokenId> ends = request.stop_tokens;
  if (request.grammar) {
    const grammar::Vocabulary& vocabulary = request.grammar->vocabulary();
    ends.insert(ends.end(), vocabulary.ends().begin(), vocabulary.ends().end());
    const std::string text = text_of(vocabulary, answer);
    for (TokenId other = 0; other < world.vocab; ++other) {
      if (testing::toy_allows(number, vocabulary, text, other)) continue;
      adjusted[static_cast<std::size_t>(other)] = -std::numeric_limits<float>::infinity();
    }
  }
  if (request.rules) adjusted = testing::plainly_adjusted(adjusted, *request.rules, request.prompt, answer, ends);
  return testing::toy_choose_adjusted(row, adjusted, token);
}

Answer answer(const World& world, const flow::Request& request, int number) {
  Answer answer;
  const grammar::Vocabulary* const vocabulary = request.grammar ? &request.grammar->vocabulary() : nullptr;
  ToyPast past(model_of(world), request.kv_policy);
  bool finite = true;
  const auto push = [&](TokenId token) {
    past.push(token);
    finite = finite && (world.spoilt == 0 || token != 0);
  };
  const auto score_of = [&](TokenId token) {
    Score score{testing::toy_logprob(past.hash(), token), testing::toy_rank(past.hash(), token, model_of(world)), {}};
    if (request.sampling.num_top > 0) toy_top(past.hash(), request.sampling.num_top, model_of(world), score.top);
    return score;
  };
  push(request.prompt[0]);
  for (const TokenId token : std::span(request.prompt).subspan(1)) {
    if (request.scores_prompt) answer.prompt_scores.push_back(score_of(token));
    push(token);
  }
  if (request.embeds()) answer.embedding = testing::toy_embedding(request.prompt, request.pooling, model_of(world));
  for (;;) {
    if (request.max_tokens == 0) {
      answer.finish = finite ? flow::Finish::kScored : flow::Finish::kFailed;
      return answer;
    }
    TokenId token = toy_choose(past.hash(), request.sampling, past.length(), model_of(world));
    if (request.rules || request.grammar) {
      token = choose_as_allowed(world, request, number, past.hash(), answer.tokens, token);
    }
    if (token < 0 || !finite) {  // whatever the row was, where nothing is allowed that is said
      answer.finish = token < 0 ? flow::Finish::kNoToken : flow::Finish::kFailed;
      return answer;
    }
    answer.tokens.push_back(token);
    answer.scores.push_back(score_of(token));
    const bool ends = request.grammar && std::ranges::count(vocabulary->ends(), token) != 0;
    if (ends || std::ranges::count(request.stop_tokens, token) != 0) {
      answer.finish = flow::Finish::kStop;
      return answer;
    }
    if (request.grammar && testing::toy_text(number, text_of(*vocabulary, answer.tokens)).ends) {
      answer.finish = flow::Finish::kComplete;
      return answer;
    }
    if (answer.tokens.size() == request.max_tokens) {
      answer.finish = flow::Finish::kLength;
      return answer;
    }
    push(token);
  }
}

}  // namespace

std::vector<TokenId> stem(const World& world, int number, int length) {
  std::vector<TokenId> tokens;
  while (tokens.size() < static_cast<std::size_t>(length)) tokens.push_back(text_token(number, tokens.size(), world));
  return tokens;
}

std::vector<Expected> expect(const Scenario& scenario) {
  const World& world = scenario.world;
  std::vector<Expected> all;
  for (const Arrival& one : scenario.arrivals) {
    Expected& expected = all.emplace_back();
    flow::Request& request = expected.request;
    std::vector<TokenId> base;
    if (one.from >= 0) {
      const Expected& earlier = all[static_cast<std::size_t>(one.from)];
      base = earlier.request.prompt;
      base.insert(base.end(), earlier.answers[0].tokens.begin(), earlier.answers[0].tokens.end());
    }
    for (std::size_t position = 0; position < static_cast<std::size_t>(one.len); ++position) {
      const bool shared = position < static_cast<std::size_t>(one.shared);
      request.prompt.push_back(shared && position < base.size() ? base[position]
                               : shared && one.from < 0         ? text_token(one.stem, position, world)
                                                                : text_token(1000 + one.partial, position, world));
    }
    request.max_tokens = static_cast<std::uint32_t>(one.gen);
    if (one.cache_namespace > 0)
      request.cache_namespace = CacheNamespace{0, static_cast<std::uint64_t>(one.cache_namespace)};
    request.tenant = static_cast<std::uint32_t>(one.tenant);
    request.weight = 1 + request.tenant;
    request.priority = one.prio;
    request.sampling.temperature = one.seed == 0 ? 0.0f : 1.0f;
    request.sampling.logprob = one.logprob != 0;
    request.sampling.num_top = static_cast<std::uint32_t>(one.top);
    request.scores_prompt = one.score != 0;
    request.pooling = static_cast<flow::Pooling>(one.pool);
    request.rules = rules_of(world, one);
    request.grammar = grammar_of(world, one.grammar);
    request.sampling.seed = static_cast<std::uint64_t>(one.seed);
    request.kv_policy = {static_cast<flow::KvPolicy::Kind>(one.kv), static_cast<std::uint32_t>(one.sinks) * 16,
                         static_cast<std::uint32_t>(one.recent) * 256, static_cast<std::uint32_t>(one.budget) * 16};
    if (one.stop > 0) {
      const Answer endless = answer(world, request, one.grammar);
      const auto place = std::min(static_cast<std::size_t>(one.stop), endless.tokens.size());
      if (place > 0) request.stop_tokens = {endless.tokens[place - 1]};
    }
    if (one.beam > 0) {
      request.sampling = {.temperature = 0.0f};
      request.beam = {static_cast<std::uint32_t>(one.beam), static_cast<std::uint32_t>(one.best), one.penalty / 2.0};
      const bool spoilt = world.spoilt != 0 && std::ranges::count(request.prompt, 0) != 0;
      for (const auto& best : toy_beams(request, model_of(world))) {
        Answer& answer = expected.answers.emplace_back();
        answer.finish = spoilt ? flow::Finish::kFailed : best.finish;
        if (spoilt) continue;
        answer.tokens = best.tokens;
        for (const float logprob : best.logprobs) answer.scores.push_back({logprob, 0, {}});
        answer.may_fail = world.spoilt != 0;
      }
      continue;
    }
    for (std::uint32_t choice = 0; choice < static_cast<std::uint32_t>(one.n); ++choice) {
      request.sampling.choice_index = choice;
      expected.answers.push_back(answer(world, request, one.grammar));
    }
    request.sampling.choice_index = 0;
  }
  return all;
}

}  // namespace quire::sim
