// sim_test: the tests, or what command_line.h says.
#include <gtest/gtest.h>

#include "tests/sim/command_line.h"

int main(int argc, char** argv) {
  if (const auto status = quire::sim::run_command(argc, argv)) return *status;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
