#include "core/model/quantized/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/quantized/checks.h"
#include "core/model/quantized/float_matrix.h"
#include "core/model/quantized/int_matrix.h"
#include "core/model/quantized/kv_scales.h"
#include "core/model/source/json_fields.h"

namespace quire::model {
namespace {

using Tensors = Checkpoint::Tensors;

class Joiner {
 public:
  Joiner(Tensors tensors, const Quantization& quantization)
      : tensors_(std::move(tensors)), quantization_(quantization) {}

  Tensors join() {
    for (const auto& [name, tensor] : tensors_) {
      taken_.clear();
      try {
        join_module(name, tensor);
        used_.insert(taken_.begin(), taken_.end());
      } catch (const StartError& error) {
        taken_.push_back(name);
        used_.insert(taken_.begin(), taken_.end());
        joined_.push_back({.name = name_of_matrix(name),
                           .dtype = "",
                           .shape = {},
                           .data = {},
                           .file = tensor.file,
                           .unread = error.what()});
      }
    }
    for (const std::string& name : used_) tensors_.erase(name);
    for (Tensor& tensor : joined_) {
      const std::string name = tensor.name;
      tensors_.insert_or_assign(name, std::move(tensor));
    }
    tensors_ = with_kv_scales_named(std::move(tensors_), quantization_);
    std::erase_if(tensors_, [](const auto& entry) { return is_of_activations(entry.first); });
    return std::move(tensors_);
  }

 private:
  // The name of the matrix that codes of that name belong to.
  static std::string name_of_matrix(const std::string& codes) {
    for (const std::string_view end : {".qweight", ".weight_packed"}) {
      if (codes.ends_with(end)) return codes.substr(0, codes.size() - end.size()) + ".weight";
    }
    return codes;
  }

  // Scales of activations and of probabilities.
  static bool is_of_activations(std::string_view name) {
    constexpr std::string_view kEnds[] = {".input_scale",         ".input_zero_point", ".input_global_scale",
                                          ".input_scale_ub",      ".output_scale",     "activation_scale",
                                          ".activation_scale_ub", ".q_scale",          ".k_zero_point",
                                          ".v_zero_point",        ".prob_output_scale"};
    return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
  }

  const Tensor* find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }
  // Finds the module's tensor of that name and takes it away at the end.
  const Tensor* take(const std::string& name) {
    const Tensor* tensor = find(name);
    if (tensor != nullptr) taken_.push_back(name);
    return tensor;
  }
  const Tensor& require(const Tensor& of, const std::string& name) {
    const Tensor* tensor = take(name);
    if (tensor == nullptr) refuse_tensor(of, "has no '" + log_safe(name) + "' beside it");
    return *tensor;
  }

  void join_module(const std::string& name, const Tensor& tensor) {
    const auto module_of = [&](std::string_view end) { return name.substr(0, name.size() - end.size()); };
    if (name.ends_with(".qweight")) {
      join_words(module_of(".qweight"), tensor);
    } else if (name.ends_with(".weight_packed")) {
      join_packed(module_of(".weight_packed"), tensor);
    } else if (name.ends_with(".weight")) {
      join_weight(module_of(".weight"), tensor);
    } else if (tensor.dtype == "F8_E4M3" && find(name + "_scale_inv") != nullptr) {  // experts in one tensor
      const Fp8Tensors from{&tensor, take(name + "_scale_inv"), quantization_.block_outputs,
                            quantization_.block_inputs};
      add(fp8_tensor(name, from), name);
    }
  }

  void add(Tensor tensor, const std::string& codes) {
    taken_.push_back(codes);
    joined_.push_back(std::move(tensor));
  }

  // GPTQ and AWQ.
  void join_words(const std::string& module, const Tensor& codes) {
    const bool is_awq = quantization_.method == Quantization::Method::kAwq;
    IntTensors from;
    from.packing = is_awq ? IntPacking::kAwq : IntPacking::kGptq;
    from.codes = &codes;
    from.scales = &require(codes, module + ".scales");
    from.zeros = &require(codes, module + ".qzeros");
    if (codes.shape.size() != 2 || from.scales->shape.size() != 2 || from.zeros->shape.size() != 2) {
      refuse_tensor(codes, "or its scales or zeros is no matrix");
    }
    from.outputs = from.scales->shape[1];
    if (from.outputs == 0 || from.scales->shape[0] == 0) refuse_tensor(*from.scales, "is empty");
    const std::uint64_t bits = is_awq ? 4 : from.zeros->shape[1] * 32 / from.outputs;
    if (bits != 2 && bits != 3 && bits != 4 && bits != 8) {
      refuse_tensor(*from.zeros, fmt::format("has shape {} for {} outputs, {} bits in each; expected 2, 3, 4 or 8",
                                             shape_text(from.zeros->shape), from.outputs, bits));
    }
    from.bits = static_cast<std::uint32_t>(bits);
    from.inputs = is_awq ? codes.shape[0] : codes.shape[0] * 32 / bits;
    const std::uint64_t groups = from.scales->shape[0];
    const std::uint64_t said = quantization_.group;
    const bool fits = said != 0 && (from.inputs + said - 1) / said == groups;
    from.group = groups == 1 ? 0 : fits ? said : (from.inputs + groups - 1) / groups;
    from.zeros_less_one = quantization_.zeros_less_one;
    from.groups = take(module + ".g_idx");
    add(int_tensor(module + ".weight", from), codes.name);
  }

  // compressed-tensors: integers, NVFP4 or MXFP4.
  void join_packed(const std::string& module, const Tensor& codes) {
    const Tensor& scales = require(codes, module + ".weight_scale");
    const Tensor* factor = take(module + ".weight_global_scale");
    if (codes.dtype == "U8") {
      if (factor != nullptr) {
        add(nvfp4_tensor(module + ".weight", {&codes, &scales, factor, true}), codes.name);
      } else {
        add(mxfp4_tensor(module + ".weight", codes, scales), codes.name);
      }
      return;
    }
    IntTensors from;
    from.packing = IntPacking::kAlongInputs;
    from.codes = &codes;
    from.scales = &scales;
    from.zeros = take(module + ".weight_zero_point");
    const Tensor& shape = require(codes, module + ".weight_shape");
    if ((shape.dtype != "I64" && shape.dtype != "I32") || shape.shape != std::vector<std::uint64_t>{2}) {
      refuse_tensor(shape, "is " + log_safe(shape.dtype) + " " + shape_text(shape.shape) + "; expected I64 [2]");
    }
    const std::uint64_t size = shape.data.size() / 2;
    std::memcpy(&from.outputs, shape.data.data(), size);
    std::memcpy(&from.inputs, shape.data.data() + size, size);
    constexpr std::uint64_t kMost = 1u << 30;
    if (codes.shape.size() != 2 || from.outputs == 0 || from.inputs == 0 || from.outputs > kMost ||
        from.inputs > kMost) {
      refuse_tensor(codes, "has shape " + shape_text(codes.shape) +
                               fmt::format(" of a matrix [{}, {}]", from.outputs, from.inputs));
    }
    const std::uint64_t bits = codes.shape[1] * 32 / from.inputs;
    if (bits < 2 || bits > 8) {
      refuse_tensor(codes, fmt::format("has shape {} for {} inputs, {} bits in each; expected 2 to 8",
                                       shape_text(codes.shape), from.inputs, bits));
    }
    from.bits = static_cast<std::uint32_t>(bits);
    const std::uint64_t groups = scales.shape.size() == 2 ? scales.shape[1] : 1;
    from.group = groups <= 1 ? 0 : (from.inputs + groups - 1) / groups;
    from.groups = take(module + ".weight_g_idx");
    add(int_tensor(module + ".weight", from), codes.name);
  }

  void join_weight(const std::string& module, const Tensor& codes) {
    const Tensor* scales = take(module + ".weight_scale");
    if (scales == nullptr) scales = take(module + ".weight_scale_inv");
    if (codes.dtype == "F8_E4M3") {
      if (scales == nullptr) refuse_tensor(codes, "has no 'weight_scale' or 'weight_scale_inv' beside it");
      const Fp8Tensors from{&codes, scales, quantization_.block_outputs, quantization_.block_inputs};
      add(fp8_tensor(codes.name, from), codes.name);
    } else if (codes.dtype == "I8" && scales != nullptr) {
      join_bytes(codes, *scales, take(module + ".weight_zero_point"), 1.0f);
    } else if (codes.dtype == "I8" && find(module + ".SCB") != nullptr) {
      check_row_order(take(module + ".weight_format"));
      join_bytes(codes, *take(module + ".SCB"), nullptr, 127.0f);
    } else if (find(codes.name + ".absmax") != nullptr) {
      join_table(codes);
    } else if (codes.dtype == "U8" && scales != nullptr) {
      const Tensor* factor = take(module + ".weight_scale_2");
      if (factor != nullptr) {
        add(nvfp4_tensor(codes.name, {&codes, scales, factor, false}), codes.name);
      } else {
        add(mxfp4_tensor(codes.name, codes, *scales), codes.name);
      }
    }
  }

  // bitsandbytes: 0 is the order of rows.
  static void check_row_order(const Tensor* format) {
    if (format == nullptr) return;
    if (format->data.empty() || std::ranges::any_of(format->data, [](std::byte b) { return b != std::byte{0}; })) {
      refuse_tensor(*format, "is not 0: codes in another order than by rows are not read");
    }
  }

  void join_bytes(const Tensor& codes, const Tensor& scales, const Tensor* zeros, float divisor) {
    if (zeros != nullptr && std::ranges::any_of(zeros->data, [](std::byte b) { return b != std::byte{0}; })) {
      refuse_tensor(*zeros, "has zeros other than 0: 8-bit integers are read with a scale alone");
    }
    if (codes.shape.size() != 2) refuse_tensor(codes, "has shape " + shape_text(codes.shape) + "; expected a matrix");
    IntTensors from;
    from.codes = &codes;
    from.scales = &scales;
    from.outputs = codes.shape[0];
    from.inputs = codes.shape[1];
    from.divisor = divisor;
    from.takes_int8_rows = quantization_.int8_rows;
    const std::uint64_t groups = scales.shape.size() == 2 ? scales.shape[1] : 1;
    from.group = groups <= 1 ? 0 : (from.inputs + groups - 1) / groups;
    add(int_tensor(codes.name, from), codes.name);
  }

  // bitsandbytes in 4 bits; its state is JSON in a tensor of bytes.
  void join_table(const Tensor& codes) {
    TableTensors from;
    from.codes = &codes;
    from.scales = &require(codes, codes.name + ".absmax");
    from.table = &require(codes, codes.name + ".quant_map");
    from.nested_table = take(codes.name + ".nested_quant_map");
    if (from.nested_table != nullptr) from.nested_scales = &require(codes, codes.name + ".nested_absmax");
    const Tensor* state = take(codes.name + ".quant_state.bitsandbytes__nf4");
    if (state == nullptr) state = take(codes.name + ".quant_state.bitsandbytes__fp4");
    if (state == nullptr) refuse_tensor(codes, "has no quant_state of nf4 or fp4 beside it");
    const boost::json::object object =
        parse_object({reinterpret_cast<const char*>(state->data.data()), state->data.size()},
                     state->file + ": tensor '" + log_safe(state->name) + "'");
    const JsonFields fields(object, state->file + ": tensor '" + log_safe(state->name) + "'");
    constexpr std::uint64_t kMost = 1u << 30;
    const std::vector<std::uint64_t> shape = fields.uint_or_list("shape", kMost);
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) fields.mismatch("shape", "expected that of a matrix");
    from.outputs = shape[0];
    from.inputs = shape[1];
    from.block = fields.require_uint("blocksize", 1, 1u << 16);
    if (from.nested_table != nullptr) {
      from.nested_block = fields.require_uint("nested_blocksize", 1, 1u << 16);
      from.nested_offset = static_cast<float>(fields.require_number("nested_offset", -1e30, 1e30));
    }
    add(table_tensor(codes.name, from), codes.name);
  }

  Tensors tensors_;
  const Quantization& quantization_;
  std::vector<std::string> taken_;  // by the module that is being joined
  std::set<std::string> used_;
  std::vector<Tensor> joined_;
};

// gpt-oss: "NAME_blocks" and "NAME_scales".
void join_blocks(Tensors& tensors) {
  constexpr std::string_view kBlocks = "_blocks";
  std::vector<Tensor> joined;
  for (const auto& [name, blocks] : tensors) {
    if (!name.ends_with(kBlocks) || blocks.dtype != "U8") continue;
    const std::string base = name.substr(0, name.size() - kBlocks.size());
    const auto scales = tensors.find(base + "_scales");
    if (scales == tensors.end() || scales->second.dtype != "U8") continue;
    try {
      joined.push_back(mxfp4_tensor(base, blocks, scales->second));
    } catch (const StartError& error) {
      joined.push_back(
          {.name = base, .dtype = "", .shape = {}, .data = {}, .file = blocks.file, .unread = error.what()});
    }
  }
  for (Tensor& tensor : joined) {
    tensors.erase(tensor.name + "_blocks");
    tensors.erase(tensor.name + "_scales");
    const std::string name = tensor.name;
    tensors.emplace(name, std::move(tensor));
  }
}

}  // namespace

Tensors join_quantized(Tensors tensors, const std::optional<Quantization>& quantization) {
  join_blocks(tensors);
  if (!quantization || quantization->method == Quantization::Method::kMxfp4) return tensors;
  return Joiner(std::move(tensors), *quantization).join();
}

}  // namespace quire::model
