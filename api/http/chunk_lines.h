// Checks the lines in front of chunks before Beast parses them: Beast reads a line end inside quotes as a part of an
// extension, other parsers as the end of the line (request smuggling). Extensions are ignored (RFC 9112, 7.1.1), within
// limits.
// Shape   a line has at most 15 hex digits and 256 bytes of extensions, and ends with CRLF; a body has at most 4096
//         bytes of extensions.
// Owner   the reader of one body.
// Thread  one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quire::api::http {

class ChunkLines {
 public:
  // `rest` are the next bytes of a chunked body. Returns the number of them that the parser may get; 0: the line is
  // incomplete; none: it is not a valid chunk line.
  std::optional<std::size_t> allow(std::string_view rest);
  // Called when the parser has taken `bytes` of them.
  void taken(std::size_t bytes);

 private:
  bool take_extensions(std::string_view text);

  bool first_ = true;
  bool last_ = false;          // only trailers follow
  std::uint64_t ahead_ = 0;    // bytes of a checked line and its chunk that are not taken yet
  std::size_t num_bytes_ = 0;  // of extensions in this body
};

}  // namespace quire::api::http
