// A value, or an Error: a normal failure that the caller has to handle.
// Fails   value() of an error is our bug: CHECK. Broken invariants are CHECKs, start-up problems are StartError.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "core/base/check.h"

namespace quire {

// Every reason for which a request is rejected or fails. api/wire/errors.cc maps each to one HTTP status; every Code is
// produced by a test.
enum class Code {
  kInvalidArgument,   // a field is wrong: Error::param names it
  kUnauthorized,      // missing or wrong API key
  kForbidden,         // the API key does not permit this
  kNotFound,          // no such route, model or request
  kMethodNotAllowed,  // the route exists, the verb does not
  kTooLarge,          // the body passes its limit
  kHeaderTooLarge,    // header bytes or fields pass their limit
  kUnsupportedMedia,  // content type or encoding we do not read
  kTimeout,           // the client took too long to send, or the work exceeds its time limit
  kQueueFull,         // no admission credit left: try again later
  kUnavailable,       // loading, draining or failed
  kDeadline,          // the request's deadline passed before its answer was complete
  kOutOfBlocks,       // no KV block is free: the scheduler tries a later step
  kCancelled,         // the caller disconnected
  kInternal,          // a row's logits were not finite, or a similar fault of ours that affects one request only
};

struct Error {
  Code code = Code::kInternal;
  std::string message;           // for the caller: what was asked, what the limit is, what to do
  std::string param;             // the field at fault, as a dotted path; empty if there is none
  int retry_after_s = 0;         // with kQueueFull and kUnavailable: seconds until it is worth trying again
  const char* reason = nullptr;  // a literal for programs, more specific than the status
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }

  T& value() & {
    require_ok();
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    require_ok();
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    require_ok();
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    CHECK(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  void require_ok() const {
    if (!ok()) check_failed(__FILE__, __LINE__, "Result::value() of an error", std::get_if<1>(&state_)->message);
  }

  std::variant<T, Error> state_;
};

struct Done {};  // the value of a Result that carries none

// Rounds up to whole seconds for Retry-After, 1 to 60.
inline int whole_retry_s(double seconds) {
  if (!(seconds > 1.0)) return 1;
  if (seconds > 59.0) return 60;
  const int down = static_cast<int>(seconds);
  return down < seconds ? down + 1 : down;
}

inline Error invalid(std::string param, std::string message) {
  return Error{Code::kInvalidArgument, std::move(message), std::move(param), 0};
}

}  // namespace quire
