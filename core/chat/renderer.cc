#include "core/chat/renderer.h"

#include <utility>

#include "core/chat/printing.h"
#include "core/chat/template_error.h"
#include "core/text/unicode/utf8.h"

namespace quire::chat {
namespace {

std::string checked_text(const std::string& text) {
  if (!text::is_utf8(text)) fail("a variable's text is not UTF-8");
  return text;
}

Value value_of(const json::Value& json, int depth);

// A message as a dict. Null content becomes a silent None: it stands for no text, not for the word None.
Value message_of(const json::Value& json, int depth) {
  if (!json.is_object()) return value_of(json, depth);
  Dict dict;
  for (const auto& member : json.get_object()) {
    const bool says_nothing = member.name == "content" && member.value.is_null();
    dict.set(Value::text(std::string(member.name)),
             says_nothing ? Value::silent_none() : value_of(member.value, depth + 1));
  }
  return Value::dict(std::move(dict));
}

Value messages_of(const json::Value& json) {
  if (!json.is_array()) return value_of(json, 0);
  Values values;
  for (const json::Value& message : json.get_array()) values.push_back(message_of(message, 1));
  return Value::sequence(std::move(values));
}

Value value_of(const json::Value& json, int depth) {
  if (depth >= kMaxValueDepth) fail("a variable is nested more than " + std::to_string(kMaxValueDepth) + " deep");
  switch (json.kind()) {
    case json::Kind::kNull:
      return Value();
    case json::Kind::kBool:
      return Value(json.get_bool());
    case json::Kind::kInt64:
      return Value(std::int64_t{json.get_int64()});
    case json::Kind::kUint64:
      if (json.get_uint64() > INT64_MAX) fail("a variable's integer does not fit 64 bits");
      return Value(static_cast<std::int64_t>(json.get_uint64()));
    case json::Kind::kDouble:
      return Value(json.get_double());
    case json::Kind::kString:
      return Value::text(checked_text(json.get_string()));
    case json::Kind::kArray:
      break;
    case json::Kind::kObject: {
      Dict dict;
      for (const auto& member : json.get_object()) {
        dict.set(Value::text(std::string(member.name)), value_of(member.value, depth + 1));
      }
      return Value::dict(std::move(dict));
    }
  }
  Values values;
  for (const json::Value& item : json.get_array()) values.push_back(value_of(item, depth + 1));
  return Value::sequence(std::move(values));
}

// Clears Loop::running at the end of a loop, also when an exception ends it.
struct Running {
  explicit Running(Loop& running) : loop(running) {}
  ~Running() { loop.running = false; }
  Running(const Running&) = delete;
  Loop& loop;
};

}  // namespace

Renderer::Renderer(const json::Object& variables, const std::tm& now, const Limits& limits, Allowance* allowance)
    : now_(now), limits_(limits), budget_(limits, allowance) {
  using Named = std::pair<const char*, Function>;
  for (const auto& [name, function] :
       {Named{"range", Function::kRange}, Named{"dict", Function::kDict}, Named{"namespace", Function::kNamespace},
        Named{"raise_exception", Function::kRaise}, Named{"strftime_now", Function::kStrftimeNow}}) {
    root_.set(name, Value(Value::State(function)));
  }
  for (const auto& variable : variables) {
    root_.set(variable.name, variable.name == "messages" ? messages_of(variable.value) : value_of(variable.value, 0));
  }
}

std::string Renderer::run(const Block& block) {
  std::string out;
  LocalScope scope(*this, &root_);
  run_block(block, *scope, out);
  return out;
}

void Renderer::append(std::string& out, std::string_view text) {
  if (text.size() > limits_.max_output_bytes - out.size()) budget_.bytes(limits_.max_output_bytes + 1);
  budget_.steps(text.size() / 16);
  out += text;
}

Renderer::Flow Renderer::run_block(const Block& block, Scope& scope, std::string& out) {
  for (const auto& node : block) {
    const Flow flow = run_node(*node, scope, out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Renderer::Flow Renderer::run_node(const Node& node, Scope& scope, std::string& out) try {
  const Level level(budget_);
  switch (node.kind) {
    case NodeKind::kText:
      append(out, node.text);
      break;
    case NodeKind::kOutput:
      append(out, str(evaluate(*node.value, scope), budget_));
      break;
    case NodeKind::kIf:
      return run_if(node, scope, out);
    case NodeKind::kFor:
      run_for(node, iterate(evaluate(*node.value, scope), budget_), scope, 0, out);
      break;
    case NodeKind::kSet:
      assign(*node.target, evaluate(*node.value, scope), scope);
      break;
    case NodeKind::kSetBlock:
      assign(*node.target, filtered(node, scope), scope);
      break;
    case NodeKind::kFilterBlock:
      append(out, str(filtered(node, scope), budget_));
      break;
    case NodeKind::kMacro:
      scope.set(node.text, define_macro(node, scope));
      break;
    case NodeKind::kCall:
      run_call(node, scope, out);
      break;
    case NodeKind::kWith:
      run_with(node, scope, out);
      break;
    case NodeKind::kScope:
      append(out, captured(node.body, scope));
      break;
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
} catch (TemplateError& error) {
  if (error.line == 0) error.line = node.line;
  throw;
}

Renderer::Flow Renderer::run_if(const Node& node, Scope& scope, std::string& out) {
  for (const Branch& branch : node.branches) {
    if (branch.condition == nullptr || evaluate(*branch.condition, scope).truth())
      return run_block(branch.body, scope, out);
  }
  return Flow::kNext;
}

void Renderer::run_for(const Node& node, Values items, Scope& scope, int depth0, std::string& out) {
  budget_.steps(items.size());
  const auto loop = std::make_shared<Loop>();
  loop->node = &node;
  loop->scope = &scope;
  loop->source = std::move(items);
  loop->depth0 = depth0;
  const Running running(*loop);
  bool is_first = true;
  while (std::optional<Value> item = next_item(*loop)) {
    budget_.steps(1);
    if (!is_first) ++loop->index0;
    loop->previous = is_first ? Value::undefined("there is no previous item") : std::move(loop->current);
    loop->current = *item;
    is_first = false;
    LocalScope body(*this, &scope);
    (*body).set("loop", Value(Value::State(loop)));
    assign(*node.target, *std::move(item), *body);
    if (run_block(node.body, *body, out) == Flow::kBreak) return;
  }
  if (!is_first) return;
  LocalScope body(*this, &scope);
  run_block(node.otherwise, *body, out);
}

std::optional<Value> Renderer::next_item(Loop& loop) {
  if (loop.pending.empty() && !pull(loop)) return std::nullopt;
  Value item = std::move(loop.pending.front());
  loop.pending.pop_front();
  return item;
}

// Moves the next item that passes the loop's condition to `pending`; false if none is left. Filters lazily, since the
// body may change variables that the condition reads.
bool Renderer::pull(Loop& loop) {
  while (loop.next_unfiltered < loop.source.size()) {
    const Value& item = loop.source[loop.next_unfiltered++];
    if (loop.node->condition != nullptr) {
      LocalScope scope(*this, loop.scope);
      assign(*loop.node->target, item, *scope);
      if (!evaluate(*loop.node->condition, *scope).truth()) continue;
    }
    loop.pending.push_back(item);
    return true;
  }
  return false;
}

void Renderer::run_with(const Node& node, Scope& scope, std::string& out) {
  LocalScope body(*this, &scope);
  for (std::size_t i = 0; i < node.targets.size(); ++i) {
    assign(*node.targets[i], evaluate(*node.values[i], scope), *body);
  }
  run_block(node.body, *body, out);
}

std::string Renderer::captured(const Block& block, Scope& scope) {
  LocalScope body(*this, &scope);
  std::string text;
  run_block(block, *body, text);
  return text;
}

Value Renderer::filtered(const Node& node, Scope& scope) {
  Value text = Value::text(captured(node.body, scope));
  if (node.value == nullptr) return text;
  const Value outer = std::exchange(captured_, std::move(text));
  Value result = evaluate(*node.value, scope);
  captured_ = outer;
  return result;
}

void Renderer::assign(const Expression& target, Value value, Scope& scope) {
  if (target.kind == ExpressionKind::kName) return scope.set(target.name, std::move(value));
  if (target.kind == ExpressionKind::kAttribute) {
    const Value object = evaluate_name(target.children[0]->name, scope);
    const auto* space = object.as<Namespace*>();
    if (space == nullptr) fail("cannot assign attribute on non-namespace object", target.line);
    if (target.name.starts_with('_')) fail("a namespace keeps no attribute that begins with _", target.line);
    (*space)->values.insert_or_assign(target.name, std::move(value));
    return;
  }
  Values values = iterate(value, budget_);
  if (values.size() != target.children.size()) {
    fail("cannot unpack " + std::to_string(values.size()) + " values into " + std::to_string(target.children.size()),
         target.line);
  }
  for (std::size_t i = 0; i < values.size(); ++i) assign(*target.children[i], std::move(values[i]), scope);
}

}  // namespace quire::chat
