#include "api/chat/json_copy.h"

#include <utility>

#include "api/json/json_values.h"

namespace quire::api::chat {
namespace {

using simdjson::dom::element;
using Type = simdjson::dom::element_type;

// False if nested too deep.
bool copy(element from, int depth, json::Value& to) {
  switch (from.type()) {
    case Type::ARRAY: {
      if (depth == kMaxDepth) return false;
      json::Array array;
      for (const element one : array_of(from)) {
        if (!copy(one, depth + 1, array.emplace_back())) return false;
      }
      to = std::move(array);
      return true;
    }
    case Type::OBJECT: {
      if (depth == kMaxDepth) return false;
      json::Object object;
      for (const auto field : object_of(from)) {
        if (!copy(field.value, depth + 1, object[field.key])) return false;
      }
      to = std::move(object);
      return true;
    }
    case Type::STRING:
      to = from.get_string().value_unsafe();
      return true;
    case Type::INT64:
      to = from.get_int64().value_unsafe();
      return true;
    case Type::UINT64:
      to = from.get_uint64().value_unsafe();
      return true;
    case Type::DOUBLE:
      to = from.get_double().value_unsafe();
      return true;
    case Type::BOOL:
      to = from.get_bool().value_unsafe();
      return true;
    case Type::NULL_VALUE:
      to = nullptr;
      return true;
  }
  return false;
}

}  // namespace

Result<json::Value> copy_of(const std::string& path, element value) {
  json::Value out;
  if (!copy(value, 0, out)) {
    return invalid(path, path + " may be nested at most " + std::to_string(kMaxDepth) + " levels deep");
  }
  return out;
}

}  // namespace quire::api::chat
