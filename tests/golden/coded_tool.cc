// The numbers of a matrix as the loader reads them.
//   coded_tool DIR TENSOR   standard output: [outputs, inputs] in f32; TENSOR as open_decoder() names it
#include <cstdint>
#include <exception>
#include <iostream>
#include <vector>

#include "core/base/start_error.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/tensor_rows.h"

int main(int argc, char** argv) {
  using namespace quire::model;
  if (argc != 3) return 2;
  try {
    const auto files = ModelFiles::directory(argv[1]);
    const Checkpoint checkpoint = open_decoder(*files);
    const Tensor* tensor = checkpoint.find(argv[2]);
    if (tensor == nullptr || !tensor->coded) throw quire::StartError("there is no such quantised tensor");
    const TensorRows rows(*tensor, {.name = tensor->name, .shape = tensor->shape}, TensorEntry::Kind::kMatrix, true);
    std::cout.write(reinterpret_cast<const char*>(rows.bytes().data()),
                    static_cast<std::streamsize>(rows.bytes().size()));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
