// Any tensors of a quantised checkpoint are joined and read, or refused: whatever their types, shapes, data and
// settings are.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/source/model_files.h"
#include "core/model/tensor_rows.h"

namespace {

using namespace quire::model;

// The fuzzer's bytes, taken one by one; 0 behind the last.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint8_t next() {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  template <typename Items>
  const auto& one_of(const Items& items) {
    return items[next() % std::size(items)];
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

constexpr std::array<std::string_view, 12> kSettings = {
    R"({"quant_method": "gptq", "group_size": 32})",
    R"({"quant_method": "gptq", "group_size": 64, "sym": true, "checkpoint_format": "gptq_v2"})",
    R"({"quant_method": "gptq", "group_size": -1})",
    R"({"quant_method": "awq"})",
    R"({"quant_method": "compressed-tensors"})",
    R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"block_structure": [1, 32]}}}})",
    R"({"quant_method": "fp8"})",
    R"({"quant_method": "fp8", "weight_block_size": [3, 64]})",
    R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})",
    R"({"quant_method": "bitsandbytes", "load_in_4bit": true})",
    R"({"quant_method": "mxfp4"})",
    R"({"quant_method": "auto-round", "packing_format": "auto_round:auto_awq"})"};
constexpr std::array<std::string_view, 24> kEnds = {".qweight",
                                                    ".qzeros",
                                                    ".scales",
                                                    ".g_idx",
                                                    ".weight",
                                                    ".weight_packed",
                                                    ".weight_scale",
                                                    ".weight_shape",
                                                    ".weight_g_idx",
                                                    ".weight_zero_point",
                                                    "_blocks",
                                                    "_scales",
                                                    ".weight_scale_2",
                                                    ".weight_scale_inv",
                                                    ".SCB",
                                                    ".weight_format",
                                                    "_scale_inv",
                                                    "",
                                                    ".weight.absmax",
                                                    ".weight.quant_map",
                                                    ".weight.quant_state.bitsandbytes__nf4",
                                                    ".weight.nested_absmax",
                                                    ".weight.nested_quant_map",
                                                    ".weight_global_scale"};
constexpr std::array<std::pair<std::string_view, std::size_t>, 9> kTypes = {{{"I32", 4},
                                                                             {"I64", 8},
                                                                             {"I8", 1},
                                                                             {"U8", 1},
                                                                             {"F8_E4M3", 1},
                                                                             {"F8_E8M0", 1},
                                                                             {"F16", 2},
                                                                             {"BF16", 2},
                                                                             {"F32", 4}}};
constexpr std::array<std::uint64_t, 16> kExtents = {0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 96, 128, 192, 256};

struct Made {
  std::string header = "{\"m\": {\"dtype\": \"U8\", \"shape\": [0], \"data_offsets\": [0, 0]}";
  std::string data;
};

void add_tensor(Bytes& bytes, std::string_view name, Made& out) {
  const auto& [type, size] = bytes.one_of(kTypes);
  std::string shape;
  std::size_t count = size;
  for (int dims = bytes.next() % 4; dims > 0; --dims) {
    const std::uint64_t extent = bytes.one_of(kExtents);
    if (count * extent > 1u << 16) break;
    count *= extent;
    shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  }
  std::string data(count, '\0');
  const std::uint8_t period = bytes.next() % 16;
  std::string pattern;
  for (int i = 0; i <= period; ++i) pattern += static_cast<char>(bytes.next());
  for (std::size_t i = 0; i < count; ++i) data[i] = pattern[i % pattern.size()];
  if (name.find("quant_state") != name.npos) data = R"({"shape": [2, 64], "blocksize": 64})";
  const bool is_text = name.find("quant_state") != name.npos;
  out.header += ", \"a" + std::string(name) + "\": {\"dtype\": \"" + std::string(is_text ? "U8" : type) +
                "\", \"shape\": [" + (is_text ? std::to_string(data.size()) : shape) + "], \"data_offsets\": [" +
                std::to_string(out.data.size()) + ", " + std::to_string(out.data.size() + data.size()) + "]}";
  out.data += data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes({data, size});
  const std::string config = "{\"quantization_config\": " + std::string(bytes.one_of(kSettings)) + "}";
  Made made;
  std::array<bool, kEnds.size()> is_there{};
  for (int count = bytes.next() % 7; count > 0; --count) {
    const std::size_t end = bytes.next() % kEnds.size();
    if (!std::exchange(is_there[end], true)) add_tensor(bytes, kEnds[end], made);
  }
  made.header += "}";
  const std::uint64_t length = made.header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += made.header + made.data;
  const std::pair<std::string_view, FileBytes> named[] = {{"config.json", std::as_bytes(std::span(config))},
                                                          {"model.safetensors", std::as_bytes(std::span(file))}};
  try {
    const auto files = ModelFiles::memory(named);
    const Checkpoint checkpoint = open_decoder(*files);
    for (const auto& [name, tensor] : checkpoint.tensors()) {
      if (tensor.matrix == nullptr || tensor.shape.size() != 2) continue;
      const TensorPart part{.name = name, .shape = tensor.shape};
      const TensorRows rows(tensor, part, TensorEntry::Kind::kMatrix, true);
      CHECK_EQ(rows.bytes().size(), tensor.num_elements() * sizeof(float));
    }
  } catch (const quire::StartError&) {
  }
  return 0;
}
