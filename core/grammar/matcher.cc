#include "core/grammar/matcher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/grammar/automaton/automaton.h"
#include "core/grammar/automaton/masks.h"
#include "core/grammar/automaton/stacks.h"

namespace quire::grammar {
namespace {

constexpr std::size_t kUsualNodes = 256;
constexpr std::size_t kUsualTops = 64;

}  // namespace

struct Matcher::State {
  std::shared_ptr<const Grammar> grammar;
  Stacks stacks;
  std::vector<Stack> tops{};                // in their minimal form (frontier.h)
  std::size_t compact_above = kUsualNodes;  // nodes; beyond, unused nodes are dropped
};

Matcher::Matcher(std::shared_ptr<const Grammar> grammar) : state_(std::make_unique<State>()) {
  state_->stacks.reserve(2 * kUsualNodes);
  state_->tops.reserve(kUsualTops);
  state_->tops.push_back({grammar->automaton().start, Stacks::kBottom});
  grammar->masks().frontier().settle(state_->stacks, state_->tops);
  state_->grammar = std::move(grammar);
}

Matcher::Matcher(const Matcher& other) : state_(std::make_unique<State>(*other.state_)) {}
Matcher::Matcher(Matcher&& other) noexcept = default;
Matcher::~Matcher() = default;
Matcher& Matcher::operator=(Matcher&& other) noexcept = default;

Matcher& Matcher::operator=(const Matcher& other) {
  *state_ = *other.state_;
  return *this;
}

bool Matcher::accept(TokenId token) {
  const Vocabulary& vocabulary = state_->grammar->vocabulary();
  if (token < 0 || static_cast<std::size_t>(token) >= vocabulary.size()) return false;
  if (vocabulary.is_end(token)) return complete();
  if (!state_->grammar->masks().advance(state_->stacks, state_->tops, vocabulary.piece(token))) return false;
  if (state_->stacks.size() > state_->compact_above) {
    state_->stacks.compact(state_->tops);
    state_->compact_above = std::max(kUsualNodes, 2 * state_->stacks.size());
  }
  return true;
}

void Matcher::allowed(std::span<std::uint32_t> mask) {
  const Vocabulary& vocabulary = state_->grammar->vocabulary();
  const std::size_t num_words = vocabulary.mask_words();
  CHECK_GE(mask.size(), num_words);
  std::fill(mask.begin() + static_cast<std::ptrdiff_t>(num_words), mask.end(), 0);
  if (!state_->grammar->masks().allowed(state_->stacks, state_->tops, mask.first(num_words))) state_->tops.clear();
  if (!complete()) return;
  for (const TokenId end : vocabulary.ends()) {
    mask[static_cast<std::size_t>(end) / 32] |= 1U << static_cast<std::uint32_t>(end) % 32;
  }
}

bool Matcher::complete() const {
  return std::any_of(state_->tops.begin(), state_->tops.end(),
                     [](const Stack& top) { return top.state == Automaton::kEnd; });
}

bool Matcher::only_ends() const { return state_->tops.size() == 1 && complete(); }

}  // namespace quire::grammar
