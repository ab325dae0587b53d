// Parallel work on the host before a model serves: packing weights, and hashing packed ones.
// Thread  any; threads are made for the call and joined before it returns.
// Fails   if parts throw, no further part is started, and one of the exceptions is rethrown when all threads have
//         ended.
#pragma once

#include <cstdint>
#include <functional>

namespace quire::gpu {

// Calls part(i) once for every i in [0, count), in any order.
void for_each_part(std::uint32_t count, const std::function<void(std::uint32_t)>& part);

}  // namespace quire::gpu
