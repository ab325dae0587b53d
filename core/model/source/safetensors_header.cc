#include "core/model/source/safetensors_header.h"

#include <boost/json/basic_parser_impl.hpp>
#include <set>
#include <utility>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/source/json_fields.h"

namespace quire::model {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDimensions = 16;

// Handler of the parser's events for { name: {"dtype": string, "shape": [n…], "data_offsets": [n, n]}, "__metadata__":
// {…} }. An unexpected event writes its reason to `problem` and stops the parser.
class HeaderEvents {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = 1u << 16;
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  std::vector<HeaderEntry> entries;
  std::string problem;

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }

  bool on_object_begin(json::error_code& error) {
    if (depth_ == 0 || (depth_ == 1 && !key_.empty())) {
      ++depth_;
      return true;
    }
    return stop(error, "an unexpected object");
  }
  bool on_object_end(std::size_t, json::error_code& error) {
    --depth_;
    if (depth_ != 1) return true;
    if (!in_metadata_ && fields_seen_ != kAllFields) return stop(error, "dtype, shape or data_offsets is missing");
    in_metadata_ = false;
    return true;
  }
  bool on_array_begin(json::error_code& error) {
    if (depth_ == 2 && !in_metadata_ && (field_ == kShape || field_ == kOffsets)) {
      numbers_.clear();
      depth_ = 3;
      return true;
    }
    return stop(error, "an unexpected list");
  }
  bool on_array_end(std::size_t, json::error_code& error) {
    depth_ = 2;
    HeaderEntry& entry = entries.back();
    if (field_ == kShape) {
      entry.shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2)
      return stop(error, "data_offsets has " + std::to_string(numbers_.size()) + " numbers; expected 2");
    entry.begin = numbers_[0];
    entry.end = numbers_[1];
    return true;
  }

  bool on_key_part(json::string_view part, std::size_t, json::error_code&) { return collect(part); }
  bool on_key(json::string_view part, std::size_t, json::error_code& error) {
    collect(part);
    key_ = std::exchange(text_, {});
    return depth_ == 1 ? begin_entry(error) : begin_field(error);
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) { return collect(part); }
  bool on_string(json::string_view part, std::size_t, json::error_code& error) {
    collect(part);
    std::string text = std::exchange(text_, {});
    if (depth_ == 2 && in_metadata_) return true;
    if (depth_ != 2 || field_ != kDtype) return stop(error, "an unexpected string");
    entries.back().dtype = std::move(text);
    return true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, json::error_code& error) {
    if (number < 0) return stop(error, "a negative number");
    return take(static_cast<std::uint64_t>(number), error);
  }
  bool on_uint64(std::uint64_t number, json::string_view, json::error_code& error) { return take(number, error); }
  bool on_double(double, json::string_view, json::error_code& error) {
    return stop(error, "a number that is not a 64-bit integer");
  }
  bool on_bool(bool, json::error_code& error) { return stop(error, "an unexpected true or false"); }
  bool on_null(json::error_code& error) { return stop(error, "an unexpected null"); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  enum Field : unsigned { kDtype = 1, kShape = 2, kOffsets = 4, kAllFields = 7 };

  bool begin_entry(json::error_code& error) {
    if (!names_.insert(key_).second) return stop(error, "the name occurs twice");
    in_metadata_ = key_ == "__metadata__";
    if (!in_metadata_) entries.push_back({key_, {}, {}, 0, 0});
    fields_seen_ = 0;
    if (key_.empty()) return stop(error, "an empty name");
    return true;
  }
  bool begin_field(json::error_code& error) {
    if (in_metadata_) return true;
    field_ = key_ == "dtype" ? kDtype : key_ == "shape" ? kShape : key_ == "data_offsets" ? kOffsets : 0u;
    if (field_ == 0) return stop(error, "unknown key '" + log_safe(key_) + "'; expected dtype, shape, data_offsets");
    if ((fields_seen_ & field_) != 0) return stop(error, "key '" + key_ + "' occurs twice");
    fields_seen_ |= field_;
    return true;
  }
  bool take(std::uint64_t number, json::error_code& error) {
    if (depth_ != 3) return stop(error, "an unexpected number");
    if (numbers_.size() == kMaxDimensions) return stop(error, "more than 16 dimensions");
    numbers_.push_back(number);
    return true;
  }
  bool collect(json::string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool stop(json::error_code& error, const std::string& what) {
    problem =
        (names_.empty() || in_metadata_ || entries.empty() ? "" : "tensor '" + log_safe(entries.back().name) + "': ") +
        what;
    error = json::error::incomplete;  // any error stops the parser; `problem` is the reported one
    return false;
  }

  int depth_ = 0;  // 1 in the top object, 2 in a tensor's object, 3 in one of its lists
  bool in_metadata_ = false;
  unsigned field_ = 0;
  unsigned fields_seen_ = 0;
  std::string key_;
  std::string text_;  // a key or string that arrives in parts
  std::vector<std::uint64_t> numbers_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<HeaderEntry> parse_safetensors_header(std::string_view text, const std::string& file) {
  json::basic_parser<HeaderEvents> parser{json::parse_options{}};
  json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  HeaderEvents& events = parser.handler();
  if (!events.problem.empty()) throw StartError(file + ": safetensors header: " + events.problem);
  if (error) throw StartError(file + ": the safetensors header is not valid JSON: " + error.message());
  if (text.find_first_not_of(" \t\r\n", used) != std::string_view::npos) {
    throw StartError(file + ": the safetensors header has text after its JSON object");
  }
  return std::move(events.entries);
}

std::map<std::string, std::string> parse_shard_index(std::string_view text, const std::string& file) {
  const json::object document = parse_object(text, file);
  const JsonFields fields(document, file);
  const std::optional<JsonFields> weight_map = fields.optional_object("weight_map");
  if (!weight_map) fields.mismatch("weight_map", "expected an object of tensor name to file name");
  std::map<std::string, std::string> shard_of;
  for (const std::string& tensor : weight_map->keys()) shard_of[tensor] = weight_map->require_string(tensor);
  return shard_of;
}

}  // namespace quire::model
