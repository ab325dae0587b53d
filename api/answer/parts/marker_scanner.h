// Finds a marker in text that arrives byte by byte, and drops the white space in front of it.
// Shape   the joined output is the text before the marker without its trailing white space (at most 64 bytes of it are
//         held and dropped), or all text if no marker comes.
// Owner   one per stream.
// Thread  one at a time.
// Fails   never.
// Source  Knuth, Morris and Pratt 1977.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quire::api::chat {

// JSON's white space, which is also what models put around their markers.
inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

class MarkerScanner {
 public:
  // `skip_space`: white space at the beginning of the text is dropped, too.
  explicit MarkerScanner(std::string_view marker, bool skip_space = false);

  // Appends to `out` all text that cannot belong to a marker. True: the marker is complete, and the scanner looks for
  // the next one.
  bool take(char c, std::string& out);
  // Appends the held text: the text has ended without a marker.
  void finish(std::string& out);
  const std::string& dropped() const { return dropped_; }  // white space in front of the last complete marker
  void skip_space() { skips_space_ = true; }               // drops white space at the beginning of the next text

 private:
  // Emits a partial match but for its last `keep` bytes.
  void give_up_marker(std::size_t keep, std::string& out);

  std::string marker_;
  std::vector<std::size_t> borders_;  // [i]: bytes of marker_ that both begin and end its first i + 1, fewer than these
  std::size_t matched_ = 0;           // matched bytes of marker_
  std::string space_;                 // held white space before them
  std::string dropped_;
  bool skips_space_;
};

}  // namespace quire::api::chat
