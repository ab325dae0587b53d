// The arguments of a call, matched to its parameters by Python's rules.
// Shape   operator[] by the parameter's index; null if it was not given.
// Owner   borrows the Arguments.
// Fails   TemplateError: too many, unknown or repeated arguments, a missing required one, a wrong type.
// Source  Python's calling convention.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/chat/printing.h"
#include "core/chat/template_error.h"
#include "core/chat/value.h"

namespace quire::chat {

class Bound {
 public:
  Bound(std::string what, const Arguments& given, std::initializer_list<const char*> names, std::size_t num_required)
      : what_(std::move(what)), values_(names.size(), nullptr) {
    if (given.positional.size() > names.size())
      fail(what_ + " takes at most " + std::to_string(names.size()) + " arguments");
    for (std::size_t i = 0; i < given.positional.size(); ++i) values_[i] = &given.positional[i];
    for (const auto& [name, value] : given.named) {
      const auto found = std::find(names.begin(), names.end(), name);
      const auto place = static_cast<std::size_t>(found - names.begin());
      if (found == names.end() || values_[place] != nullptr) fail(what_ + " takes no argument '" + name + "' here");
      values_[place] = &value;
    }
    for (std::size_t i = 0; i < num_required; ++i) {
      if (values_[i] == nullptr) fail(what_ + " needs its argument '" + std::string(names.begin()[i]) + "'");
    }
  }

  const Value* operator[](std::size_t place) const { return values_[place]; }
  bool flag(std::size_t place, bool otherwise) const {
    return values_[place] != nullptr ? values_[place]->truth() : otherwise;
  }
  std::int64_t integer(std::size_t place, std::int64_t otherwise) const {
    if (values_[place] == nullptr) return otherwise;
    const auto number = values_[place]->as_integer();
    if (!number) fail(what_ + " takes a number, not a " + values_[place]->type_name());
    return *number;
  }
  // Null if the argument was not given or is none.
  const std::string* text(std::size_t place) const {
    if (values_[place] == nullptr || values_[place]->is_none()) return nullptr;
    if (!values_[place]->is_text()) fail(what_ + " takes a text, not a " + values_[place]->type_name());
    return values_[place]->as_text();
  }

 private:
  std::string what_;
  std::vector<const Value*> values_;
};

}  // namespace quire::chat
