// What a backend made itself, behind the opaque type that its callers hold: its ops take nothing else.
// Thread  any.
// Fails   a thing of another backend is our bug: a debug build CHECKs.
#pragma once

#include "core/base/check.h"

namespace quire::backend {

template <typename Made, typename Opaque>
Made& device_cast(Opaque& thing) {
#ifndef NDEBUG
  CHECK(dynamic_cast<Made*>(&thing) != nullptr);
#endif
  return static_cast<Made&>(thing);
}

}  // namespace quire::backend
