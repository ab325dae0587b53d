#include "api/fields/read_body.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "api/json/json_values.h"
#include "api/json/type_text.h"
#include "core/base/check.h"

namespace quire::api {
namespace {

using simdjson::dom::element;

constexpr std::size_t kMaxDepth = 128;  // enough for a schema inside a tool
constexpr std::size_t kMinParserBytes = 64;
constexpr std::size_t kMaxNamed = 16;  // names in a warning

std::string spelled(double number) {
  return number == std::floor(number) ? std::to_string(static_cast<std::int64_t>(number)) : std::to_string(number);
}

std::string spelled_range(const Number& kind) {
  if (kind.above) return "above " + spelled(kind.lowest) + " and up to " + spelled(kind.highest);
  return "from " + spelled(kind.lowest) + " to " + spelled(kind.highest);
}

std::int64_t highest_of(const Integer& kind, const RequestLimits& limits) {
  return kind.limit != nullptr ? std::int64_t{limits.*kind.limit} : kind.highest;
}

bool is_whole(element value) {
  return value.is_int64() || (value.is_double() && std::floor(value.get_double().value_unsafe()) == value.get_double());
}

// True if the value has one of `types`, such as "array|object".
bool is_of(std::string_view types, element value) {
  const char* type = value.is_array()    ? "array"
                     : value.is_object() ? "object"
                     : value.is_string() ? "string"
                     : value.is_bool()   ? "boolean"
                     : is_whole(value)   ? "integer"
                                         : "number";
  return types.find(type) != types.npos;
}

std::string with_article(std::string type) {
  const bool is_vowel = std::string_view("aeiou").find(type.front()) != std::string_view::npos;
  return (is_vowel ? "an " : "a ") + std::move(type);
}

// Stores a field's value in the request: a visitor of Field::kind.
struct Reader {
  const std::string& name;
  element value;
  const Services& services;
  GenerationRequest& request;

  Result<Done> operator()(const Flag& kind) const {
    const Result<bool> flag = boolean_of(name, value);
    if (!flag) return flag.error();
    request.*kind.member = *flag;
    return Done{};
  }
  Result<Done> operator()(const Integer& kind) const {
    const Result<std::int64_t> number = integer_of(name, value, kind.lowest, highest_of(kind, services.limits));
    if (!number) return number.error();
    kind.set(request, *number);
    return Done{};
  }
  Result<Done> operator()(const Number& kind) const {
    const Result<double> number = number_of(name, value, spelled_range(kind).c_str(), [&kind](double x) {
      // Compared as f32, as it is stored: a double above 0 that rounds to 0 is refused.
      const bool above = kind.above ? static_cast<float>(x) > static_cast<float>(kind.lowest) : x >= kind.lowest;
      return above && x <= kind.highest;
    });
    if (!number) return number.error();
    kind.set(request, *number);
    return Done{};
  }
  Result<Done> operator()(const Text& kind) const {
    Result<std::string> text = string_of(name, value, services.limits.*kind.max_bytes);
    if (!text) return text.error();
    if (kind.member == nullptr) return Done{};
    if (text->empty()) return invalid(name, name + " must not be empty: leave it out");
    request.*kind.member = std::move(*text);
    return Done{};
  }
  Result<Done> operator()(const Shaped& kind) const { return kind.read(name, value, services, request); }
  Result<Done> operator()(const Neutral& kind) const {
    if (is_of(plain_type(kind.json), value) && kind.is_neutral(value)) return Done{};
    return invalid(name, name + " is not supported: leave it out");
  }
  Result<Done> operator()(const Hint& kind) const {
    if (!is_of(plain_type(kind.json), value))
      return invalid(name, name + " must be " + with_article(plain_type(kind.json)));
    if (kind.is_neutral == nullptr || !kind.is_neutral(value)) leave_out(request, name);
    return Done{};
  }
};

void remember(std::string_view path, std::vector<std::string>& names, std::uint32_t& count) {
  ++count;
  if (names.size() == kMaxNamed) return;
  // A header's value is printable ASCII; commas and semicolons separate names.
  std::string name = echoed(path);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c <= ' ' || c > '~' || c == ',' || c == ';'; }, '?');
  names.push_back(std::move(name));
}

std::string reported(std::string text, const std::vector<std::string>& names, std::uint32_t count) {
  if (count == 0) return {};
  for (const std::string& name : names) {
    if (&name != &names.front()) text += ", ";
    text += name;
  }
  if (count > names.size()) text += " and " + std::to_string(count - names.size()) + " more";
  return text;
}

const Field* find(std::span<const Field> fields, unsigned endpoints, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& field) {
    return (field.endpoints & endpoints) != 0 && name == field.name;
  });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

// Reads the fields of one body, in its order.
class BodyReader {
 public:
  BodyReader(Endpoint endpoint, std::span<const Field> own, const Services& services, GenerationRequest& request)
      : endpoint_(endpoint), services_(services), request_(request) {
    given_.own_ = own;
    CHECK_LE(own.size() + shared_fields().size(), given_.bits_.size());
  }

  Result<Done> read(std::string_view key, element value) {
    const Field* own = find(given_.own_, endpoint_, key);
    const Field* field = own != nullptr ? own : find(shared_fields(), endpoint_, key);
    if (field == nullptr) {
      pass_over(request_, key);
      return Done{};
    }
    const std::string name = field->name;
    const std::size_t bit = given_.bit_of(key);
    if (seen_[bit]) return invalid(name, name + " is given twice");
    seen_[bit] = true;
    if (value.is_null()) return Done{};
    given_.bits_[bit] = true;
    return std::visit(Reader{name, value, services_, request_}, field->kind);
  }

  const Given& given() const { return given_; }

 private:
  const Endpoint endpoint_;
  const Services& services_;
  GenerationRequest& request_;
  Given given_;
  std::bitset<128> seen_;
};

std::size_t Given::bit_of(std::string_view name) const {
  std::size_t bit = 0;
  for (const std::span<const Field> fields : {own_, shared_fields()}) {
    for (const Field& field : fields) {
      if (name == field.name) return bit;
      ++bit;
    }
  }
  return bits_.size();
}

bool Given::operator()(std::string_view name) const {
  const std::size_t bit = bit_of(name);
  return bit < bits_.size() && bits_[bit];
}

Result<Given> read_body(const std::string& body, Endpoint endpoint, std::span<const Field> own,
                        const Services& services, GenerationRequest& request) {
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.allocate(std::max(body.size(), kMinParserBytes), kMaxDepth)) {
    return parse_failure(error);
  }
  if (const auto error = parser.parse(body).get(root)) return parse_failure(error);
  if (!root.is_object()) return invalid("", "the body must be a JSON object");

  request.model = services.model_names.front();
  request.sampling = services.defaults;
  request.rules.repetition_penalty = services.repetition_penalty;
  request.default_max_tokens = std::min(request.default_max_tokens, services.max_new_tokens.value_or(~0u));
  BodyReader reader(endpoint, own, services, request);
  const simdjson::dom::object fields = object_of(root);
  for (const auto field : fields) {
    if (Result<Done> read = reader.read(field.key, field.value); !read) return read.error();
  }
  return reader.given();
}

void pass_over(GenerationRequest& request, std::string_view path) {
  remember(path, request.unknown_fields, request.num_unknown_fields);
}

void leave_out(GenerationRequest& request, std::string_view path) {
  remember(path, request.left_out, request.num_left_out);
}

std::string warnings_of(const GenerationRequest& request) {
  const std::string unknown = reported("unknown fields: ", request.unknown_fields, request.num_unknown_fields);
  const std::string without = reported("of no effect: ", request.left_out, request.num_left_out);
  return unknown + (unknown.empty() || without.empty() ? "" : "; ") + without;
}

std::string range_text(const Field& field, const RequestLimits& limits) {
  struct Words {
    const RequestLimits& limits;
    std::string operator()(const Flag&) const { return "true or false"; }
    std::string operator()(const Integer& kind) const {
      using Int32 = std::numeric_limits<std::int32_t>;
      const std::int64_t highest = highest_of(kind, limits);
      if (kind.lowest == std::numeric_limits<std::int64_t>::min()) return "a 64-bit integer";
      if (kind.lowest == Int32::min()) return "a 32-bit integer";
      if (highest == Int32::max()) return std::to_string(kind.lowest) + " and up";
      return std::to_string(kind.lowest) + " to " + std::to_string(highest);
    }
    std::string operator()(const Number& kind) const {
      const std::string range = spelled(kind.lowest) + (kind.above ? " and up to " : " to ") + spelled(kind.highest);
      return kind.above ? "above " + range : range;
    }
    std::string operator()(const Text& kind) const {
      return "up to " + std::to_string(limits.*kind.max_bytes) + " bytes";
    }
    std::string operator()(const Shaped& kind) const { return kind.range; }
    std::string operator()(const Neutral& kind) const { return std::string("only ") + kind.range; }
    std::string operator()(const Hint&) const { return "any"; }
  };
  return std::visit(Words{limits}, field.kind);
}

std::string_view json_type(const Field& field) {
  struct Name {
    std::string_view operator()(const Flag&) const { return "boolean"; }
    std::string_view operator()(const Integer&) const { return "integer"; }
    std::string_view operator()(const Number&) const { return "number"; }
    std::string_view operator()(const Text&) const { return "string"; }
    std::string_view operator()(const Shaped& kind) const { return kind.json; }
    std::string_view operator()(const Neutral& kind) const { return kind.json; }
    std::string_view operator()(const Hint& kind) const { return kind.json; }
  };
  return std::visit(Name{}, field.kind);
}

}  // namespace quire::api
