// A reason to refuse a request before it is completely read, and the message for its client.
// Source  RFC 9110 section 15.5; errors.cc maps a fault to its status.
#pragma once

#include <cstdint>
#include <string>

namespace quire::api::http {

enum class Fault : std::uint8_t {
  kMalformed,
  kHeadTooLarge,
  kBodyTooLarge,
  kUnknownExpectation,
  kUnsupportedVersion,
  kTooSlow,
};

struct Refusal {
  Fault fault;
  std::string message;
};

}  // namespace quire::api::http
