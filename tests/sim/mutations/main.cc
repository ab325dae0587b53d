// A simulator with a bug planted in it: command_line.h.
#include "tests/sim/command_line.h"

int main(int argc, char** argv) { return quire::sim::run_command(argc, argv).value_or(2); }
