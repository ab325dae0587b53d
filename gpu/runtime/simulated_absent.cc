// Replaces gpu/simulated in programs for serving: the simulator is for tests, and compiles slowly.
#include "core/base/start_error.h"
#include "gpu/runtime/null_device.h"
#include "gpu/runtime/simulated_device.h"

namespace quire::gpu {
namespace {

constexpr const char* kBuiltWithout =
    "this program has no simulated GPU; quire-simulated has one, and is built with the tests (-DQUIRE_TESTS=ON)";

}  // namespace

std::unique_ptr<Device> make_simulated_device(std::uint64_t /*seed*/, Pace /*pace*/) {
  throw StartError(kBuiltWithout);
}

std::unique_ptr<Device> make_null_device() { throw StartError(kBuiltWithout); }

Ranks make_simulated_ranks(std::uint32_t /*count*/, std::uint64_t /*seed*/) { throw StartError(kBuiltWithout); }

}  // namespace quire::gpu
