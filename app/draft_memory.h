// What drafts take besides the target: for the memory plan, from headers alone, before anything is packed.
//   weights of heads and draft models · their K and V under the pool's block ids, and what is remembered of these rows ·
//   scratch blocks that guesses stand in · the target's states of a step, captured for a head
// Not counted: the row buffers of a step, as the target's are not; what text methods remember; a datastore, which is mapped.
// Thread  any, while starting.
// Fails   StartError: a head or draft model that is not there, or whose config or tensors' headers cannot be read.
#pragma once

#include <string>

#include "app/config.h"
#include "app/loaded_model.h"
#include "app/memory_plan.h"

namespace quire::app {

DraftMemory draft_memory(const Config& config, const ReadModel& target);

// Weights and states are no longer free; K and V come out of the KV cache's memory.
MemoryRequest with_drafts(MemoryRequest request, const DraftMemory& drafts);

// "drafts: 3.5 MiB of weights, 1.2 MiB as K and V beside 128 blocks, 512.0 KiB of scratch, 1.5 MiB of captured states"; empty
// where nothing is taken.
std::string drafts_line(const MemoryPlan& plan, const MemoryRequest& request);

}  // namespace quire::app
