// One rendering of a template: evaluates its nodes with the variables in scope.
// Shape   scopes as in jinja2: each iteration of a for, each macro call, each with and each captured block opens one;
//         if does not.
// Owner   one call of Template::render(). Namespaces, macros and the scopes that macros close over live as long as the
//         Renderer.
// Thread  one.
// Fails   TemplateError, with the line of the innermost node.
// Source  jinja2 3.1.6's code generator and runtime.
#pragma once

#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/chat/ast.h"
#include "core/chat/budget.h"
#include "core/chat/value.h"

namespace quire::chat {

class Scope {
 public:
  explicit Scope(Scope* parent) : parent_(parent) {}

  void set(std::string_view name, Value value) { values_.insert_or_assign(std::string(name), std::move(value)); }
  const Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
      const auto found = scope->values_.find(name);
      if (found != scope->values_.end()) return &found->second;
    }
    return nullptr;
  }
  // Keeps this scope and its parents alive: a macro that was defined here may be called later.
  void keep() {
    for (Scope* scope = this; scope != nullptr && !scope->kept_; scope = scope->parent_) scope->kept_ = true;
  }
  bool kept() const { return kept_; }

 private:
  Scope* parent_;
  std::map<std::string, Value, std::less<>> values_;
  bool kept_ = false;
};

class Renderer {
 public:
  Renderer(const json::Object& variables, const std::tm& now, const Limits& limits, Allowance* allowance = nullptr);
  std::string run(const Block& block);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class LocalScope;

  // renderer.cc: statements
  Flow run_block(const Block& block, Scope& scope, std::string& out);
  Flow run_node(const Node& node, Scope& scope, std::string& out);
  Flow run_if(const Node& node, Scope& scope, std::string& out);
  void run_for(const Node& node, Values items, Scope& scope, int depth0, std::string& out);
  std::optional<Value> next_item(Loop& loop);
  bool pull(Loop& loop);
  void run_with(const Node& node, Scope& scope, std::string& out);
  std::string captured(const Block& block, Scope& scope);
  Value filtered(const Node& node, Scope& scope);
  void assign(const Expression& target, Value value, Scope& scope);
  void append(std::string& out, std::string_view text);

  // expressions.cc
  Value evaluate(const Expression& node, Scope& scope);
  Value evaluate_any(const Expression& node, Scope& scope);
  Value evaluate_name(const std::string& name, const Scope& scope) const;
  Value evaluate_collection(const Expression& node, Scope& scope);
  Value evaluate_logic(const Expression& node, Scope& scope);
  bool evaluate_comparisons(const Expression& node, Scope& scope);
  Value evaluate_concat(const Expression& node, Scope& scope);
  Value evaluate_item(const Expression& node, Scope& scope);
  Value evaluate_slice(const Value& object, const Expression& node, Scope& scope);
  Value attribute(const Value& object, const std::string& name);
  Value loop_attribute(Loop& loop, const std::string& name);

  // calls.cc
  Arguments evaluate_arguments(const Expression& node, Scope& scope);
  Value call(const Value& callee, const Arguments& arguments);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  Value call_loop(Loop& loop, const Arguments& arguments);
  Value call_function(Function function, const Arguments& arguments);
  Value make_namespace(const Arguments& arguments);
  Value define_macro(const Node& node, Scope& scope);
  void run_call(const Node& node, Scope& scope, std::string& out);

  std::tm now_;
  Limits limits_;
  Budget budget_;
  Scope root_{nullptr};
  Value captured_;  // value of kCaptured
  std::vector<std::unique_ptr<Scope>> kept_scopes_;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  std::vector<std::unique_ptr<Macro>> macros_;
};

// RAII scope. If a macro closed over it, the destructor moves it to the renderer's kept_scopes_.
class Renderer::LocalScope {
 public:
  LocalScope(Renderer& renderer, Scope* parent) : renderer_(renderer), scope_(std::make_unique<Scope>(parent)) {}
  ~LocalScope() {
    if (scope_->kept()) renderer_.kept_scopes_.push_back(std::move(scope_));
  }
  LocalScope(const LocalScope&) = delete;
  Scope& operator*() { return *scope_; }

 private:
  Renderer& renderer_;
  std::unique_ptr<Scope> scope_;
};

}  // namespace quire::chat
