// The distribution that draw() samples from, and log probabilities, in plain f64 code for tests of the sampler.
// Shape   logits [V] -> probabilities [V], 0 for tokens that a filter dropped; empty if draw() returns finite = false.
// Steps   sampler.h and filters.h, without their floors: sorted, summed and compared in f64.
// Thread  any.
#pragma once

#include <span>
#include <vector>

#include "core/sample/params.h"

namespace quire::sample {

std::vector<double> reference_distribution(std::span<const float> logits, const Params& params);

// log_softmax of the logits: [V], -inf for a masked token; empty if draw() returns finite = false.
std::vector<double> reference_logprobs(std::span<const float> logits);

}  // namespace quire::sample
