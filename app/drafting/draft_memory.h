// Memory that drafting takes besides the target, computed from file headers for the memory plan before any weight is
// packed:
//   weights of heads and draft models · their K and V for the pool's blocks, and the hashes kept of these rows ·
//   scratch blocks for draft tokens · the target's hidden states of a step, captured for a head
// Not counted: the row buffers of a step, as for the target; the history of text methods; a datastore, which is mapped.
// Thread  any, while starting.
// Fails   StartError: a head, draft model or datastore is missing, cannot be read, or does not fit the target.
#pragma once

#include <string>

#include "app/config/config.h"
#include "app/model/loaded_model.h"
#include "app/model/memory_plan.h"

namespace quire::app {

DraftMemory draft_memory(const Config& config, const ReadModel& target);

// Adds `drafts` to the request: weights and states reduce free_bytes; K and V come out of the KV cache's memory.
MemoryRequest with_drafts(MemoryRequest request, const DraftMemory& drafts);

// "drafts: 3.5 MiB of weights, 1.2 MiB as K and V beside 128 blocks, 512.0 KiB of scratch blocks, 1.5 MiB of captured
// states"; empty if drafts take no memory.
std::string drafts_line(const MemoryPlan& plan, const MemoryRequest& request);

}  // namespace quire::app
