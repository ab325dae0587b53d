// A streamed completion as bytes and the times at which they came, and what they say. Recorded while the clock runs, read
// after it has stopped: reading takes the client's CPU, which is the server's as well.
// Shape   server-sent events, one `data:` line each: choices, a usage, [DONE].
// Thread  any; pure.
// Source  the WHATWG's HTML standard, 9.2 (server-sent events); OpenAI's completions API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench/load.h"

namespace quire::tools {

struct Transcript {
  unsigned code = 0;                                  // the answer's status; 0: there was none
  std::string error;                                  // what broke off the connection; empty: it came to its end
  double sent_s = 0;                                  // on the clock of `reads`
  std::string body;                                   // without the framing of HTTP
  std::vector<std::pair<std::size_t, double>> reads;  // so much of the body was there by then
};

// `tokens`: so many were asked for.
Answer read_answer(const Transcript& transcript, std::uint32_t tokens);

}  // namespace quire::tools
