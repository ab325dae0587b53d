// Reads a JSON body by tables of fields.
// Rules   a null field counts as not given. A field that is in no table is accepted, ignored and listed; a repeated
//         field is refused. Fields that depend on each other are checked after all are read: settle.h.
// Thread  any; pure functions of the body and the Services.
// Fails   kInvalidArgument naming the field. Nothing beyond the limits is allocated.
#pragma once

#include <bitset>
#include <span>
#include <string>
#include <string_view>

#include "api/fields/field.h"
#include "api/fields/generation_request.h"
#include "api/services/services.h"
#include "core/base/result.h"

namespace quire::api {

// The set of fields that a body has, except null ones.
class Given {
 public:
  bool operator()(std::string_view name) const;

 private:
  friend class BodyReader;
  std::size_t bit_of(std::string_view name) const;
  std::span<const Field> own_;
  std::bitset<128> bits_;
};

// Reads into `request`, which must have the type that `own` was made for. Its model, sampling parameters, repetition
// penalty and default_max_tokens start from the server's.
Result<Given> read_body(const std::string& body, Endpoint endpoint, std::span<const Field> own,
                        const Services& services, GenerationRequest& request);

// Records an unknown field, which is ignored.
void pass_over(GenerationRequest& request, std::string_view path);
// Records a known field without effect here: a hint, or a tool that a server would run.
void leave_out(GenerationRequest& request, std::string_view path);
// The value of X-Quire-Warnings, from both lists; empty: the header is left out.
std::string warnings_of(const GenerationRequest& request);

}  // namespace quire::api
