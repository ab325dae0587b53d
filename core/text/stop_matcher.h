// Ends an answer at the first stop string, and never returns any part of a stop string.
// Shape   the texts of push() and finish(), joined, are the answer, cut before the stop string.
// Owner   one per stream.
// Thread  one at a time.
// Fails   never. Empty stop strings are ignored.
// Source  Knuth, Morris & Pratt 1977, once for each stop string: linear time, and little memory for hostile stop
//         strings.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::text {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);

  struct Step {
    std::string text;  // safe to send: no stop string begins in it
    bool stopped = false;
    std::string stop;  // the stop string that was found
  };

  // Adds text. The stop string that is complete first wins, independent of how the text is split into pushes; of
  // several that end at the same byte the longest, so that no part of any is sent. After a stop, every push returns an
  // empty, stopped Step.
  Step push(std::string_view text);

  // True if a stop string would be complete after `text`, which was not pushed yet. The texts of several calls are
  // concatenated, until push() gets a text that is not empty.
  bool would_stop(std::string_view text);

  // Returns the held text; nothing after a stop.
  std::string finish();

 private:
  struct Stop {
    std::string text;
    // border[n]: length of the longest proper prefix of text[0, n) that is also its suffix.
    std::vector<std::size_t> border;
    std::size_t matched = 0;  // length of the prefix of text that ends the pushed text
    std::size_t ahead = 0;    // the same, with the texts of would_stop() added
  };
  static bool advance(const Stop& stop, std::size_t& matched, char byte);  // true: the stop string is complete

  std::vector<Stop> stops_;  // longest first
  // End of the pushed text: the first sent_ bytes were returned, a stop string may begin in the rest.
  std::string held_;
  std::size_t sent_ = 0;
  std::optional<std::string> stopped_by_;
};

}  // namespace quire::text
