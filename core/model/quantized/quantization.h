// A checkpoint's own words on how its matrices are quantised: the quantization_config of config.json, or the files that
// older programs wrote beside it. The tensors' names, types and shapes say the rest (join.h).
// Thread  start.
// Fails   StartError naming file and key: a method, packing or rotation that is not read.
// Source  transformers 5.24, compressed-tensors 0.20, GPTQModel, AutoAWQ, AutoRound, bitsandbytes 0.50, ModelOpt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/backend/weights/format.h"
#include "core/model/source/json_fields.h"
#include "core/model/source/model_files.h"

namespace quire::model {

struct Quantization {
  enum class Method : std::uint8_t {
    kGptq,
    kAwq,
    kCompressedTensors,
    kFp8,
    kModelOpt,
    kBitsandbytes,
    kMxfp4,
  };
  Method method = Method::kGptq;
  bool zeros_less_one = false;        // GPTQ: a zero is stored less 1
  bool is_symmetric = false;          // GPTQ: every zero is the middle of the codes
  std::uint64_t group = 0;            // inputs that share a scale; 0: not said, or all of them
  std::uint64_t bits = 0;             // of a code; 0: not said
  bool in_floats = false;             // codes are floats
  std::uint64_t block_outputs = 128;  // FP8 whose scales are those of blocks
  std::uint64_t block_inputs = 128;
  bool int8_rows = false;   // inputs of integers are declared to be int8 with a scale for a row
  bool kv_in_fp8 = false;   // K and V are declared to be kept in FP8
  std::string activations;  // a clause about the form that products are declared to take their input in: "in 8 bits"
};

// Of config.json, whole or the part of a text model; nothing: it says nothing of quantisation.
std::optional<Quantization> read_quantization(const JsonFields& config);
// Of a model's files.
std::optional<Quantization> quantization_of(const ModelFiles& files);

// The format in which a linear layer of so many inputs would be stored, by the settings alone; nothing: they do not
// say.
std::optional<backend::Format> expected_format(const Quantization& quantization, std::uint64_t inputs);

}  // namespace quire::model
