// Writes shapes as rules: one rule for every list of schemas that a value has to match together.
// Owner   borrows Rules, Document, Alternatives and StateBudget, which outlive it.
// Fails   throws Refusal, LanguageTooLarge, and what WriteBudget throws.
#pragma once

#include <map>
#include <vector>

#include "core/grammar/schema/alternatives.h"
#include "core/grammar/schema/json_text.h"
#include "core/grammar/schema/sequence_text.h"

namespace quire::grammar {

class SchemaWriter {
 public:
  SchemaWriter(Rules& rules, Document& document, Alternatives& alternatives, StateBudget& budget)
      : json_(rules),
        document_(document),
        alternatives_(alternatives),
        budget_(budget),
        charged_bytes_(rules.num_bytes()) {}

  // Writes every rule that the document needs; the first one declared is the document's own.
  void write();

 private:
  Expr value(std::vector<SchemaId> schemas);
  Expr shape(const Shape& shape);
  Expr number(const Shape& shape);
  Expr string(const Shape& shape);
  Expr array(const Shape& shape);
  Expr unique_array(const Shape& shape);
  Expr object(const Shape& shape);
  std::optional<Expr> other_members(const Shape& shape, const std::vector<std::string>& named);
  void charge_rules();
  [[noreturn]] void refuse(std::string_view keyword, std::string message) const;

  JsonText json_;
  Document& document_;
  Alternatives& alternatives_;
  StateBudget& budget_;
  std::map<std::vector<SchemaId>, RuleId> rules_;  // by the schemas, ascending
  std::vector<std::pair<std::vector<SchemaId>, RuleId>> todo_;
  std::size_t charged_bytes_;
  SchemaId at_ = kAnything;  // the schema being written, for messages
};

}  // namespace quire::grammar
