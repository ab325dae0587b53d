// Writer of MessagePack into a string: only the types that KV events use, numbers in the fewest bytes.
// Shape   an array or a map is its size and then its values; the caller writes that many.
// Owner   borrows the caller's string.
// Fails   never; the caller keeps sizes below 2^32.
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
  // Writes a size: in the type byte `fixed` if below `fixed_below`, else after the type byte for 16 or 32 bits.
  void size(std::size_t value, unsigned fixed, std::size_t fixed_below, unsigned of_16, unsigned of_32);
  void byte(unsigned value) { out_ += static_cast<char>(value); }

  std::string& out_;
};

}  // namespace quire::app
