// Reads one call that is written as a JSON object, {"name": ..., "arguments": {...}}, byte by byte.
// Shape   a call is certain once its name is one of `tools` and its arguments begin; from there on its arguments are told as
//         they are written. "parameters" is as good as "arguments", before or behind the name; a call without any has {}, and a
//         string there is read as the JSON that it holds. Members "id" and "type" are passed over; any other, before the
//         call is certain, makes it none.
// Owner   one per object.
// Thread  one at a time.
// Fails   take(): kFault, this is no call, and nothing was told; kBroken, its arguments stopped being JSON after they were
//         told in part.
// Source  Hermes, Llama 3 and Mistral models all write such objects; what is around them is call_parser.h's.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "api/chat/answer/answer_parts.h"
#include "api/chat/answer/json_walker.h"

namespace quire::api::chat {

class CallReader {
 public:
  enum class Said {
    kMore,
    kDone,        // the byte ended the object
    kDoneBefore,  // the call is whole, but the byte is none of its object
    kFault,
    kBroken,
  };

  // `num_calls`: this one's number, counted up once it is certain. Both outlive it.
  CallReader(std::span<const std::string> tools, std::size_t& num_calls)
      : tools_(tools), num_calls_(num_calls), call_(num_calls) {}

  Said take(char c, Deltas& out);  // from the object's { on; after anything but kMore no more
  bool certain() const { return certain_; }

 private:
  enum class Member { kName, kArguments, kOther };

  Said go_on(char c, std::size_t depth_before, bool begins, Deltas& out);
  bool end_key();
  bool begin_value(char c, Deltas& out);
  bool end_value(Deltas& out);
  void be_certain(Deltas& out);
  void tell(Deltas& out);
  bool known(const std::string& name) const;

  std::span<const std::string> tools_;
  std::size_t& num_calls_;
  std::size_t call_;
  JsonWalker walker_;
  Member member_ = Member::kOther;
  std::string key_;
  bool in_value_ = false;      // of a name or arguments that are an object or a string
  std::string value_;          // its bytes, unless they are told at once
  bool told_at_once_ = false;  // the value is the arguments of a certain call
  std::optional<std::string> name_;
  std::optional<std::string> arguments_;  // whole, and not told yet
  bool has_arguments_ = false;            // whole
  bool certain_ = false;
};

}  // namespace quire::api::chat
