// The law that draw() samples from, and log probabilities, in f64 and written as plainly as can be: what tests compare
// the sampler with.
// Shape   logits [V] -> probabilities [V], 0 where a filter dropped the token; empty where draw() says finite = false.
// Steps   sampler.h and filters.h, without their floors: sorted, summed and compared in f64.
// Thread  any.
#pragma once

#include <span>
#include <vector>

#include "core/sample/params.h"

namespace quire::sample {

std::vector<double> reference_law(std::span<const float> logits, const Params& params);

// log_softmax of the logits: [V], -inf for a masked token; empty where draw() says finite = false.
std::vector<double> reference_logprobs(std::span<const float> logits);

}  // namespace quire::sample
