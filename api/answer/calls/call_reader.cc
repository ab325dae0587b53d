#include "api/answer/calls/call_reader.h"

#include <algorithm>

#include "api/answer/parts/marker_scanner.h"
#include "core/base/json.h"

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxCallDepth = 64;

// The value of a JSON string; none if the parser refuses it (half a surrogate pair).
std::optional<std::string> unquoted(const std::string& text) {
  const Result<json::Value> value = json::parse(text, kMaxCallDepth);
  if (!value || !value->is_string()) return std::nullopt;
  return value->get_string();
}

bool is_object(const std::string& text) {
  const Result<json::Value> value = json::parse(text, kMaxCallDepth);
  return value && value->is_object();
}

}  // namespace

CallReader::Said CallReader::take(char c, Deltas& out) {
  const std::size_t depth = walker_.depth();
  const bool was_in_key = walker_.in_key();
  const bool begins = depth == 1 && walker_.wants_value() && !is_space(c);
  if (!walker_.push(c)) {
    if (!certain_) return Said::kFault;
    return has_arguments_ ? Said::kDoneBefore : Said::kBroken;
  }
  if (depth == 1 && was_in_key) {
    if (walker_.in_key()) {
      key_ += c;
    } else if (!end_key()) {
      return Said::kFault;
    }
  } else if (depth == 1 && walker_.in_key()) {
    key_.clear();
  }
  return go_on(c, depth, begins, out);
}

CallReader::Said CallReader::go_on(char c, std::size_t depth_before, bool begins, Deltas& out) {
  if (begins && !begin_value(c, out)) return Said::kFault;
  if (in_value_) {
    if (streams_arguments_) {
      out.add(Delta::Kind::kArguments, {&c, 1}, call_);
    } else {
      value_ += c;
    }
    const bool ends = !begins && walker_.depth() == 1 && walker_.after_value() && (depth_before == 2 || c == '"');
    if (ends && !end_value(out)) return Said::kFault;
  }
  if (!walker_.complete()) return Said::kMore;
  if (!name_) return Said::kFault;
  if (!certain_) {
    arguments_ = "{}";
    emit(out);
  }
  return Said::kDone;
}

bool CallReader::end_key() {
  if (name_is_key_ && !name_ && known(key_)) {
    name_ = key_;
    member_ = Member::kArguments;
    return true;
  }
  if (key_ == "name" || key_ == "tool_name") {
    member_ = Member::kName;
    return !name_ || certain_;
  }
  if (key_ == "arguments" || key_ == "parameters") {
    member_ = Member::kArguments;
    return !has_arguments_ || certain_;
  }
  member_ = Member::kOther;
  return certain_ || key_ == "id" || key_ == "type" || key_ == "index" || key_ == "tool_call_id";
}

bool CallReader::begin_value(char c, Deltas& out) {
  if (certain_ || member_ == Member::kOther)
    return true;  // ignored, as is every member behind the arguments of a certain call
  if (member_ == Member::kArguments && c == 'n') return true;  // null: no arguments
  if (c != '"' && (c != '{' || member_ == Member::kName)) return false;
  in_value_ = true;
  value_.clear();
  if (c == '{' && name_) {
    streams_arguments_ = true;
    be_certain(out);
  }
  return true;
}

// Ends a name or arguments; value_ holds them unless they were emitted as they arrived.
bool CallReader::end_value(Deltas& out) {
  in_value_ = false;
  if (streams_arguments_) {
    streams_arguments_ = false;
    has_arguments_ = true;
    return true;
  }
  if (member_ == Member::kName) {
    name_ = unquoted(value_);
    if (!name_ || !known(*name_)) return false;
  } else {
    arguments_ = value_[0] == '{' ? std::optional(value_) : unquoted(value_);
    if (!arguments_ || !is_object(*arguments_)) return false;
    has_arguments_ = true;
  }
  if (name_ && arguments_) emit(out);
  return true;
}

void CallReader::be_certain(Deltas& out) {
  certain_ = true;
  ++num_calls_;
  out.add(Delta::Kind::kCall, *name_, call_);
}

void CallReader::emit(Deltas& out) {
  be_certain(out);
  out.add(Delta::Kind::kArguments, *arguments_, call_);
  arguments_.reset();
  has_arguments_ = true;
}

bool CallReader::known(const std::string& name) const {
  return std::ranges::find(tools_, name, &CallableTool::name) != tools_.end();
}

}  // namespace quire::api::chat
