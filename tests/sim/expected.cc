#include "tests/sim/expected.h"

#include <algorithm>

#include "tests/support/toy_beams.h"
#include "tests/support/toy_model.h"

namespace quire::sim {
namespace {

using testing::toy_mix;
using testing::ToyModel;
using testing::ToyPast;

ToyModel model_of(const World& world) {
  return {.vocab = static_cast<std::uint32_t>(world.vocab), .window = static_cast<std::uint32_t>(world.window)};
}

TokenId text_token(int text, std::size_t position, const World& world) {
  return static_cast<TokenId>(toy_mix(toy_mix(7, static_cast<std::uint64_t>(text)), position) %
                              static_cast<std::uint64_t>(world.vocab));
}

Answer answer(const World& world, const flow::Request& request) {
  Answer answer;
  ToyPast past(model_of(world), request.kv_policy);
  bool finite = true;
  const auto push = [&](TokenId token) {
    past.push(token);
    finite = finite && (world.spoilt == 0 || token != 0);
  };
  for (const TokenId token : request.prompt) push(token);
  for (;;) {
    if (!finite) {
      answer.finish = flow::Finish::kFailed;
      return answer;
    }
    const TokenId token = toy_choose(past.hash(), request.sampling, past.length(), model_of(world));
    answer.tokens.push_back(token);
    answer.logprobs.push_back(testing::toy_logprob(past.hash(), token));
    if (std::ranges::count(request.stop_tokens, token) != 0) {
      answer.finish = flow::Finish::kStop;
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
                                                                : text_token(1000 + one.tail, position, world));
    }
    request.max_tokens = static_cast<std::uint32_t>(one.gen);
    if (one.root > 0) request.cache_root = CacheRoot{0, static_cast<std::uint64_t>(one.root)};
    request.tenant = static_cast<std::uint32_t>(one.tenant);
    request.priority = one.prio;
    request.sampling.temperature = one.seed == 0 ? 0.0f : 1.0f;
    request.sampling.logprob = one.logprob != 0;
    request.sampling.seed = static_cast<std::uint64_t>(one.seed);
    request.kv_policy = {static_cast<flow::KvPolicy::Kind>(one.kv), static_cast<std::uint32_t>(one.sinks) * 16,
                         static_cast<std::uint32_t>(one.recent) * 256, static_cast<std::uint32_t>(one.budget) * 16};
    if (one.stop > 0) {
      const Answer endless = answer(world, request);
      const auto place = std::min(static_cast<std::size_t>(one.stop), endless.tokens.size());
      if (place > 0) request.stop_tokens = {endless.tokens[place - 1]};
    }
    if (one.beam > 0) {
      request.sampling = {.temperature = 0.0f};
      request.beam = {static_cast<std::uint32_t>(one.beam), static_cast<std::uint32_t>(one.best), one.penalty / 2.0};
      const bool spoilt = world.spoilt != 0 && std::ranges::count(request.prompt, 0) != 0;
      for (const auto& best : toy_beams(request, model_of(world))) {
        expected.answers.push_back(spoilt ? Answer{{}, {}, flow::Finish::kFailed, false}
                                          : Answer{best.tokens, best.logprobs, best.finish, world.spoilt != 0});
      }
      continue;
    }
    for (std::uint32_t choice = 0; choice < static_cast<std::uint32_t>(one.n); ++choice) {
      request.sampling.choice_index = choice;
      expected.answers.push_back(answer(world, request));
    }
    request.sampling.choice_index = 0;
  }
  return all;
}

}  // namespace quire::sim
