// Work on the host that every processor takes a part of, before a model serves: packing weights, and hashing what was
// packed.
// Thread  any; threads are made for the call and joined before it returns.
// Fails   passes on the first exception of a part, when all have ended.
#pragma once

#include <cstdint>
#include <functional>

namespace quire::gpu {

// part(i) once for every i in [0, count), in no order.
void for_each_part(std::uint32_t count, const std::function<void(std::uint32_t)>& part);

}  // namespace quire::gpu
