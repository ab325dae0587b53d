#include "core/grammar/grammar.h"

#include <utility>

#include "core/grammar/automaton/automaton.h"
#include "core/grammar/automaton/compile_budget.h"
#include "core/grammar/automaton/masks.h"
#include "core/grammar/automaton/rule_facts.h"

namespace quire::grammar {

Result<std::shared_ptr<const Grammar>> Grammar::compile(const Rules& rules,
                                                        std::shared_ptr<const Vocabulary> vocabulary,
                                                        const CompileLimits& limits) {
  const CompileBudget budget(limits);
  const Result<RuleFacts> facts = examine(rules, budget);
  if (!facts) return facts.error();
  Result<Automaton> built = Automaton::build(rules, *facts, budget);
  if (!built) return built.error();
  auto automaton = std::make_unique<const Automaton>(*std::move(built));
  std::shared_ptr<const Grammar> grammar(new Grammar(std::move(vocabulary), std::move(automaton)));
  grammar->masks().prepare();
  return grammar;
}

Grammar::Grammar(std::shared_ptr<const Vocabulary> vocabulary, std::unique_ptr<const Automaton> automaton)
    : vocabulary_(std::move(vocabulary)),
      automaton_(std::move(automaton)),
      masks_(std::make_unique<Masks>(*automaton_, *vocabulary_)) {}

std::size_t Grammar::num_bytes() const { return automaton_->num_bytes() + masks_->num_bytes(); }

Grammar::~Grammar() = default;

}  // namespace quire::grammar
