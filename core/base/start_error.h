// Cannot start: a bad configuration, model file or device. Thrown while starting, caught only in main(): exit code 2.
// Source  ours: one of four kinds of error (Result, CHECK, StartError, device failure).
#pragma once

#include <stdexcept>
#include <string>

namespace quire {

class StartError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace quire
