// Table of filters, name → function, in two files.
// Shape   filters.cc has the filters of single values, sequence_filters.cc those of lists and dicts.
// Thread  any.
#pragma once

#include <map>
#include <string_view>

#include "core/chat/budget.h"
#include "core/chat/value.h"

namespace quire::chat {

using FilterFunction = Value (*)(const Value& value, const Arguments& arguments, Budget& budget);
using FilterTable = std::map<std::string_view, FilterFunction>;

const FilterTable& sequence_filters();

}  // namespace quire::chat
