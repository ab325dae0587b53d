#include "app/kv_events/msgpack.h"

#include <bit>

namespace quire::app {

MsgpackWriter& MsgpackWriter::nil() {
  byte(0xc0);
  return *this;
}

MsgpackWriter& MsgpackWriter::real(double value) {
  byte(0xcb);
  big_endian(std::bit_cast<std::uint64_t>(value), 8);
  return *this;
}

MsgpackWriter& MsgpackWriter::number(std::uint64_t value) {
  if (value < 0x80) {
    byte(static_cast<unsigned>(value));
    return *this;
  }
  const int log_bytes = value <= 0xff ? 0 : value <= 0xffff ? 1 : value <= 0xffffffff ? 2 : 3;
  byte(0xccu + static_cast<unsigned>(log_bytes));
  big_endian(value, 1 << log_bytes);
  return *this;
}

MsgpackWriter& MsgpackWriter::text(std::string_view value) {
  if (value.size() >= 32 && value.size() <= 0xff) {
    byte(0xd9);
    byte(static_cast<unsigned>(value.size()));
  } else {
    size(value.size(), 0xa0, 32, 0xda, 0xdb);
  }
  out_ += value;
  return *this;
}

MsgpackWriter& MsgpackWriter::array(std::size_t num_values) {
  size(num_values, 0x90, 16, 0xdc, 0xdd);
  return *this;
}

MsgpackWriter& MsgpackWriter::map(std::size_t num_pairs) {
  size(num_pairs, 0x80, 16, 0xde, 0xdf);
  return *this;
}

void MsgpackWriter::size(std::size_t value, unsigned fixed, std::size_t fixed_below, unsigned of_16, unsigned of_32) {
  if (value < fixed_below) return byte(fixed | static_cast<unsigned>(value));
  const bool small = value <= 0xffff;
  byte(small ? of_16 : of_32);
  big_endian(value, small ? 2 : 4);
}

void MsgpackWriter::big_endian(std::uint64_t value, int num_bytes) {
  for (int shift = 8 * (num_bytes - 1); shift >= 0; shift -= 8) byte(value >> shift & 0xff);
}

}  // namespace quire::app
