// Downcast from the opaque type that callers hold (Weight, Buffer, ...) to the type of the backend that made the
// object. A backend's ops accept only objects of that backend.
// Thread  any.
// Fails   an object of another backend is our bug: a debug build CHECKs, a release build does not.
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
