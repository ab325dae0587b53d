// A streamed completion as bytes with their arrival times, and its parser. Bytes are recorded while the clock runs and
// parsed after it has stopped: parsing takes CPU time that client and server share.
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
  unsigned code = 0;  // HTTP status; 0: no answer
  std::string error;  // the error that interrupted the connection; empty: it ended normally
  double sent_s = 0;  // on the clock of `reads`
  std::string body;   // without HTTP framing
  std::vector<std::pair<std::size_t, double>> reads;  // (length of the body, time at which it had that length)
};

// `tokens`: the number of tokens asked for.
Answer read_answer(const Transcript& transcript, std::uint32_t tokens);

}  // namespace quire::tools
