#!/usr/bin/env bash
# Collects the dependencies of kernels, stages and device tests for a machine without them (cmake/Carried.cmake):
# headers, GoogleTest's sources, two small libraries: bash tools/gpu_measure/carry.sh DIR
set -euo pipefail
to=$1
mkdir -p "$to"/{include,lib,googletest}
printf '#include <%s>\n' boost/json/src.hpp boost/json.hpp boost/context/fiber.hpp | g++ -std=c++20 -M -x c++ - | tr ' ' '\n' |
  sed -n 's,^/usr/include/\(boost/.*\),\1,p' | tar -cC /usr/include -T - fmt spdlog prometheus | tar -xC "$to/include"
tar -cC /usr/src/googletest --exclude=test --exclude=docs --exclude=samples . | tar -xC "$to/googletest"
for library in libboost_context libprometheus-cpp-core; do  # under the SONAMEs that programs load
  path=$(g++ -print-file-name=$library.so)
  cp -L "$path" "$to/lib/$(objdump -p "$path" | awk '$1 == "SONAME" { print $2 }')"
done
