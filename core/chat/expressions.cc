#include <utility>

#include "core/chat/attributes.h"
#include "core/chat/filters.h"
#include "core/chat/operators.h"
#include "core/chat/printing.h"
#include "core/chat/python_text.h"
#include "core/chat/renderer.h"
#include "core/chat/template_error.h"
#include "core/chat/tests.h"

namespace quire::chat {

using Kind = ExpressionKind;

Value Renderer::evaluate(const Expression& node, Scope& scope) try {
  const Level level(budget_);
  return evaluate_any(node, scope);
} catch (TemplateError& error) {
  if (error.line == 0) error.line = node.line;
  throw;
}

Value Renderer::evaluate_any(const Expression& node, Scope& scope) {
  const auto child = [&](std::size_t i) { return evaluate(*node.children[i], scope); };
  switch (node.kind) {
    case Kind::kConstant:
      return node.constant;
    case Kind::kName:
      return evaluate_name(node.name, scope);
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kDict:
      return evaluate_collection(node, scope);
    case Kind::kConditional:
    case Kind::kOr:
    case Kind::kAnd:
    case Kind::kNot:
      return evaluate_logic(node, scope);
    case Kind::kCompare:
      return Value(evaluate_comparisons(node, scope));
    case Kind::kBinary: {
      const Value left = child(0);
      const Value right = child(1);
      return binary(node.name, spoken(left), spoken(right), budget_);
    }
    case Kind::kConcat:
      return evaluate_concat(node, scope);
    case Kind::kNegate:
      return negated(child(0));
    case Kind::kPlus: {
      Value value = child(0);
      if (!value.as_number()) fail(std::string("no + of a ") + value.type_name());
      return value.as_integer() ? Value(*value.as_integer()) : value;
    }
    case Kind::kAttribute:
      return attribute(spoken(child(0)), node.name);
    case Kind::kItem:
      return evaluate_item(node, scope);
    case Kind::kSlice:
      fail("a slice is only allowed in []");
    case Kind::kCall: {
      const Value callee = child(0);
      return call(callee, evaluate_arguments(node, scope));
    }
    case Kind::kFilter: {
      const Value value = child(0);
      return apply_filter(node.name, value, evaluate_arguments(node, scope), budget_);
    }
    case Kind::kTest: {
      const Value value = child(0);
      return Value(apply_test(node.name, value, evaluate_arguments(node, scope)));
    }
    case Kind::kCaptured:
      return captured_;
  }
  fail("an expression of an unknown kind");
}

Value Renderer::evaluate_name(const std::string& name, const Scope& scope) const {
  const Value* found = scope.find(name);
  if (found == nullptr && (name == "self" || name == "lipsum" || name == "cycler" || name == "joiner")) {
    fail("'" + name + "' is not supported");
  }
  return found != nullptr ? *found : Value::undefined("'" + name + "'");
}

Value Renderer::evaluate_collection(const Expression& node, Scope& scope) {
  if (node.kind == Kind::kDict) {
    Dict dict;
    for (std::size_t i = 0; i < node.children.size(); i += 2) {
      Value key = evaluate(*node.children[i], scope);
      dict.set(std::move(key), evaluate(*node.children[i + 1], scope));
    }
    return Value::dict(std::move(dict));
  }
  Values values;
  for (const ExpressionPtr& child : node.children) values.push_back(evaluate(*child, scope));
  return budget_.list(std::move(values), node.kind == Kind::kList ? SequenceKind::kList : SequenceKind::kTuple);
}

Value Renderer::evaluate_logic(const Expression& node, Scope& scope) {
  Value first = evaluate(*node.children[0], scope);
  if (node.kind == Kind::kNot) return Value(!first.truth());
  if (node.kind == Kind::kConditional) {
    const Expression* chosen = node.children[first.truth() ? 1 : 2].get();
    return chosen != nullptr ? evaluate(*chosen, scope)
                             : Value::undefined("an if without else whose condition is false");
  }
  const bool decided = first.truth() == (node.kind == Kind::kOr);
  return decided ? first : evaluate(*node.children[1], scope);
}

bool Renderer::evaluate_comparisons(const Expression& node, Scope& scope) {
  Value left = evaluate(*node.children[0], scope);
  for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
    Value right = evaluate(*node.children[i + 1], scope);
    if (!compare(node.comparisons[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Renderer::evaluate_concat(const Expression& node, Scope& scope) {
  std::string text;
  for (const ExpressionPtr& child : node.children) append(text, str(evaluate(*child, scope), budget_));
  return Value::text(std::move(text));
}

Value Renderer::evaluate_item(const Expression& node, Scope& scope) {
  const Value given = evaluate(*node.children[0], scope);
  const Value& object = spoken(given);
  const Expression& key = *node.children[1];
  if (key.kind == Kind::kSlice) return evaluate_slice(object, key, scope);
  const Value place = evaluate(key, scope);
  if (place.is_text() && object.as<std::shared_ptr<Loop>>() != nullptr) return attribute(object, *place.as_text());
  if (object.is_text()) budget_.steps(object.as_text()->size() / 16);
  return get_item(object, place);
}

Value Renderer::evaluate_slice(const Value& object, const Expression& node, Scope& scope) {
  const auto bound = [&](std::size_t i) -> std::optional<std::int64_t> {
    if (node.children[i] == nullptr) return std::nullopt;
    const Value value = evaluate(*node.children[i], scope);
    if (!value.is_none() && !value.as_integer())
      fail(std::string("a slice takes integers, not a ") + value.type_name());
    return value.as_integer();
  };
  const auto start = bound(0), stop = bound(1), step = bound(2);
  const auto* sequence = object.as<Sequence>();
  if (!object.is_text() && (sequence == nullptr || sequence->kind > SequenceKind::kRange)) {
    fail(std::string("a ") + object.type_name() + ": a slice of it is not supported");
  }
  const Values values = iterate(object, budget_);
  budget_.steps(values.size());
  Values chosen;
  for (const std::size_t place : sliced({start, stop, step}, values.size())) chosen.push_back(values[place]);
  if (sequence != nullptr) return budget_.list(std::move(chosen), sequence->kind);
  std::string text;
  for (const Value& letter : chosen) text += *letter.as_text();
  return budget_.text(std::move(text), object.is_safe());
}

Value Renderer::attribute(const Value& object, const std::string& name) {
  if (const auto* loop = object.as<std::shared_ptr<Loop>>()) {
    if (name == "cycle") return Value(Value::State(Method{std::make_shared<const Value>(object), name}));
    return loop_attribute(**loop, name);
  }
  return get_attribute(object, name);
}

Value Renderer::loop_attribute(Loop& loop, const std::string& name) {
  const auto num_left = [&] {  // number of items after the current one
    while (loop.running && pull(loop)) continue;
    return loop.pending.size();
  };
  const auto has_next = [&] { return !loop.pending.empty() || (loop.running && pull(loop)); };
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(!has_next());
  if (name == "previtem") return loop.previous;
  if (name == "nextitem") return has_next() ? loop.pending.front() : Value::undefined("there is no next item");
  if (name == "length") return Value::integer(loop.index0 + 1 + num_left());
  if (name == "revindex") return Value::integer(num_left() + 1);
  if (name == "revindex0") return Value::integer(num_left());
  if (name == "depth") return Value::integer(static_cast<std::size_t>(loop.depth0) + 1);
  if (name == "depth0") return Value::integer(static_cast<std::size_t>(loop.depth0));
  fail("loop." + name + " is not supported");
}

}  // namespace quire::chat
