// A body as a table of fields reads it.
// Rules   null is "not given". A field that no table knows is accepted, passed over and listed; one given twice is
//         refused. What fields must be together is settled after all are read: settle.h.
// Thread  any; pure functions of the body and the Services.
// Fails   kInvalidArgument naming the field. Nothing is allocated past the limits.
#pragma once

#include <bitset>
#include <span>
#include <string>
#include <string_view>

#include "api/openai/fields/field.h"
#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

// Which fields a body holds, and not as null.
class Given {
 public:
  bool operator()(std::string_view name) const;

 private:
  friend class BodyReader;
  std::size_t bit_of(std::string_view name) const;
  std::span<const Field> own_;
  std::bitset<128> bits_;
};

// Into `request`, which must be the type that `own` was made for. Its model, sampling and limits begin as the server's.
Result<Given> read_body(const std::string& body, Endpoint endpoint, std::span<const Field> own,
                        const Services& services, GenerationRequest& request);

// Remembers a field that is accepted and of no effect.
void pass_over(GenerationRequest& request, std::string_view path);
// Remembers a field that is known and has no effect here: a hint, a tool that a server would run.
void leave_out(GenerationRequest& request, std::string_view path);
// The text of X-Quire-Warnings, of both; empty: there is no such header.
std::string warnings_of(const GenerationRequest& request);

}  // namespace quire::api::openai
