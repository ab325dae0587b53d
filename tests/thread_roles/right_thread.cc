// The engine's method called where the role is held: clang must accept it.
#include "core/base/thread_role.h"

namespace quire {

class Pool {
 public:
  void take() REQUIRES(engine_role) { ++taken_; }

 private:
  int taken_ GUARDED_BY(engine_role) = 0;
};

void run_engine(Pool& pool) {
  const RoleScope role(engine_role);
  pool.take();
}

}  // namespace quire
