// Writes shapes as rules: one rule for every list of schemas that a value has to match together. The members of the
// document's own object may be spelled otherwise than in JSON (spelled_writer.cc).
// Owner   borrows Rules, Document, Alternatives and StateBudget, which outlive it.
// Fails   throws Refusal, LanguageTooLarge, and what WriteBudget throws.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/grammar/schema/alternatives.h"
#include "core/grammar/schema/json_text.h"
#include "core/grammar/schema/member_spelling.h"
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
  // The same for an object whose members are spelled so. The schema's own type must be object.
  void write_members(const SpelledMembers& members);

 private:
  void write_waiting();
  Expr value(std::vector<SchemaId> schemas);
  Expr shape(const Shape& shape);
  Expr number(const Shape& shape);
  Expr string(const Shape& shape);
  Expr array(const Shape& shape);
  Expr unique_array(const Shape& shape);
  Expr object(const Shape& shape);
  std::optional<Expr> other_members(const Shape& shape, const std::vector<std::string>& named);
  Expr member(Expr key, std::string_view name, std::vector<SchemaId> schemas);  // name "": none of the schema's
  Expr spelled_member(Expr key, std::vector<SchemaId> schemas, const MemberSpelling& spelling, bool is_text);
  std::optional<Language> spelled_strings(const std::vector<Shape>& shapes, const MemberSpelling& spelling,
                                          bool is_text);
  Expr key_of(const std::string& name);
  Expr any_key(const Language* keys);
  void charge_rules();
  [[noreturn]] void refuse(std::string_view keyword, std::string message) const;

  JsonText json_;
  Document& document_;
  Alternatives& alternatives_;
  StateBudget& budget_;
  std::map<std::vector<SchemaId>, RuleId> rules_;  // by the schemas, ascending
  std::vector<std::pair<std::vector<SchemaId>, RuleId>> todo_;
  std::size_t charged_bytes_;
  SchemaId at_ = kAnything;                  // the schema being written, for messages
  const SpelledMembers* spelled_ = nullptr;  // of the object being written; null: JSON
};

}  // namespace quire::grammar
