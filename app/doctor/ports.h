// A test of one TCP port: it can be listened on, or a process holds it.
// Thread  any.
// Fails   never: the holder is unknown if it is another user's process.
#pragma once

#include <cstdint>
#include <string>

#include "app/doctor/facts.h"

namespace quire::app::doctor {

// Listens for a moment.
PortFacts port_facts(const std::string& host, std::uint16_t port);

}  // namespace quire::app::doctor
