// One GGUF file: its metadata by key, and the place of each tensor's data.
// Shape   magic, version, counts; keys with values; tensors with name, extents, type and offset; then data, each tensor
//         aligned. Little endian.
// Owner   views into the file's bytes, which must outlive the object.
// Thread  one, at start; reading: any.
// Fails   StartError with the file's name and the key or tensor: versions other than 2 and 3, counts and lengths that
//         the file is too short for, duplicate keys and names, nested arrays, unknown types, extents that overflow or
//         are no whole blocks, offsets that overlap or leave gaps, data that ends early. A value of another type than
//         asked for is one, too.
// Source  ggml's description of GGUF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/source/mapped_file.h"

namespace quire::model {

// A type of values in the metadata; the numbers are GGUF's.
enum class GgufType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

struct GgufTensor {
  std::string name;
  std::string dtype;                 // as ggml calls it: "F32", "Q4_K"
  std::vector<std::uint64_t> shape;  // outputs first: [N, K]; the file has the extents in the other order
  FileBytes data;
};

class GgufFile {
 public:
  GgufFile(FileBytes file, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in file order
  bool has(std::string_view key) const { return values_.contains(key); }
  // All keys, ascending.
  std::vector<std::string_view> keys() const;

  // Values of a key; nullopt: the file has no such key. Any type of integers is read as long as the value fits, and a
  // scalar as an array of one.
  std::optional<std::uint64_t> uint(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<float>> numbers(std::string_view key) const;
  std::optional<std::vector<bool>> flags(std::string_view key) const;
  std::optional<std::vector<std::string_view>> texts(std::string_view key) const;

  // A key and its value as bytes of a file, behind those of `out`.
  void append_value(std::string_view key, std::string& out) const;

  [[noreturn]] void refuse_key(std::string_view key, const std::string& what) const;

 private:
  // A value where it lies in the file: of an array its elements.
  struct Value {
    GgufType type = GgufType::kUint8;  // of an element
    bool is_array = false;
    std::uint64_t count = 1;
    FileBytes bytes;
  };
  class Reader;

  void read_values(Reader& reader, std::uint64_t count);
  void read_tensors(Reader& reader, std::uint64_t count);
  const Value* find(std::string_view key) const;
  const Value* find_scalar(std::string_view key, std::string_view expected) const;
  std::optional<std::int64_t> integer_at(const Value& value, std::uint64_t index) const;

  const FileBytes file_;
  const std::string name_;
  std::map<std::string_view, Value> values_;
  std::vector<GgufTensor> tensors_;
};

// True if the bytes begin as a GGUF file does.
bool is_gguf(FileBytes file);

// GGUF's number of a tensor's type, which is known.
std::uint32_t gguf_type_id(std::string_view dtype);

// For tensors whose type quire does not read: "IQ3_S, which is not read; take a file of type Q3_K". Empty: it is read.
std::string explain_gguf_type(std::string_view dtype);

}  // namespace quire::model
