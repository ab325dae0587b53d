// Turns Python literals, or the values of Gemma's calls, into JSON byte by byte.
//   city="Oslo", days=[1, 2], now=True)     →  {"city": "Oslo", "days": [1, 2], "now": true}
//   city:<|"|>Oslo<|"|>,days:[1,2]}         →  the same
// Shape   numbers, True, False and None in Python's or JSON's spelling, strings, also raw ones and several in a row,
//         lists, tuples, dicts. A word without quotes is a string. JSON is read, too.
// Owner   one per value.
// Thread  one at a time.
// Fails   take(): kFault, also if more than 64 lists and objects would be open. Bytes that are held then are emitted as
//         they are, unless nothing was emitted before.
// Source  The Python Language Reference 3.13, 2.4; models write what they were trained on, so that more is read here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/calls/arguments_reader.h"

namespace quire::api::chat {

class LiteralReader final : public ArgumentsReader {
 public:
  // Reads members up to `close`, ) or }, with `separator`, = or :, behind keys. `quote`: the mark around strings beside
  // ' and "; empty: none.
  LiteralReader(char close, char separator, std::string_view quote);

  ArgumentsState take(char c, std::string& json) override;

  // JSON of one whole literal; empty: it is none.
  static std::string json_of(std::string_view literal);

 private:
  enum class State : std::uint8_t {
    kKey,        // expects a key or the end
    kBareKey,    // in one without quotes
    kSeparator,  // expects the separator
    kValue,
    kFirstItem,  // a value, or the end of the list
    kString,
    kEscape,
    kHex,
    kMark,         // matching the quote mark that begins a string
    kBare,         // in a number or a word
    kAfterEmpty,   // behind two quotes: an empty string, or the beginning of a string in triple quotes
    kAfterString,  // a string in quotes, which may go on in others
    kAfter,
  };
  struct Level {
    char json_close = '}';  // } of members, ] of a list
    char close = '}';       // the byte that ends it here
    bool has_parts = false;
  };
  LiteralReader() : levels_{{']', ']', false}}, state_(State::kFirstItem), is_single_(true) {}

  ArgumentsState take_key(char c, std::string& json);
  ArgumentsState take_separator(char c, std::string& json);
  ArgumentsState take_value(char c, std::string& json);
  ArgumentsState take_mark(char c, std::string& json);
  ArgumentsState take_string(char c, std::string& json);
  ArgumentsState take_escape(char c, std::string& json);
  ArgumentsState take_hex(char c, std::string& json);
  ArgumentsState take_bare(char c, std::string& json);
  ArgumentsState take_after_string(char c, std::string& json);
  ArgumentsState take_after(char c, std::string& json);
  ArgumentsState fault(std::string_view held, std::string& json);
  ArgumentsState open(char json_close, char close, std::string& json);
  ArgumentsState close(std::string& json);
  ArgumentsState begin_string(std::string_view quote, std::string& json);
  void go_on_string(std::string_view quote);
  ArgumentsState end_string(std::string& json);
  void write(std::string_view text, std::string& json);
  bool is_arguments() const { return levels_.size() == 1 && !is_single_; }

  std::vector<Level> levels_;
  State state_ = State::kKey;
  bool is_single_ = false;  // json_of(): the outermost level is no list, but one value
  char separator_ = ':';    // behind the keys of the arguments; behind those of objects in them it is a colon
  std::string mark_;        // the quote mark beside ' and "; may be empty
  std::string quote_;       // around the string being read
  std::size_t matched_ = 0;
  bool is_key_ = false;   // the string is a key
  bool is_empty_ = true;  // the string, so far
  std::string key_;
  std::string bare_;
  char escape_ = 'u';
  std::string hex_;
  unsigned long half_ = 0;    // the first half of a surrogate pair that ended a key so far; 0: none
  std::size_t half_end_ = 0;  // size of the key then
  bool is_raw_ = false;       // the string's backslashes are its own
};

// A text as a JSON string's inside, escaped where JSON requires it.
void append_escaped(std::string_view text, std::string& json);

}  // namespace quire::api::chat
