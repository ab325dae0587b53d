// Finds markers in text that arrives byte by byte, and drops the white space in front of them.
// Shape   the joined output is the text before the marker without its trailing white space (at most 64 bytes of it are
//         held and dropped), or all text if no marker comes. No marker begins with another one.
// Owner   one per stream.
// Thread  one at a time.
// Fails   never. Time is linear in the text, times the markers' length.
// Source  ours.
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
  // `skip_space`: white space at the beginning of the text is dropped, too. Empty markers are left out.
  explicit MarkerScanner(std::string_view marker, bool skip_space = false)
      : MarkerScanner(std::vector<std::string_view>{marker}, skip_space) {}
  explicit MarkerScanner(const std::vector<std::string_view>& markers, bool skip_space = false);

  // Appends to `out` all text that cannot belong to a marker. True: a marker is complete, and the scanner looks for the
  // next one.
  bool take(char c, std::string& out);
  // Appends the held text: the text has ended without a marker.
  void finish(std::string& out);
  const std::string& found() const { return found_; }      // the last complete marker
  const std::string& dropped() const { return dropped_; }  // white space in front of it
  void skip_space() { skips_space_ = true; }               // drops white space at the beginning of the next text

 private:
  void emit(char c, std::string& out);

  std::vector<std::string> markers_;
  std::string held_;   // the beginning of a marker
  std::string space_;  // held white space before it
  std::string found_;
  std::string dropped_;
  bool skips_space_;
};

}  // namespace quire::api::chat
