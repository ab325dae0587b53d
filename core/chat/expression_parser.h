// The expression part of the parser: a cursor over tokens, and recursive descent by jinja2's precedence.
// Shape   every read_x() begins at its first token and ends after its last.
// Thread  one.
// Fails   TemplateError as parse_template().
// Source  jinja2 3.1.6's grammar.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/chat/ast.h"
#include "core/chat/lexer.h"
#include "core/chat/template_error.h"

namespace quire::chat {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  const Token& token(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  int line() const { return token().line; }
  bool is(TokenKind kind) const { return token().kind == kind; }
  bool is_operator(std::string_view what) const { return is(TokenKind::kOperator) && token().text == what; }
  bool is_name(std::string_view what) const { return is(TokenKind::kName) && token().text == what; }
  bool skip_operator(std::string_view what);
  bool skip_name(std::string_view what);
  void expect_operator(std::string_view what);
  void expect(TokenKind kind, const char* what);
  std::string expect_name();
  Token take() { return tokens_[at_ < tokens_.size() - 1 ? at_++ : at_]; }
  [[noreturn]] void unexpected() const;

  ExpressionPtr make(ExpressionKind kind, int line, std::string name = {}) const;
  // Adds a child and updates the node's depth; fails beyond kMaxTreeDepth.
  static ExpressionPtr with(ExpressionPtr node, ExpressionPtr child);

  ExpressionPtr read_expression(bool with_conditional = true);
  ExpressionPtr read_tuple(bool with_conditional = true, bool in_parentheses = false);
  // name, (name, name), with_namespace: also name.attribute
  ExpressionPtr read_target(bool with_namespace);
  ExpressionPtr read_filters(ExpressionPtr value, bool starts_inline);
  ExpressionPtr read_unary(bool with_filters = true);

  // Number of enclosing ifs. Inside an if, unknown filters and tests fail when they are evaluated, not when parsed.
  int num_ifs_ = 0;
  // Number of enclosing brackets and statements; bounded, since the parser recurses.
  int num_nested_ = 0;
  struct Nested;
  std::vector<std::string> seen_names_;  // every variable that is read so far
  std::vector<TemplateError> unknown_;   // unknown filters and tests outside of any if

 private:
  ExpressionPtr read_operators(std::size_t level);
  ExpressionPtr read_not();
  ExpressionPtr read_comparison();
  ExpressionPtr read_concat();
  ExpressionPtr read_primary(bool with_namespace = false);
  ExpressionPtr read_list();
  ExpressionPtr read_dict();
  ExpressionPtr read_postfix(ExpressionPtr node);
  ExpressionPtr read_filters_and_tests(ExpressionPtr node);
  ExpressionPtr read_subscript(ExpressionPtr object);
  ExpressionPtr read_subscribed();
  ExpressionPtr read_test(ExpressionPtr value);
  ExpressionPtr read_arguments(ExpressionPtr node);
  bool at_tuple_end() const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

struct ExpressionParser::Nested {
  explicit Nested(ExpressionParser& owner);
  ~Nested() { --parser.num_nested_; }
  Nested(const Nested&) = delete;
  ExpressionParser& parser;
};

}  // namespace quire::chat
