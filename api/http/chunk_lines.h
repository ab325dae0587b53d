// The lines in front of chunks, checked before Beast sees them: Beast takes a line's end inside quotes for a part of an
// extension, and other parsers take it for the end. Extensions are passed over (RFC 9112, 7.1.1) as long as they are
// few.
// Shape   a line has 15 digits at most, 256 bytes of extensions, and ends with CRLF; a body has 4096 bytes of
//         extensions.
// Owner   the reader of one body.  Thread  one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quire::api::http {

class ChunkLines {
 public:
  // `rest` are the next bytes of a chunked body. The number of them that a parser may have; 0: the line is not whole;
  // empty: it is no line of a chunk.
  std::optional<std::size_t> allow(std::string_view rest);
  // The parser has taken so many of them.
  void taken(std::size_t bytes);

 private:
  bool take_extensions(std::string_view text);

  bool first_ = true;
  bool last_ = false;          // what follows are trailers
  std::uint64_t ahead_ = 0;    // bytes of a line that was seen, and of its chunk
  std::size_t num_bytes_ = 0;  // of extensions
};

}  // namespace quire::api::http
