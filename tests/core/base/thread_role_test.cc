#include "core/base/thread_role.h"

#include <gtest/gtest.h>

#include <thread>

namespace quire {
namespace {

TEST(ThreadRole, IsHeldInsideItsScope) {
  const RoleScope role(engine_role);
  engine_role.check();
}

TEST(ThreadRole, IsHeldByOneThreadAndNotByItsNeighbour) {
  const RoleScope role(engine_role);
  bool free_there = false;
  std::thread([&] {
    const RoleScope mine(engine_role);  // would die if roles were the process's
    free_there = true;
  }).join();
  EXPECT_TRUE(free_there);
}

TEST(ThreadRole, IsGivenBackAtTheEndOfItsScope) {
  { const RoleScope role(engine_role); }
  const RoleScope again(engine_role);
  engine_role.check();
}

TEST(ThreadRoleDeathTest, NestedScopesOfOneRoleAreOurBug) {
  EXPECT_DEATH(
      {
        const RoleScope outer(engine_role);
        const RoleScope inner(engine_role);
      },
      "CHECK failed");
}

TEST(ThreadRoleDeathTest, DebugBuildsDieOutsideTheRole) {
#ifdef NDEBUG
  engine_role.check();  // costs nothing in release builds
#else
  EXPECT_DEATH(engine_role.check(), "CHECK failed");
#endif
}

}  // namespace
}  // namespace quire
