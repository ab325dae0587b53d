// Beast's parser behind the framing guard: it reads the fields and decodes the body.
// Shape   put() takes the head that the guard passed, whole, then what follows, in any pieces.
// Owner   the session, for one request.
// Fails   a Refusal; the connection must be closed after its reply.
// Source  Boost.Beast 1.81. Chunk extensions are refused: parsers differ in them, and nobody needs them.
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
    std::size_t bytes = 0;  // the rest is wanted again, with more behind it, or belongs to the next request
    std::optional<Refusal> refusal;
  };
  Taken put(std::string_view bytes);
  bool done() const;
  std::size_t body_bytes() const;  // so far

  // After the head and before the body: trailers must not change what the head said.
  std::string field(std::string_view name) const;
  bool has(std::string_view name) const;
  bool repeats(std::string_view name) const;        // it came more than once
  std::string all_of(std::string_view name) const;  // every one of that name, with commas between them
  std::string take_body();

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  const std::size_t max_body_bytes_;
};

}  // namespace quire::api::http
