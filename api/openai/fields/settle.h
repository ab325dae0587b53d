// Once all fields are read: what they must be together, and what they mean for each other.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the field that has no place beside another.
#pragma once

#include <cstddef>

#include "api/openai/fields/read_body.h"
#include "api/openai/generation/request.h"
#include "api/services.h"
#include "core/base/result.h"

namespace quire::api::openai {

Result<Done> settle(GenerationRequest& request, std::size_t num_prompts, const Services& services, const Given& given);

}  // namespace quire::api::openai
