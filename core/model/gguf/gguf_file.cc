#include "core/model/gguf/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::model {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 1u << 20;
constexpr std::uint64_t kMaxDims = 4;
constexpr std::uint64_t kMaxNameBytes = 1024;
constexpr std::uint64_t kLeastValueBytes = 8 + 4 + 1;       // of a key with its value
constexpr std::uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;  // of a tensor's description

// A type of tensors: its number in the file, and the size of its blocks.
struct DataType {
  std::uint32_t id;
  std::string_view name;
  std::uint32_t elements;
  std::uint32_t bytes;
  std::string_view instead = {};  // of a type that is not read: a common one that is about as large
};

constexpr DataType kDataTypes[] = {
    {0, "F32", 1, 4},
    {1, "F16", 1, 2},
    {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},
    {9, "Q8_1", 32, 36, "Q8_0"},
    {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},
    {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292, "Q8_0"},
    {16, "IQ2_XXS", 256, 66, "Q2_K"},
    {17, "IQ2_XS", 256, 74, "Q2_K"},
    {18, "IQ3_XXS", 256, 98, "Q3_K"},
    {19, "IQ1_S", 256, 50, "Q2_K"},
    {20, "IQ4_NL", 32, 18},
    {21, "IQ3_S", 256, 110, "Q3_K"},
    {22, "IQ2_S", 256, 82, "Q2_K"},
    {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1, "F32"},
    {25, "I16", 1, 2, "F32"},
    {26, "I32", 1, 4, "F32"},
    {27, "I64", 1, 8, "F32"},
    {28, "F64", 1, 8, "F32"},
    {29, "IQ1_M", 256, 56, "Q2_K"},
    {30, "BF16", 1, 2},
    {34, "TQ1_0", 256, 54, "Q2_K"},
    {35, "TQ2_0", 256, 66, "Q2_K"},
    {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18, "Q2_K"},
    {42, "Q2_0", 64, 18, "Q2_K"},
};

const DataType* data_type(std::uint32_t id) {
  const auto* found = std::ranges::find(kDataTypes, id, &DataType::id);
  return found == std::end(kDataTypes) ? nullptr : found;
}

// Bytes of a value of fixed size; 0: its size is in the file.
std::uint64_t bytes_of(GgufType type) {
  using enum GgufType;
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool:
      return 1;
    case kUint16:
    case kInt16:
      return 2;
    case kUint32:
    case kInt32:
    case kFloat32:
      return 4;
    case kUint64:
    case kInt64:
    case kFloat64:
      return 8;
    case kString:
    case kArray:
      return 0;
  }
  return 0;
}

template <typename T>
T number_at(FileBytes bytes, std::uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

std::string extents_text(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

}  // namespace

// Reads on from a position; every length is compared with the bytes that are left.
class GgufFile::Reader {
 public:
  Reader(FileBytes file, const std::string& name) : file_(file), name_(name) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return file_.size() - position_; }

  FileBytes take(std::uint64_t count, std::string_view what) {
    if (count > left()) {
      throw StartError(
          fmt::format("{}: {} at byte {} needs {} bytes, and the file has {} left: it is truncated or "
                      "damaged; fetch it again",
                      name_, what, position_, count, left()));
    }
    const FileBytes bytes = file_.subspan(position_, count);
    position_ += count;
    return bytes;
  }
  template <typename T>
  T number(std::string_view what) {
    return number_at<T>(take(sizeof(T), what), 0);
  }
  std::string_view string(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    const FileBytes bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  const FileBytes file_;
  const std::string& name_;
  std::uint64_t position_ = 0;
};

bool is_gguf(FileBytes file) {
  return file.size() >= kMagic.size() && std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

std::uint32_t gguf_type_id(std::string_view dtype) {
  const auto* found = std::ranges::find(kDataTypes, dtype, &DataType::name);
  CHECK(found != std::end(kDataTypes));
  return found->id;
}

std::string explain_gguf_type(std::string_view dtype) {
  const auto* found = std::ranges::find(kDataTypes, dtype, &DataType::name);
  if (found == std::end(kDataTypes) || found->instead.empty()) return "";
  return fmt::format("{}, which is not read; take a file of type {}", dtype, found->instead);
}

GgufFile::GgufFile(FileBytes file, std::string name) : file_(file), name_(std::move(name)) {
  Reader reader(file_, name_);
  if (!is_gguf(file_)) throw StartError(name_ + " is no GGUF file: it does not begin with \"GGUF\"");
  reader.take(kMagic.size(), "the magic");
  const auto version = reader.number<std::uint32_t>("the version");
  if (version != 0 && (version & 0xffff) == 0) {
    throw StartError(name_ + " is a big-endian GGUF file, which is not read: take one for little-endian machines");
  }
  if (version != 2 && version != 3) {
    throw StartError(fmt::format("{}: GGUF version {} is not read, only 2 and 3{}", name_, version,
                                 version == 1 ? "; convert it with a current llama.cpp" : ""));
  }
  const auto num_tensors = reader.number<std::uint64_t>("the number of tensors");
  const auto num_values = reader.number<std::uint64_t>("the number of keys");
  if (num_values > reader.left() / kLeastValueBytes || num_tensors > reader.left() / kLeastTensorBytes) {
    throw StartError(fmt::format("{}: {} keys and {} tensors do not fit into {} bytes: it is truncated or damaged",
                                 name_, num_values, num_tensors, file_.size()));
  }
  read_values(reader, num_values);
  read_tensors(reader, num_tensors);
}

void GgufFile::append_value(std::string_view key, std::string& out) const {
  const auto put = [&](const auto& number) { out.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  const Value& value = values_.at(key);
  put(std::uint64_t{key.size()});
  out += key;
  if (value.is_array) put(GgufType::kArray);
  put(value.type);
  if (value.is_array) put(value.count);
  out.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

void GgufFile::read_values(Reader& reader, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view key = reader.string("a key");
    if (key.empty() || key.size() > kMaxNameBytes) {
      throw StartError(fmt::format("{}: a key has {} bytes; 1 to {} may be", name_, key.size(), kMaxNameBytes));
    }
    const auto known = [&](std::uint32_t type) {
      if (type > static_cast<std::uint32_t>(GgufType::kFloat64)) {
        refuse_key(key, fmt::format("has the unknown type {}", type));
      }
      return static_cast<GgufType>(type);
    };
    Value value;
    value.type = known(reader.number<std::uint32_t>("a value's type"));
    if (value.type == GgufType::kArray) {
      value.is_array = true;
      value.type = known(reader.number<std::uint32_t>("an array's type"));
      if (value.type == GgufType::kArray) refuse_key(key, "is an array of arrays");
      value.count = reader.number<std::uint64_t>("an array's length");
    }
    const std::uint64_t size = GgufType::kString == value.type ? sizeof(std::uint64_t) : bytes_of(value.type);
    if (value.count > reader.left() / size) {
      refuse_key(key, fmt::format("has {} elements, and the file has {} bytes left", value.count, reader.left()));
    }
    const std::uint64_t begin = reader.position();
    if (value.type == GgufType::kString) {
      for (std::uint64_t j = 0; j < value.count; ++j) reader.string("a string");
    } else {
      reader.take(value.count * size, "a value");
    }
    value.bytes = file_.subspan(begin, reader.position() - begin);
    if (!values_.emplace(key, value).second) refuse_key(key, "is there twice");
  }
}

void GgufFile::read_tensors(Reader& reader, std::uint64_t count) {
  const std::uint64_t alignment = uint("general.alignment").value_or(kDefaultAlignment);
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    refuse_key("general.alignment", fmt::format("is {}; expected a power of two up to {}", alignment, kMaxAlignment));
  }
  struct Place {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  std::vector<Place> places;
  std::set<std::string_view> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view name = reader.string("a tensor's name");
    const auto refuse = [&](const std::string& what) {
      throw StartError(fmt::format("{}: tensor '{}' {}", name_, log_safe(name), what));
    };
    if (name.empty() || name.size() > kMaxNameBytes) refuse(fmt::format("has a name of {} bytes", name.size()));
    if (!names.insert(name).second) refuse("is there twice");
    const auto dims = reader.number<std::uint32_t>("a tensor's dimensions");
    if (dims > kMaxDims) refuse(fmt::format("has {} dimensions; at most {} may be", dims, kMaxDims));
    GgufTensor tensor{std::string(name), "", {}, {}};
    std::uint64_t elements = 1;
    for (std::uint32_t dim = 0; dim < dims; ++dim) {
      const auto extent = reader.number<std::uint64_t>("a tensor's extent");
      tensor.shape.insert(tensor.shape.begin(), extent);
      if (__builtin_mul_overflow(elements, extent, &elements) || elements > file_.size() * 16) {
        refuse(fmt::format("has the shape {}, which the file is too short for", extents_text(tensor.shape)));
      }
    }
    const auto id = reader.number<std::uint32_t>("a tensor's type");
    const DataType* type = data_type(id);
    if (type == nullptr) {
      refuse(fmt::format("has the type {}, {}", id,
                         id >= 97 ? "which is not of llama.cpp but of a variant (ik_llama.cpp?); take a file made for "
                                    "llama.cpp"
                                  : "which is unknown or was removed from GGUF; take a newer file"));
    }
    tensor.dtype = type->name;
    const std::uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % type->elements != 0) {
      refuse(
          fmt::format("has rows of {} numbers, which are no whole blocks of {} ({})", row, type->name, type->elements));
    }
    const std::uint64_t bytes = elements / type->elements * type->bytes;
    places.push_back({reader.number<std::uint64_t>("a tensor's offset"), bytes});
    tensors_.push_back(std::move(tensor));
  }
  const auto padded = [&](std::uint64_t bytes) { return (bytes + alignment - 1) & ~(alignment - 1); };
  const std::uint64_t data = padded(reader.position());
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto refuse = [&](const std::string& what) {
      throw StartError(fmt::format("{}: tensor '{}' {}", name_, log_safe(tensors_[i].name), what));
    };
    if (places[i].offset != expected) {
      refuse(
          fmt::format("lies at {}, where {} was expected: tensors overlap or leave a gap", places[i].offset, expected));
    }
    if (data > file_.size() || places[i].bytes > file_.size() - data ||
        places[i].offset > file_.size() - data - places[i].bytes) {
      refuse(fmt::format("ends beyond the file of {} bytes: it is truncated or damaged; fetch it again", file_.size()));
    }
    tensors_[i].data = file_.subspan(data + places[i].offset, places[i].bytes);
    expected += padded(places[i].bytes);
  }
}

void GgufFile::refuse_key(std::string_view key, const std::string& what) const {
  throw StartError(fmt::format("{}: key '{}' {}", name_, log_safe(key), what));
}

std::vector<std::string_view> GgufFile::keys() const {
  std::vector<std::string_view> out;
  for (const auto& [key, value] : values_) out.push_back(key);
  return out;
}

const GgufFile::Value* GgufFile::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const GgufFile::Value* GgufFile::find_scalar(std::string_view key, std::string_view expected) const {
  const Value* value = find(key);
  if (value != nullptr && value->is_array) refuse_key(key, fmt::format("is an array; expected {}", expected));
  return value;
}

std::optional<std::int64_t> GgufFile::integer_at(const Value& value, std::uint64_t index) const {
  using enum GgufType;
  switch (value.type) {
    case kUint8:
    case kBool:
      return number_at<std::uint8_t>(value.bytes, index);
    case kInt8:
      return number_at<std::int8_t>(value.bytes, index);
    case kUint16:
      return number_at<std::uint16_t>(value.bytes, index);
    case kInt16:
      return number_at<std::int16_t>(value.bytes, index);
    case kUint32:
      return number_at<std::uint32_t>(value.bytes, index);
    case kInt32:
      return number_at<std::int32_t>(value.bytes, index);
    case kInt64:
      return number_at<std::int64_t>(value.bytes, index);
    case kUint64: {
      const auto whole = number_at<std::uint64_t>(value.bytes, index);
      if (whole > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      return static_cast<std::int64_t>(whole);
    }
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const Value* value = find_scalar(key, "an integer");
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> whole = integer_at(*value, 0);
  if (!whole) refuse_key(key, "is no integer of 63 bits");
  return whole;
}

std::optional<std::uint64_t> GgufFile::uint(std::string_view key) const {
  const std::optional<std::int64_t> whole = integer(key);
  if (whole && *whole < 0) refuse_key(key, fmt::format("is {}; expected 0 or more", *whole));
  return whole ? std::optional(static_cast<std::uint64_t>(*whole)) : std::nullopt;
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const Value* value = find_scalar(key, "a number");
  if (value == nullptr) return std::nullopt;
  if (value->type == GgufType::kFloat32) return number_at<float>(value->bytes, 0);
  if (value->type == GgufType::kFloat64) return number_at<double>(value->bytes, 0);
  const std::optional<std::int64_t> whole = integer_at(*value, 0);
  if (!whole) refuse_key(key, "is no number");
  return static_cast<double>(*whole);
}

std::optional<bool> GgufFile::flag(std::string_view key) const {
  const Value* value = find_scalar(key, "true or false");
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kBool) refuse_key(key, "is neither true nor false");
  return number_at<std::uint8_t>(value->bytes, 0) != 0;
}

std::optional<std::string_view> GgufFile::text(std::string_view key) const {
  const Value* value = find_scalar(key, "a text");
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) refuse_key(key, "is no text");
  const FileBytes bytes = value->bytes.subspan(sizeof(std::uint64_t));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::optional<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::int64_t> out;
  out.reserve(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const std::optional<std::int64_t> whole = integer_at(*value, i);
    if (!whole) refuse_key(key, "is no array of integers of 63 bits");
    out.push_back(*whole);
  }
  return out;
}

std::optional<std::vector<float>> GgufFile::numbers(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kFloat32) refuse_key(key, "is no array of f32");
  std::vector<float> out(value->count);
  if (!out.empty()) std::memcpy(out.data(), value->bytes.data(), value->bytes.size());
  return out;
}

std::optional<std::vector<bool>> GgufFile::flags(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kBool) refuse_key(key, "is no array of true and false");
  std::vector<bool> out;
  for (std::uint64_t i = 0; i < value->count; ++i) out.push_back(number_at<std::uint8_t>(value->bytes, i) != 0);
  return out;
}

std::optional<std::vector<std::string_view>> GgufFile::texts(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) refuse_key(key, "is no array of texts");
  std::vector<std::string_view> out;
  out.reserve(value->count);
  Reader reader(value->bytes, name_);
  for (std::uint64_t i = 0; i < value->count; ++i) out.push_back(reader.string("a string"));
  return out;
}

}  // namespace quire::model
