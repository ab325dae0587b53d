// Finds a marker in text that comes byte by byte, and drops the white space in front of it.
// Shape   what is given out, joined, is the text before the marker without its last white space (64 bytes of it at most
//         are looked at), or all of it where no marker comes. A marker's first byte occurs in it once.
// Owner   one per stream.
// Thread  one at a time.
// Fails   never.
// Source  ours: markers are short and begin like nothing else, so that no table of borders is needed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quire::api::chat {

// JSON's, which is also what models put around their markers.
inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

class MarkerScanner {
 public:
  // With skip_space the text's first white space is dropped, too.
  explicit MarkerScanner(std::string_view marker, bool skip_space = false);

  // Appends to `out` what is certain not to belong to the marker. True: the marker is complete, and the scanner is as
  // new.
  bool take(char c, std::string& out);
  // What is left where the text ends: no marker came.
  void finish(std::string& out);
  const std::string& dropped() const { return dropped_; }  // before the marker that was complete last
  void skip_space() { skips_space_ = true; }               // in what comes next

 private:
  void give_up_marker(std::string& out);

  std::string marker_;
  std::size_t matched_ = 0;  // so many of its bytes
  std::string space_;        // before these
  std::string dropped_;
  bool skips_space_;
};

}  // namespace quire::api::chat
