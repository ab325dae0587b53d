#include "core/chat/expression_parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/chat/filters.h"
#include "core/chat/template_error.h"
#include "core/chat/tests.h"

namespace quire::chat {

using Kind = ExpressionKind;

ExpressionParser::Nested::Nested(ExpressionParser& owner) : parser(owner) {
  if (++parser.num_nested_ > kMaxTreeDepth)
    fail("nested more than " + std::to_string(kMaxTreeDepth) + " deep", parser.line());
}

bool ExpressionParser::skip_operator(std::string_view what) { return is_operator(what) && (take(), true); }
bool ExpressionParser::skip_name(std::string_view what) { return is_name(what) && (take(), true); }

void ExpressionParser::expect_operator(std::string_view what) {
  if (!skip_operator(what)) unexpected();
}

void ExpressionParser::expect(TokenKind kind, const char* what) {
  if (!is(kind)) fail("expected " + std::string(what) + ", found '" + token().text + "'", line());
  take();
}

std::string ExpressionParser::expect_name() {
  if (!is(TokenKind::kName)) unexpected();
  return take().text;
}

void ExpressionParser::unexpected() const {
  const bool ends = token().text.empty() && !is(TokenKind::kString);
  fail(ends ? "an expression is incomplete" : "unexpected '" + token().text + "'", line());
}

ExpressionPtr ExpressionParser::make(Kind kind, int line, std::string name) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  node->name = std::move(name);
  return node;
}

ExpressionPtr ExpressionParser::with(ExpressionPtr node, ExpressionPtr child) {
  if (child != nullptr) node->depth = std::max(node->depth, child->depth + 1);
  if (node->depth > kMaxTreeDepth) {
    fail("an expression of more than " + std::to_string(kMaxTreeDepth) + " steps", node->line);
  }
  node->children.push_back(std::move(child));
  return node;
}

ExpressionPtr ExpressionParser::read_expression(bool with_conditional) {
  const Nested nested(*this);
  if (!with_conditional) return read_operators(0);
  const std::size_t num_unknown = unknown_.size();
  ExpressionPtr value = read_operators(0);
  while (is_name("if")) {
    unknown_.resize(num_unknown);  // the expression before an if was conditional
    ExpressionPtr node = make(Kind::kConditional, take().line);
    ++num_ifs_;
    node = with(std::move(node), read_operators(0));
    node = with(std::move(node), std::move(value));
    node = with(std::move(node), skip_name("else") ? read_expression() : nullptr);
    --num_ifs_;
    value = std::move(node);
  }
  return value;
}

// Levels 0 and 1: or, and; then not, comparisons, +, ~, *, **.
ExpressionPtr ExpressionParser::read_operators(std::size_t level) {
  static constexpr std::array<std::string_view, 2> kWords = {"or", "and"};
  if (level < kWords.size()) {
    ExpressionPtr left = read_operators(level + 1);
    while (is_name(kWords[level])) {
      ExpressionPtr node = make(level == 0 ? Kind::kOr : Kind::kAnd, take().line);
      node = with(std::move(node), std::move(left));
      left = with(std::move(node), read_operators(level + 1));
    }
    return left;
  }
  static const std::vector<std::vector<std::string_view>> kSymbols = {{"+", "-"}, {"*", "/", "//", "%"}, {"**"}};
  if (level == 2) return read_not();
  const std::size_t row = level - 3;
  if (row == kSymbols.size()) return read_unary();
  const auto operand = [&] { return row == 0 ? read_concat() : read_operators(level + 1); };
  ExpressionPtr left = operand();
  const auto applies = [&] {
    return std::any_of(kSymbols[row].begin(), kSymbols[row].end(), [&](std::string_view s) { return is_operator(s); });
  };
  while (applies()) {
    const Token symbol = take();
    ExpressionPtr node = with(make(Kind::kBinary, symbol.line, symbol.text), std::move(left));
    left = with(std::move(node), operand());
  }
  return left;
}

ExpressionPtr ExpressionParser::read_not() {
  if (!is_name("not")) return read_comparison();
  const Nested nested(*this);
  ExpressionPtr node = make(Kind::kNot, take().line);
  return with(std::move(node), read_not());
}

ExpressionPtr ExpressionParser::read_comparison() {
  static constexpr std::array<std::string_view, 6> kSymbols = {"==", "!=", "<", "<=", ">", ">="};
  const int first_line = line();
  ExpressionPtr left = read_operators(3);
  ExpressionPtr node;
  while (true) {
    std::string symbol;
    if (is(TokenKind::kOperator) && std::find(kSymbols.begin(), kSymbols.end(), token().text) != kSymbols.end()) {
      symbol = take().text;
    } else if (skip_name("in")) {
      symbol = "in";
    } else if (is_name("not") && token(1).kind == TokenKind::kName && token(1).text == "in") {
      take(), take();
      symbol = "not in";
    } else {
      return node == nullptr ? std::move(left) : std::move(node);
    }
    if (node == nullptr) node = with(make(Kind::kCompare, first_line), std::move(left));
    node->comparisons.push_back(std::move(symbol));
    node = with(std::move(node), read_operators(3));
  }
}

ExpressionPtr ExpressionParser::read_concat() {
  const int first_line = line();
  ExpressionPtr first = read_operators(4);
  if (!is_operator("~")) return first;
  ExpressionPtr node = with(make(Kind::kConcat, first_line), std::move(first));
  while (skip_operator("~")) node = with(std::move(node), read_operators(4));
  return node;
}

ExpressionPtr ExpressionParser::read_unary(bool with_filters) {
  ExpressionPtr node;
  if (is_operator("-") || is_operator("+")) {
    const Nested nested(*this);
    const Token sign = take();
    node = with(make(sign.text == "-" ? Kind::kNegate : Kind::kPlus, sign.line), read_unary(false));
  } else {
    node = read_primary();
  }
  node = read_postfix(std::move(node));
  return with_filters ? read_filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::read_primary(bool with_namespace) {
  const Token first = token();
  ExpressionPtr node = make(Kind::kConstant, first.line);
  if (first.kind == TokenKind::kName) {
    take();
    const std::string& name = first.text;
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      node->constant = Value(name == "true" || name == "True");
    } else if (name != "none" && name != "None") {
      node = make(Kind::kName, first.line, name);
      seen_names_.push_back(name);
      if (with_namespace && skip_operator(".")) {
        return with(make(Kind::kAttribute, first.line, expect_name()), std::move(node));
      }
    }
    return node;
  }
  if (first.kind == TokenKind::kString) {
    std::string text;
    while (is(TokenKind::kString)) text += take().text;
    node->constant = Value::text(std::move(text));
    return node;
  }
  if (first.kind == TokenKind::kNumber) {
    node->constant = take().number;
    return node;
  }
  if (is_operator("[")) return read_list();
  if (is_operator("{")) return read_dict();
  expect_operator("(");
  node = read_tuple(true, true);
  expect_operator(")");
  return node;
}

bool ExpressionParser::at_tuple_end() const {
  return is(TokenKind::kOutputEnd) || is(TokenKind::kBlockEnd) || is_operator(")") || is_name("in") ||
         is_name("recursive");
}

ExpressionPtr ExpressionParser::read_tuple(bool with_conditional, bool in_parentheses) {
  const Nested nested(*this);
  ExpressionPtr node = make(Kind::kTuple, line());
  bool is_tuple = false;
  while (!at_tuple_end()) {
    node = with(std::move(node), read_expression(with_conditional));
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple || (node->children.empty() && in_parentheses)) return node;
  if (node->children.empty()) unexpected();
  return std::move(node->children[0]);
}

ExpressionPtr ExpressionParser::read_target(bool with_namespace) {
  const Nested nested(*this);
  ExpressionPtr node = make(Kind::kTuple, line());
  bool is_tuple = false;
  while (!is_name("in") && !at_tuple_end()) {
    if (skip_operator("(")) {
      node = with(std::move(node), read_target(with_namespace));
      expect_operator(")");
    } else {
      if (!is(TokenKind::kName)) unexpected();
      ExpressionPtr part = read_primary(with_namespace);
      if (part->kind != Kind::kConstant) seen_names_.pop_back();  // assigned, not read
      node = with(std::move(node), std::move(part));
    }
    const Expression& part = *node->children.back();
    if (part.kind == Kind::kConstant || (part.kind == Kind::kName && part.name == "loop")) {
      fail("cannot assign to " + (part.name.empty() ? std::string("a constant") : part.name), part.line);
    }
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return node;
  if (node->children.empty()) unexpected();
  return std::move(node->children[0]);
}

ExpressionPtr ExpressionParser::read_list() {
  const Nested nested(*this);
  ExpressionPtr node = make(Kind::kList, take().line);
  while (!is_operator("]")) {
    if (!node->children.empty()) expect_operator(",");
    if (is_operator("]")) break;
    node = with(std::move(node), read_expression());
  }
  take();
  return node;
}

ExpressionPtr ExpressionParser::read_dict() {
  const Nested nested(*this);
  ExpressionPtr node = make(Kind::kDict, take().line);
  while (!is_operator("}")) {
    if (!node->children.empty()) expect_operator(",");
    if (is_operator("}")) break;
    node = with(std::move(node), read_expression());
    expect_operator(":");
    node = with(std::move(node), read_expression());
  }
  take();
  return node;
}

ExpressionPtr ExpressionParser::read_postfix(ExpressionPtr node) {
  while (true) {
    if (is_operator(".") || is_operator("[")) {
      node = read_subscript(std::move(node));
    } else if (is_operator("(")) {
      const int call_line = line();
      node = read_arguments(with(make(Kind::kCall, call_line), std::move(node)));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::read_filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (is_operator("|")) {
      node = read_filters(std::move(node), false);
    } else if (is_name("is")) {
      node = read_test(std::move(node));
    } else if (is_operator("(")) {
      const int call_line = line();
      node = read_arguments(with(make(Kind::kCall, call_line), std::move(node)));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::read_subscript(ExpressionPtr object) {
  const Token first = take();
  if (first.text == ".") {
    if (is(TokenKind::kName)) return with(make(Kind::kAttribute, first.line, take().text), std::move(object));
    if (!is(TokenKind::kNumber) || token().number.as<std::int64_t>() == nullptr) unexpected();
    ExpressionPtr key = make(Kind::kConstant, first.line);
    key->constant = take().number;
    return with(with(make(Kind::kItem, first.line), std::move(object)), std::move(key));
  }
  const Nested nested(*this);
  ExpressionPtr node = with(make(Kind::kItem, first.line), std::move(object));
  node = with(std::move(node), read_subscribed());
  expect_operator("]");
  return node;
}

ExpressionPtr ExpressionParser::read_subscribed() {
  const int first_line = line();
  const auto ends = [&] { return is_operator("]") || is_operator(",") || is_operator(":"); };
  ExpressionPtr first = is_operator(":") ? nullptr : read_expression();
  if (!is_operator(":")) return first;
  ExpressionPtr node = with(make(Kind::kSlice, first_line), std::move(first));
  for (int part = 0; part < 2; ++part) {
    const bool given = skip_operator(":") && !ends();
    node = with(std::move(node), given ? read_expression() : nullptr);
  }
  return node;
}

ExpressionPtr ExpressionParser::read_filters(ExpressionPtr value, bool starts_inline) {
  while (starts_inline || skip_operator("|")) {
    starts_inline = false;
    const int filter_line = line();
    const std::string name = expect_name();
    if (!is_filter(name) && num_ifs_ == 0) unknown_.push_back({"filter '" + name + "' is not supported", filter_line});
    ExpressionPtr node = with(make(Kind::kFilter, filter_line, name), std::move(value));
    value = is_operator("(") ? read_arguments(std::move(node)) : std::move(node);
  }
  return value;
}

ExpressionPtr ExpressionParser::read_test(ExpressionPtr value) {
  const int test_line = take().line;
  const bool negated = skip_name("not");
  const std::string name = expect_name();
  if (!is_test(name) && num_ifs_ == 0) unknown_.push_back({"test '" + name + "' is not supported", test_line});
  ExpressionPtr node = with(make(Kind::kTest, test_line, name), std::move(value));
  const bool operand =
      is(TokenKind::kName) || is(TokenKind::kString) || is(TokenKind::kNumber) || is_operator("[") || is_operator("{");
  if (is_operator("(")) {
    node = read_arguments(std::move(node));
  } else if (operand && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) fail("tests cannot be chained with is", line());
    ExpressionPtr argument = read_primary();
    node = with(std::move(node), read_postfix(std::move(argument)));
  }
  return negated ? with(make(Kind::kNot, test_line), std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::read_arguments(ExpressionPtr node) {
  const Nested nested(*this);
  const int first_line = line();
  expect_operator("(");
  const auto deepen = [&](const ExpressionPtr& child) { node->depth = std::max(node->depth, child->depth + 1); };
  bool comma = true;
  while (!is_operator(")")) {
    if (!comma) unexpected();
    const bool later = !node->named.empty() || node->star != nullptr || node->star_star != nullptr;
    if (is_operator("*") && node->star == nullptr && node->star_star == nullptr) {
      take();
      deepen(node->star = read_expression());
    } else if (is_operator("**") && node->star_star == nullptr) {
      take();
      deepen(node->star_star = read_expression());
    } else if (is(TokenKind::kName) && token(1).kind == TokenKind::kOperator && token(1).text == "=") {
      if (node->star_star != nullptr) unexpected();
      std::string name = take().text;
      take();
      for (const auto& [known, ignored] : node->named) {
        if (known == name) fail("keyword argument repeated: " + name, first_line);
      }
      node->named.emplace_back(std::move(name), read_expression());
      deepen(node->named.back().second);
    } else {
      if (later) unexpected();
      node = with(std::move(node), read_expression());
    }
    comma = skip_operator(",");
  }
  take();
  if (node->depth > kMaxTreeDepth)
    fail("an expression of more than " + std::to_string(kMaxTreeDepth) + " steps", first_line);
  return node;
}

}  // namespace quire::chat
