// Selection of a kernel table: the tables that this machine can run, and the one to use.
// Thread  any.
// Fails   select_kernels: StartError that lists what the machine has.
#pragma once

#include <string>

#include "core/cpu/isa/kernels.h"

namespace quire::cpu {

// "auto": the fastest this machine supports; else by name (cpu_ops.h).
const Kernels& select_kernels(const std::string& isa);

}  // namespace quire::cpu
