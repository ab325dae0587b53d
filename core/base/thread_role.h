// Which thread a method is for, said in its signature: void plan() REQUIRES(engine_role).
// Of the threads (io, worker, engine) the engine has state that is its alone, and so a role. clang's -Wthread-safety proves them at compile time;
// debug builds check them at run time: a thread declares its role once by holding a RoleScope for as long as it runs.
// Source  clang's Thread Safety Analysis, with a role as the capability.
#pragma once

#include "core/base/check.h"

#if defined(__clang__)
#define QUIRE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define QUIRE_THREAD_ATTRIBUTE(x)
#endif

#define CAPABILITY(name) QUIRE_THREAD_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY QUIRE_THREAD_ATTRIBUTE(scoped_lockable)
#define REQUIRES(role) QUIRE_THREAD_ATTRIBUTE(requires_capability(role))
#define GUARDED_BY(role) QUIRE_THREAD_ATTRIBUTE(guarded_by(role))
#define ACQUIRE(role) QUIRE_THREAD_ATTRIBUTE(acquire_capability(role))
#define RELEASE(...) QUIRE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define ASSERT_ROLE(role) QUIRE_THREAD_ATTRIBUTE(assert_capability(role))

namespace quire {

class CAPABILITY("role") ThreadRole {
 public:
  enum class Name { kNone, kEngine };
  constexpr explicit ThreadRole(Name name) : name_(name) {}

  // Debug builds die here when the calling thread does not hold this role; release builds only tell clang.
  void check() const ASSERT_ROLE(this) {
#ifndef NDEBUG
    CHECK(current() == name_);
#endif
  }

 private:
  friend class RoleScope;
  static Name& current() {
    static thread_local Name name = Name::kNone;
    return name;
  }
  Name name_;
};

inline ThreadRole engine_role{ThreadRole::Name::kEngine};

// Owner   the thread's top function. Declares the role for the scope; nested scopes of one role are our bug.
class SCOPED_CAPABILITY RoleScope {
 public:
  explicit RoleScope(ThreadRole& role) ACQUIRE(role) : before_(ThreadRole::current()) {
    CHECK(before_ != role.name_);
    ThreadRole::current() = role.name_;
  }
  ~RoleScope() RELEASE() { ThreadRole::current() = before_; }
  RoleScope(const RoleScope&) = delete;
  RoleScope& operator=(const RoleScope&) = delete;

 private:
  ThreadRole::Name before_;
};

}  // namespace quire
