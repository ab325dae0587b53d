// The syntax tree of a template: the parser makes it, the Renderer evaluates it.
// Shape   Expression::children by kind: kConditional condition, then, else (may be null); kItem object, key; kSlice
//         start, stop, step (each may be null); kCall, kFilter, kTest their object, then the positional arguments;
//         kDict key, value, key, value ...; operators their operands. Depth is at most kMaxTreeDepth.
// Owner   Template; immutable.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/chat/value.h"

namespace quire::chat {

inline constexpr int kMaxTreeDepth = 150;

enum class ExpressionKind {
  // clang-format off
  kConstant, kName, kTuple, kList, kDict, kConditional, kOr, kAnd, kNot, kCompare, kBinary, kConcat, kNegate, kPlus,
  kAttribute, kItem, kSlice, kCall, kFilter, kTest,
  kCaptured,  // the text of a captured block: input of the block's filters
  // clang-format on
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  ExpressionKind kind;
  int line;
  int depth = 1;
  std::string name;  // of the variable, attribute, filter, test or operator
  Value constant;
  std::vector<ExpressionPtr> children;
  std::vector<std::string> comparisons;  // kCompare: "<", "in", "not in" ...; one fewer than children
  std::vector<std::pair<std::string, ExpressionPtr>> named;  // key=value of kCall, kFilter, kTest
  ExpressionPtr star, star_star;                             // *values and **values of the same
};

enum class NodeKind {
  kText,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCall,
  kFilterBlock,
  kWith,
  kScope,
  kBreak,
  kContinue
};

struct Node;
using Block = std::vector<std::unique_ptr<Node>>;

struct Branch {
  ExpressionPtr condition;  // null: else
  Block body;
};

struct Node {
  NodeKind kind;
  int line;
  std::string text;              // kText; the name of kMacro
  ExpressionPtr target;          // kFor, kSet, kSetBlock: kName, kTuple of those, kAttribute of a kName
  ExpressionPtr value;           // printed, assigned, iterated or called value; the filters of kSetBlock (may be null)
  ExpressionPtr condition;       // kFor: the filter of items; may be null
  bool recursive = false;        // kFor
  std::vector<Branch> branches;  // kIf
  std::vector<ExpressionPtr> targets;  // kMacro, kCall: parameters (kName); kWith: the bound names
  // kMacro, kCall: the defaults of the last parameters; kWith: one value for each target.
  std::vector<ExpressionPtr> values;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // kMacro, kCall
  Block body, otherwise;                                                // otherwise: the else block of kFor
};

}  // namespace quire::chat
