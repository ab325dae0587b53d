// The engine's method called from a thread without the role. This file must NOT compile under clang's -Wthread-safety;
// tests/run.sh checks that it fails for this reason and no other.
#include "core/base/thread_role.h"

namespace quire {

class Pool {
 public:
  void take() REQUIRES(engine_role) { ++taken_; }

 private:
  int taken_ GUARDED_BY(engine_role) = 0;
};

void run_session(Pool& pool) { pool.take(); }

}  // namespace quire
