#!/usr/bin/env bash
# Builds a bundle for gpu/measure.sh on a machine without the libraries to build from source: bash
# tools/gpu_measure/bundle.sh [BUILD]. One file holds quire, quire_gpu_measure and gpu_device_test for sm_90a, with
# the shared libraries that they need except libc's. Bundle and tree together are to be sent in at most 64 MiB, and
# measure.sh finds the bundle where this script writes it. The kernels are a library of their own. If the tree's sources
# have changed since, measure.sh compiles kernels, stages and tests on that machine (-DQUIRE_GPU_ONLY=ON), with the
# headers and sources in the bundle.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-build/cuda-bundle} out=build/measure-bundle
cmake --preset cuda-release -B "$build" -DQUIRE_CUDA_ARCHITECTURES=90a -DQUIRE_CUDA_SHARED=ON -DQUIRE_TESTS=ON -DCMAKE_BUILD_RPATH='$ORIGIN/lib' \
  -DCMAKE_EXE_LINKER_FLAGS='-Wl,--disable-new-dtags' >/dev/null
cmake --build "$build" -j "$(bash deploy/build_jobs.sh)" --target quire quire_gpu_measure_program gpu_device_test
rm -rf "$out" && mkdir -p "$out/lib"
for program in "$build/quire" "$build/quire_gpu_measure" "$build/tests/gpu_device_test"; do
  strip -o "$out/$(basename "$program")" "$program"
  ldd "$program" | awk '$3 ~ "^/" { print $3 }' | grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' | xargs -r cp -Lt "$out/lib"
done
cp "$build/tests/libfake_nccl.so" "$out"
bash tools/gpu_measure/carry.sh "$out/carried"
python3 tools/gpu_measure/measure.py --say-sources >"$out/sources.sha256"
tar -cJf "$out.tar.xz" -C "$out" .
tree=$(git ls-files -z | xargs -0 stat -c %s | awk '{ sum += $1 } END { print sum }')
bytes=$(($(stat -c %s "$out.tar.xz") + tree))
echo "$out.tar.xz and the tree: $((bytes >> 20)) MiB of 64"
((bytes <= 60 << 20)) || { echo "that is more than 60 MiB: leave out what it can do without" >&2; exit 1; }
