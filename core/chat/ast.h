// A parsed template: what the parser makes and the Renderer walks.
// Shape   Expression::children by kind: kConditional condition, then, else (may be null); kItem object, key; kSlice
//         start, stop, step (each may be null); kCall, kFilter, kTest what it is applied to, then the positional
//         arguments; kDict key, value, key, value ...; operators their operands. Depth is at most kMaxTreeDepth.
// Owner   Template; never changes.
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
  kCaptured,  // the text of the block that a filter stands before
  // clang-format on
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  ExpressionKind kind;
  int line;
  int depth = 1;
  std::string name;  // of the variable, attribute, filter, test; of the operator
  Value constant;
  std::vector<ExpressionPtr> children;
  std::vector<std::string> comparisons;  // kCompare: "<", "in", "not in" ...: one less than children
  std::vector<std::pair<std::string, ExpressionPtr>> named;  // key=value of kCall, kFilter, kTest
  ExpressionPtr star, star_star;                             // *values and **values of these
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
  std::string text;                    // kText; the name of kMacro
  ExpressionPtr target;                // kFor, kSet, kSetBlock: kName, kTuple of those, kAttribute of a kName
  ExpressionPtr value;                 // what is printed, set, iterated, called; the filters of kSetBlock (may be null)
  ExpressionPtr condition;             // kFor: which items; may be null
  bool recursive = false;              // kFor
  std::vector<Branch> branches;        // kIf
  std::vector<ExpressionPtr> targets;  // kMacro, kCall: parameters (kName); kWith: what is bound
  std::vector<ExpressionPtr> values;   // kMacro, kCall: the defaults of the last parameters; kWith: one for each target
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // kMacro, kCall
  Block body, otherwise;                                                // otherwise: the else of kFor
};

}  // namespace quire::chat
