// Which kernel tables this machine can run, and the one to use.
// Thread  any.
// Fails   select_kernels: StartError listing what the machine has.
#pragma once

#include <string>

#include "core/cpu/isa/kernels.h"

namespace quire::cpu {

// "auto": the fastest this machine supports; else by name (cpu_ops.h).
const Kernels& select_kernels(const std::string& isa);

}  // namespace quire::cpu
