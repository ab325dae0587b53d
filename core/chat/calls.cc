#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "core/chat/arguments.h"
#include "core/chat/attributes.h"
#include "core/chat/printing.h"
#include "core/chat/renderer.h"
#include "core/chat/template_error.h"

namespace quire::chat {
namespace {

constexpr std::int64_t kMaxRange = 100000;  // jinja2's sandbox: MAX_RANGE
constexpr std::size_t kMacroSteps = 64;     // cost of a macro, a namespace and the scopes that it keeps alive

Value range(const Arguments& arguments, Budget& budget) {
  if (!arguments.named.empty()) fail("range takes no named arguments");
  const Bound given("range", arguments, {"start", "stop", "step"}, 1);
  const bool one = given[1] == nullptr;
  const std::int64_t start = one ? 0 : given.integer(0, 0), stop = given.integer(one ? 0 : 1, 0),
                     step = given.integer(2, 1);
  if (step == 0) fail("range: the step is 0");
  Values values;
  for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (values.size() == kMaxRange) fail("a range is longer than " + std::to_string(kMaxRange));
    values.push_back(Value(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return budget.list(std::move(values), SequenceKind::kRange);
}

// dict(mapping or pairs, name=value ...)
Dict dict_of(const Arguments& arguments, Budget& budget) {
  if (arguments.positional.size() > 1) fail("dict takes one mapping");
  Dict dict;
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (const Dict* other = from.as_dict()) {
      dict = *other;
    } else {
      for (const Value& item : iterate(from, budget)) {
        const Values pair = iterate(item, budget);
        if (pair.size() != 2) fail("dict takes pairs");
        dict.set(pair[0], pair[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) dict.set(Value::text(name), value);
  return dict;
}

}  // namespace

Arguments Renderer::evaluate_arguments(const Expression& node, Scope& scope) {
  Arguments arguments;
  for (std::size_t i = 1; i < node.children.size(); ++i)
    arguments.positional.push_back(evaluate(*node.children[i], scope));
  if (node.star != nullptr) {
    for (Value& value : iterate(evaluate(*node.star, scope), budget_)) arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, value] : node.named) arguments.named.emplace_back(name, evaluate(*value, scope));
  if (node.star_star != nullptr) {
    const Value more = evaluate(*node.star_star, scope);
    if (more.as_dict() == nullptr) fail("** takes a dict");
    for (const auto& [key, value] : more.as_dict()->entries) {
      if (!key.is_text()) fail("** takes a dict with texts as keys");
      for (const auto& [name, ignored] : node.named) {
        if (name == *key.as_text()) fail("the argument '" + name + "' is given twice");
      }
      arguments.named.emplace_back(*key.as_text(), value);
    }
  }
  budget_.steps(arguments.positional.size() + arguments.named.size());
  return arguments;
}

Value Renderer::call(const Value& callee, const Arguments& arguments) {
  if (const auto* macro = callee.as<const Macro*>()) return call_macro(**macro, arguments);
  if (const auto* function = callee.as<Function>()) return call_function(*function, arguments);
  if (const auto* loop = callee.as<std::shared_ptr<Loop>>()) return call_loop(**loop, arguments);
  if (const auto* undefined = callee.as<Undefined>()) fail(undefined->what + " is undefined");
  const auto* method = callee.as<Method>();
  if (method == nullptr) fail(std::string("a ") + callee.type_name() + " cannot be called");
  if (const auto* loop = method->self->as<std::shared_ptr<Loop>>()) {
    if (arguments.positional.empty() || !arguments.named.empty()) fail("loop.cycle takes the items to cycle through");
    return arguments.positional[(*loop)->index0 % arguments.positional.size()];
  }
  return call_method(*method, arguments, budget_);
}

Value Renderer::call_macro(const Macro& macro, const Arguments& arguments) {
  const Node& node = *macro.node;
  LocalScope local(*this, macro.scope);
  Scope& scope = *local;
  const std::size_t num_parameters = node.targets.size(), first_default = num_parameters - node.values.size();
  std::vector<bool> is_set(num_parameters, false);
  Values more;
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i >= num_parameters) {
      more.push_back(arguments.positional[i]);
      continue;
    }
    scope.set(node.targets[i]->name, arguments.positional[i]);
    is_set[i] = true;
  }
  if (!more.empty() && !node.uses_varargs)
    fail("macro '" + node.text + "' takes no more than " + std::to_string(num_parameters));
  Dict named;
  Value caller = Value::undefined("'caller'");
  for (const auto& [name, value] : arguments.named) {
    const auto same = [&](const ExpressionPtr& target) { return target->name == name; };
    const auto found = std::find_if(node.targets.begin(), node.targets.end(), same);
    const auto place = static_cast<std::size_t>(found - node.targets.begin());
    if (found != node.targets.end() && is_set[place]) fail("macro '" + node.text + "' got '" + name + "' twice");
    if (found != node.targets.end()) {
      scope.set(name, value);
      is_set[place] = true;
    } else if (name == "caller" && node.uses_caller) {
      caller = value;
    } else {
      if (!node.uses_kwargs) fail("macro '" + node.text + "' takes no argument '" + name + "'");
      named.set(Value::text(name), value);
    }
  }
  if (node.uses_varargs) scope.set("varargs", Value::sequence(std::move(more), SequenceKind::kTuple));
  if (node.uses_kwargs) scope.set("kwargs", Value::dict(std::move(named)));
  if (node.uses_caller) scope.set("caller", std::move(caller));
  for (std::size_t i = 0; i < num_parameters; ++i) {
    if (is_set[i]) continue;
    const std::string& name = node.targets[i]->name;
    scope.set(name, i >= first_default ? evaluate(*node.values[i - first_default], scope)
                                       : Value::undefined("'" + name + "'"));
  }
  std::string text;
  run_block(node.body, scope, text);
  return Value::text(std::move(text));
}

Value Renderer::call_loop(Loop& loop, const Arguments& arguments) {
  if (!loop.node->recursive) fail("the loop is not recursive");
  if (!loop.running) fail("a loop that has ended cannot be called");
  const Bound given("loop", arguments, {"iterable"}, 1);
  std::string text;
  run_for(*loop.node, iterate(*given[0], budget_), *loop.scope, loop.depth0 + 1, text);
  return Value::text(std::move(text));
}

Value Renderer::call_function(Function function, const Arguments& arguments) {
  switch (function) {
    case Function::kRange:
      return range(arguments, budget_);
    case Function::kDict:
      return Value::dict(dict_of(arguments, budget_));
    case Function::kNamespace:
      return make_namespace(arguments);
    case Function::kRaise: {
      const Bound given("raise_exception", arguments, {"message"}, 1);
      fail(str(*given[0], budget_));
    }
    case Function::kStrftimeNow:
      break;
  }
  const Bound given("strftime_now", arguments, {"format"}, 1);
  if (given.text(0) == nullptr || given.text(0)->size() > 256) fail("strftime_now takes a format of at most 256 bytes");
  for (std::size_t at = 0; (at = given.text(0)->find('%', at)) != std::string::npos; at += 2) {
    const std::size_t kind = given.text(0)->find_first_not_of('-', at + 1);
    const char letter = kind != std::string::npos && kind <= at + 2 ? (*given.text(0))[kind] : ' ';
    if (std::string_view("aAbBcdeFHIjmMnprRStTuUwWyYDx%").find(letter) == std::string_view::npos) {
      fail("strftime_now: the format is not supported");
    }
    at = kind - 1;
  }
  if (given.text(0)->empty()) return Value::text("");
  std::array<char, 4096> buffer;
  return Value::text(
      std::string(buffer.data(), std::strftime(buffer.data(), buffer.size(), given.text(0)->c_str(), &now_)));
}

Value Renderer::make_namespace(const Arguments& arguments) {
  budget_.steps(kMacroSteps);
  auto space = std::make_unique<Namespace>();
  for (auto& [key, value] : dict_of(arguments, budget_).entries) {
    if (!key.is_text()) fail("a namespace keeps names");
    if (key.as_text()->starts_with('_')) fail("a namespace keeps no attribute that begins with _");
    space->values.insert_or_assign(*key.as_text(), value);
  }
  namespaces_.push_back(std::move(space));
  return Value(Value::State(namespaces_.back().get()));
}

Value Renderer::define_macro(const Node& node, Scope& scope) {
  budget_.steps(kMacroSteps);
  scope.keep();
  macros_.push_back(std::make_unique<Macro>(Macro{&node, &scope}));
  return Value(Value::State(static_cast<const Macro*>(macros_.back().get())));
}

void Renderer::run_call(const Node& node, Scope& scope, std::string& out) {
  const Value callee = evaluate(*node.value->children[0], scope);
  Arguments arguments = evaluate_arguments(*node.value, scope);
  arguments.named.emplace_back("caller", define_macro(node, scope));
  append(out, str(call(callee, arguments), budget_));
}

}  // namespace quire::chat
