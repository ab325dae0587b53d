#include "tools/gpu_measure/kernel_shapes.h"

#include <fmt/format.h>

#include "tools/gpu_measure/model_shapes.h"
#include "tools/gpu_measure/step_batch.h"

namespace quire::gpu::measure {
namespace {

using backend::Format;
using backend::KvType;

struct Machine {
  const char* name;
  Rates rates;
};
// Limits of the machines. H200: copies, and 8192³ in bf16, as measured on one. H100: the same fraction of its memory
// bandwidth, and flops as published for such sizes. Fixed time of a kernel (launch, fill and drain): estimated.
constexpr Machine kMachines[] = {{"h100", {2.93e12, 700e12, 3.3e-6}}, {"h200", {4.3e12, 780e12, 3.3e-6}}};

constexpr Format kWeights[] = {Format::kBF16, Format::kInt8, Format::kFp8, Format::kInt4};
constexpr KvType kCaches[] = {KvType::kBF16, KvType::kFp8};

void add_linears(const ModelShape& model, std::span<const std::uint32_t> rows, std::vector<KernelShape>& out) {
  for (const auto& [name, n, k] : model.matrices()) {
    for (const std::uint32_t r : rows) {
      for (const Format type : kWeights) {
        out.push_back({"linear", fmt::format("{} {}", model.name, name), n, k, r, 0, type, KvType::kBF16, {}, 1});
      }
    }
  }
}

void add_rows(const ModelShape& model, std::span<const std::uint32_t> rows, std::vector<KernelShape>& out) {
  for (const std::uint32_t r : rows) {
    out.push_back({"norm", model.name, model.hidden, 0, r, 0, Format::kF32, KvType::kF32, {}, 1});
    out.push_back({"act_mul", model.name, model.ffn, 0, r, 0, Format::kF32, KvType::kF32, {}, 1});
  }
}

struct Company {
  std::uint32_t sequences;
  std::uint32_t rows_each;
  std::uint32_t positions;
};

void add_attention(const ModelShape& model, std::span<const Company> companies, std::vector<KernelShape>& out) {
  for (const auto& [sequences, rows_each, positions] : companies) {
    for (const KvType type : kCaches) {
      KernelShape shape;
      shape.kernel = "attend";
      shape.of = model.name;
      shape.rows = sequences * rows_each;
      shape.rows_each = rows_each;
      shape.positions = positions;
      shape.kv = type;
      shape.heads = {model.num_heads, model.num_kv_heads, model.head_dim};
      out.push_back(shape);
    }
  }
}

}  // namespace

std::string KernelShape::type() const {
  if (kernel == "attend") return name_of(kv);
  return kernel == "linear" ? name_of(weight) : "f32";
}

Cost cost_of(const KernelShape& shape) {
  if (shape.kernel == "linear") {
    return linear_rows_cost(shape.weight, shape.k, shape.rows, /*with_norm=*/false) +
           linear_cost(shape.weight, shape.n, shape.k, shape.rows);
  }
  if (shape.kernel == "attend") {
    return attend_cost(shape.heads, shape.rows / shape.rows_each, shape.rows_each, shape.positions, shape.kv);
  }
  return shape.kernel == "norm" ? norm_cost(shape.n, shape.rows) : act_mul_cost(shape.n, shape.rows);
}

Cost attend_cost(const HeadsOfShape& heads, std::uint32_t num_sequences, std::uint32_t rows_each,
                 std::uint32_t positions, KvType type) {
  const StepBatch batch(num_sequences, rows_each, positions);
  const KvLayout layout{heads.num_kv_heads, heads.head_dim, StepBatch::kBlockTokens, type};
  return attention_cost(batch.view(), layout, heads.num_heads, /*window=*/0);
}

std::vector<KernelShape> kernel_shapes(bool tiny) {
  constexpr std::uint32_t kRows[] = {1, 16, 64, 256};
  constexpr Company kCompanies[] = {{1, 1, 512},  {1, 1, 4096},  {1, 1, 32768}, {8, 1, 4096},  {8, 1, 32768},
                                    {64, 1, 512}, {64, 1, 4096}, {256, 1, 512}, {1, 512, 512}, {1, 512, 4096}};
  constexpr std::uint32_t kFewRows[] = {1, 2};
  constexpr Company kFew[] = {{1, 1, 20}, {2, 1, 20}, {1, 3, 9}};
  std::vector<KernelShape> out;
  for (const ModelShape& model :
       tiny ? std::vector{model_shape("tiny")} : std::vector{model_shape("1b"), model_shape("8b")}) {
    add_linears(model, tiny ? std::span<const std::uint32_t>(kFewRows) : kRows, out);
    add_attention(model, tiny ? std::span<const Company>(kFew) : kCompanies, out);
    add_rows(model, tiny ? std::span<const std::uint32_t>(kFewRows) : kRows, out);
  }
  return out;
}

std::string predictions_csv() {
  std::string out = "kernel,of,type,n,k,rows,positions,bytes,flops";
  for (const Machine& machine : kMachines) out += fmt::format(",{}_us", machine.name);
  out += "\n";
  for (const KernelShape& shape : kernel_shapes(/*tiny=*/false)) {
    const Cost cost = cost_of(shape);
    out += fmt::format("{},{},{},{},{},{},{},{:.0f},{:.0f}", shape.kernel, shape.of, shape.type(), shape.n, shape.k,
                       shape.rows, shape.positions, cost.bytes, cost.flops);
    for (const Machine& machine : kMachines) out += fmt::format(",{:.2f}", 1e6 * least_seconds(cost, machine.rates));
    out += "\n";
  }
  return out;
}

}  // namespace quire::gpu::measure
