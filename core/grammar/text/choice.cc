#include "core/grammar/text/choice.h"

#include <vector>

namespace quire::grammar {

Result<RuleId> choice(Rules& rules, std::span<const std::string> texts) {
  if (texts.empty()) return invalid("", "has no choices: give one or more");
  if (texts.size() > kMaxChoices) {
    return invalid("", "has " + std::to_string(texts.size()) + " choices; the limit is " + std::to_string(kMaxChoices));
  }
  std::size_t num_bytes = 0;
  for (const std::string& text : texts) num_bytes += text.size();
  if (num_bytes > kMaxChoiceBytes) {
    return invalid(
        "", "has choices of " + std::to_string(num_bytes) + " bytes; the limit is " + std::to_string(kMaxChoiceBytes));
  }
  const RuleId root = rules.declare("choice");
  std::vector<Expr> ways;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) return invalid("", "choice " + std::to_string(i) + " is empty");
    ways.push_back(rules.bytes(texts[i]));
  }
  rules.define(root, rules.choice(ways));
  return root;
}

}  // namespace quire::grammar
