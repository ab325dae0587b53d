// Thread roles: a method's signature names the thread that may call it, as in void plan() REQUIRES(engine_role).
// Only the engine thread has state that no other thread touches, and so a role; io and worker threads have none.
// clang's -Wthread-safety proves the annotations at compile time; debug builds check them at run time: a thread holds a
// RoleScope for as long as it runs.
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

  // Debug builds: CHECK that the calling thread holds this role. Release builds: an annotation for clang only.
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

// RAII: the calling thread has the role while the scope lives. Nested scopes of one role are our bug (CHECK).
// Owner   the thread's top function.
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
