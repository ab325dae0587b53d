// Beast's parser behind the framing guard: parses header fields and decodes the body.
// Shape   put() takes the whole head that the guard has accepted, then the bytes after it, in any pieces.
// Owner   the session, for one request.
// Fails   a Refusal; the connection must be closed after its reply.
// Source  Boost.Beast 1.81. Chunk lines are checked first (chunk_lines.h), because parsers differ in extensions.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/framing_guard.h"

namespace quire::api::http {

class BodyReader {
 public:
  explicit BodyReader(const FramingLimits& limits);
  ~BodyReader();
  BodyReader(const BodyReader&) = delete;
  BodyReader& operator=(const BodyReader&) = delete;

  struct Taken {
    std::size_t bytes = 0;  // taken; put() needs the others again, with more, or if done(), they are the next request's
    std::optional<Refusal> refusal;
  };
  Taken put(std::string_view bytes);
  bool done() const;
  std::size_t body_bytes() const;  // so far

  // Header fields. To be read after the head and before the body, so that trailers cannot change them.
  std::string field(std::string_view name) const;
  bool has(std::string_view name) const;
  bool repeats(std::string_view name) const;        // the field occurs more than once
  std::string all_of(std::string_view name) const;  // all values of that name, joined by commas
  std::string take_body();

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  const std::size_t max_body_bytes_;
};

}  // namespace quire::api::http
