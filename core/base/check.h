// Checks for our own bugs. A failed one prints the expression (CHECK_EQ and the like: and both values) and aborts.
// Fails   a failed check does not return. A caller's fault is a Result, not a CHECK.
#pragma once

#include <sstream>
#include <string>

namespace quire {

[[noreturn]] void check_failed(const char* file, int line, const char* expression, const std::string& values);

template <typename A, typename B>
[[noreturn]] void check_op_failed(const char* file, int line, const char* expression, const A& a, const B& b) {
  std::ostringstream values;
  values << a << " vs " << b;
  check_failed(file, line, expression, values.str());
}

}  // namespace quire

#define CHECK(condition) ((condition) ? (void)0 : ::quire::check_failed(__FILE__, __LINE__, #condition, std::string()))

#define QUIRE_CHECK_OP(op, a, b)                                                         \
  do {                                                                                   \
    const auto& check_a = (a);                                                           \
    const auto& check_b = (b);                                                           \
    if (!(check_a op check_b)) {                                                         \
      ::quire::check_op_failed(__FILE__, __LINE__, #a " " #op " " #b, check_a, check_b); \
    }                                                                                    \
  } while (false)

#define CHECK_EQ(a, b) QUIRE_CHECK_OP(==, a, b)
#define CHECK_NE(a, b) QUIRE_CHECK_OP(!=, a, b)
#define CHECK_LT(a, b) QUIRE_CHECK_OP(<, a, b)
#define CHECK_LE(a, b) QUIRE_CHECK_OP(<=, a, b)
#define CHECK_GT(a, b) QUIRE_CHECK_OP(>, a, b)
#define CHECK_GE(a, b) QUIRE_CHECK_OP(>=, a, b)
