#include "core/chat/parser.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include "core/chat/expression_parser.h"
#include "core/chat/template_error.h"

namespace quire::chat {
namespace {

using NodePtr = std::unique_ptr<Node>;

class Parser : public ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(tokenize(source)) {}

  Block run() {
    Block block = read_block({});
    if (!is(TokenKind::kEnd)) unexpected();
    if (!unknown_.empty()) throw unknown_.front();
    return block;
  }

 private:
  static NodePtr make_node(NodeKind kind, int line) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->line = line;
    return node;
  }

  // Reads up to a tag that begins with one of `ends`; its {% is consumed, its name is not. Without `ends`: to the end
  // of the template.
  Block read_block(std::initializer_list<std::string_view> ends) {
    const Nested nested(*this);
    Block block;
    while (!is(TokenKind::kEnd)) {
      const Token first = take();
      if (first.kind == TokenKind::kText) {
        block.push_back(make_node(NodeKind::kText, first.line));
        block.back()->text = first.text;
      } else if (first.kind == TokenKind::kOutputBegin) {
        block.push_back(make_node(NodeKind::kOutput, first.line));
        block.back()->value = read_tuple();
        expect(TokenKind::kOutputEnd, "}}");
      } else {
        if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return is_name(end); })) return block;
        block.push_back(read_statement());
      }
    }
    if (ends.size() != 0) fail("the template ends before {% " + std::string(*(ends.end() - 1)) + " %}", line());
    return block;
  }

  void end_tag() { expect(TokenKind::kBlockEnd, "%}"); }

  // Reads a block and its end tag.
  Block read_body(std::string_view end) {
    end_tag();
    Block body = read_block({end});
    take();
    end_tag();
    return body;
  }

  NodePtr read_statement() {
    using Reader = NodePtr (Parser::*)(int);
    static constexpr std::array<std::pair<std::string_view, Reader>, 10> kReaders = {{
        {"if", &Parser::read_if},
        {"for", &Parser::read_for},
        {"set", &Parser::read_set},
        {"macro", &Parser::read_macro},
        {"call", &Parser::read_call},
        {"filter", &Parser::read_filter_block},
        {"with", &Parser::read_with},
        {"generation", &Parser::read_generation},
        {"break", &Parser::read_break},
        {"continue", &Parser::read_continue},
    }};
    const int first_line = line();
    const std::string name = expect_name();
    for (const auto& [known, reader] : kReaders) {
      if (name == known) return (this->*reader)(first_line);
    }
    fail("{% " + name + " %} is not supported here", first_line);
  }

  NodePtr read_if(int first_line) {
    NodePtr node = make_node(NodeKind::kIf, first_line);
    ExpressionPtr condition = read_tuple(false);
    end_tag();
    ++num_ifs_;
    while (true) {
      const bool is_else = condition == nullptr;
      Block body = is_else ? read_block({"endif"}) : read_block({"elif", "else", "endif"});
      node->branches.push_back({std::move(condition), std::move(body)});
      const std::string next = expect_name();
      condition = next == "elif" ? read_tuple(false) : nullptr;
      end_tag();
      if (next == "endif") break;
    }
    --num_ifs_;
    return node;
  }

  NodePtr read_for(int first_line) {
    NodePtr node = make_node(NodeKind::kFor, first_line);
    node->target = read_target(false);
    if (!skip_name("in")) unexpected();
    node->value = read_tuple(false);
    if (skip_name("if")) node->condition = read_expression();
    node->recursive = skip_name("recursive");
    end_tag();
    ++num_loops_;
    node->body = read_block({"else", "endfor"});
    --num_loops_;
    if (expect_name() == "else") {
      end_tag();
      node->otherwise = read_block({"endfor"});
      take();
    }
    end_tag();
    return node;
  }

  NodePtr read_set(int first_line) {
    NodePtr node = make_node(NodeKind::kSet, first_line);
    node->target = read_target(true);
    if (skip_operator("=")) {
      node->value = read_tuple();
      end_tag();
      return node;
    }
    node->kind = NodeKind::kSetBlock;
    if (is_operator("|")) node->value = read_filters(make(ExpressionKind::kCaptured, first_line), false);
    node->body = read_separate("endset");
    return node;
  }

  // Reads a body that renders apart from the surrounding loops: break and continue cannot leave it.
  Block read_separate(std::string_view end) {
    const int num_loops = std::exchange(num_loops_, 0);
    Block body = read_body(end);
    num_loops_ = num_loops;
    return body;
  }

  void read_parameters(Node& node) {
    expect_operator("(");
    while (!is_operator(")")) {
      if (!node.targets.empty()) expect_operator(",");
      if (!is(TokenKind::kName)) unexpected();
      node.targets.push_back(make(ExpressionKind::kName, line(), expect_name()));
      if (skip_operator("=")) {
        node.values.push_back(read_expression());
      } else if (!node.values.empty()) {
        fail("a parameter without a default follows one with a default", line());
      }
    }
    take();
  }

  void read_macro_body(Node& node, std::string_view end) {
    const std::size_t num_seen = seen_names_.size();
    node.body = read_separate(end);
    const auto uses = [&](const char* name) {
      return std::find(seen_names_.begin() + static_cast<std::ptrdiff_t>(num_seen), seen_names_.end(), name) !=
             seen_names_.end();
    };
    node.uses_caller = uses("caller");
    node.uses_varargs = uses("varargs");
    node.uses_kwargs = uses("kwargs");
  }

  NodePtr read_macro(int first_line) {
    NodePtr node = make_node(NodeKind::kMacro, first_line);
    node->text = expect_name();
    read_parameters(*node);
    read_macro_body(*node, "endmacro");
    return node;
  }

  NodePtr read_call(int first_line) {
    NodePtr node = make_node(NodeKind::kCall, first_line);
    node->text = "caller";
    if (is_operator("(")) read_parameters(*node);
    node->value = read_expression();
    if (node->value->kind != ExpressionKind::kCall) fail("{% call %} needs a call", first_line);
    read_macro_body(*node, "endcall");
    return node;
  }

  NodePtr read_filter_block(int first_line) {
    NodePtr node = make_node(NodeKind::kFilterBlock, first_line);
    node->value = read_filters(make(ExpressionKind::kCaptured, first_line), true);
    node->body = read_separate("endfilter");
    return node;
  }

  NodePtr read_with(int first_line) {
    NodePtr node = make_node(NodeKind::kWith, first_line);
    while (!is(TokenKind::kBlockEnd)) {
      if (!node->targets.empty()) expect_operator(",");
      if (!is(TokenKind::kName)) unexpected();
      node->targets.push_back(make(ExpressionKind::kName, line(), expect_name()));
      expect_operator("=");
      node->values.push_back(read_expression());
    }
    node->body = read_body("endwith");
    return node;
  }

  NodePtr read_generation(int first_line) {
    NodePtr node = make_node(NodeKind::kScope, first_line);
    node->body = read_separate("endgeneration");
    return node;
  }

  NodePtr read_break(int first_line) { return read_jump(NodeKind::kBreak, first_line); }
  NodePtr read_continue(int first_line) { return read_jump(NodeKind::kContinue, first_line); }
  NodePtr read_jump(NodeKind kind, int first_line) {
    if (num_loops_ == 0) fail("break and continue are only allowed in a for", first_line);
    end_tag();
    return make_node(kind, first_line);
  }

  int num_loops_ = 0;  // number of loops that a break here could leave
};

}  // namespace

Block parse_template(std::string_view source) { return Parser(source).run(); }

}  // namespace quire::chat
