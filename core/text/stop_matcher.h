// Ends an answer at the first stop string, and never lets any part of it out.
// Shape   push() texts joined with finish() are the answer, cut before the stop string.
// Owner   one per stream.
// Thread  one at a time.
// Fails   never. Empty stop strings are ignored.
// Source  Knuth, Morris & Pratt 1977, once for each stop string: linear in the text, and small for hostile stop strings.
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
    std::string stop;  // which one
  };

  // The stop string that is complete first wins, wherever the text was cut into pushes; of several that are complete with
  // the same byte the longest, so that no part of any is sent. Once stopped, every further push is empty and stopped.
  Step push(std::string_view text);

  // Whether a stop string would be complete with this text too, which is going to be pushed unless the answer ends. Texts of
  // several calls follow each other, until something is pushed.
  bool would_stop(std::string_view text);

  // What was held back; nothing after a stop.
  std::string finish();

 private:
  struct Stop {
    std::string text;
    std::vector<std::size_t> border;  // border[n]: the longest proper prefix of text[0, n) that also ends it
    std::size_t matched = 0;          // so much of text ends what was pushed
    std::size_t ahead = 0;            // and what would_stop() was asked about
  };
  static bool advance(const Stop& stop, std::size_t& matched, char byte);  // true: complete

  std::vector<Stop> stops_;  // longest first
  std::string held_;         // the end of what was pushed; from sent_ on, a stop string may have begun in it
  std::size_t sent_ = 0;
  std::optional<std::string> stopped_by_;
};

}  // namespace quire::text
