// What must be true between two turns, whatever happened: CONTRACT.md of the engine, as checks.
//   Every block's holders are the tables that name it; empty + kept + held = total; who shares has one root.
//   A table covers what its sequence has computed, and its slots hold the sequence's tokens at their positions.
//   What the index says of a block is in it, behind its parent's, and nothing that was spoilt.
//   Who waits holds nothing, and has been overtaken no more often than allowed.
// Thread  engine.
#pragma once

#include <vector>

#include "tests/sim/world.h"
#include "tests/support/engine_rig.h"

namespace quire::sim {

// How long everybody has waited, as seen from outside. Who waits for his first run is overtaken by no more later
// arrivals than the policy allows: fcfs by none, fair by any number of other tenants', but by no more of their tokens
// than the rounds that pay for his own tenant's bring. (Who does not read, or waits for a prefix that somebody
// computes, lets others pass.) Who does not read is gone after the stall timeout. A credit is held by who has not run
// yet. No turn passes without a row while somebody could run.
class Patience {
 public:
  // `ran`: a step of some rows did, in this turn.
  void look(const World& world, const quire::testing::EngineRig& rig, bool ran, Duration longest_stall)
      REQUIRES(engine_role);

 private:
  struct Known {
    bool waits = true;
    std::uint32_t overtaken = 0;
    bool paused = false;
    TimePoint paused_since{};
  };
  Known& known(const schedule::Sequence& sequence);
  void check_share(const engine::Engine& engine, const schedule::Sequence& waiting,
                   const schedule::Sequence& other) const;

  static constexpr std::uint32_t kTenants = 3;
  std::vector<double> served_;  // [tenants] under fair, as of the last look
  std::vector<Known> known_;    // by sequence id
};

// Of blocks that a step in flight is to fill nothing is asked yet.
void check_iteration(const World& world, quire::testing::EngineRig& rig, quire::testing::ToyRunner& runner,
                     const quire::testing::LateRunner& late, Counts& counts) REQUIRES(engine_role);

}  // namespace quire::sim
