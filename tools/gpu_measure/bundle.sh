#!/usr/bin/env bash
# Programs for gpu/measure.sh on a machine that has not the libraries to build them: quire, quire_gpu_measure and gpu_device_test of
# build/cuda-release, and the libraries that they need but libc's, into build/measure-bundle: bash tools/gpu_measure/bundle.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=build/cuda-release out=build/measure-bundle
rm -rf "$out" && mkdir -p "$out/lib"
for program in "$build/quire" "$build/quire_gpu_measure" "$build/tests/gpu_device_test"; do
  strip -o "$out/$(basename "$program")" "$program"
  ldd "$program" | awk '$3 ~ "^/" { print $3 }' | grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' | xargs -r cp -Lt "$out/lib"
done
cp "$build/tests/libfake_nccl.so" "$out"
du -sh "$out"
