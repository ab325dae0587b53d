// MessagePack, written front to back into a string: as much of it as KV events have. Numbers take the fewest bytes.
// Shape   an array or a map is its size and then its values: the caller writes as many.
// Owner   a view of the caller's string.
// Fails   never: sizes below 2^32 are the caller's to keep.
// Source  the MessagePack specification.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::app {

class MsgpackWriter {
 public:
  explicit MsgpackWriter(std::string& out) : out_(out) {}

  MsgpackWriter& nil();
  MsgpackWriter& real(double value);
  MsgpackWriter& number(std::uint64_t value);
  MsgpackWriter& text(std::string_view value);
  MsgpackWriter& array(std::size_t size);
  MsgpackWriter& map(std::size_t size);

 private:
  void big_endian(std::uint64_t value, int num_bytes);
  // A size that fits into the type's own byte, or behind one of two others in 16 or 32 bits.
  void size(std::size_t value, unsigned fixed, std::size_t fixed_below, unsigned of_16, unsigned of_32);
  void byte(unsigned value) { out_ += static_cast<char>(value); }

  std::string& out_;
};

}  // namespace quire::app
