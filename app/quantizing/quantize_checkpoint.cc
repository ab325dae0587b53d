#include "app/quantizing/quantize_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "app/quantizing/tensor_file.h"
#include "core/backend/weights/quantize.h"
#include "core/base/float_bits.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/arch/config.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/quantized/quantization.h"
#include "core/model/source/json_fields.h"
#include "core/model/tensor_table.h"
#include "core/model/weight_checks.h"
#include "core/model/weights.h"

namespace quire::app {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using backend::Format;
using model::Tensor;

constexpr std::string_view kWeight = ".weight";
constexpr std::uint32_t kBits = 4;  // of w4a16

// Scales are stored in the type of the matrix.
std::uint64_t bytes_of_scale(const Tensor& tensor) { return tensor.dtype == "F32" ? 4 : 2; }

// A finite scale as it is stored, appended; and its value.
float put_scale(float scale, const Tensor& tensor, std::vector<std::byte>* out) {
  const auto append = [&](const auto& bits) {
    const auto bytes = std::as_bytes(std::span(&bits, 1));
    if (out != nullptr) out->insert(out->end(), bytes.begin(), bytes.end());
  };
  if (tensor.dtype == "F32") {
    append(scale);
    return scale;
  }
  const auto half = tensor.dtype == "BF16" ? bf16_of_f32(scale) : f16_of_f32(scale);
  append(half);
  return tensor.dtype == "BF16" ? f32_of_bf16(half) : f32_of_f16(half);
}

// The matrix's rows as f32, one after another.
template <typename Take>
void for_rows(const Tensor& tensor, const Take& take) {
  std::vector<float> row(tensor.shape[1]);
  const std::size_t row_bytes = tensor.data.size() / tensor.shape[0];
  for (std::uint64_t n = 0; n < tensor.shape[0]; ++n) {
    backend::widen(tensor.data.data() + n * row_bytes, *tensor.format(), row);
    for (const float number : row) {
      if (!std::isfinite(number))
        throw StartError(fmt::format("{}: tensor '{}' has a number that is not finite, in row {}", tensor.file,
                                     log_safe(tensor.name), n));
    }
    take(std::span<const float>(row));
  }
}

float largest_of(std::span<const float> numbers) {
  float largest = 0.0f;
  for (const float number : numbers) largest = std::max(largest, std::abs(number));
  return largest;
}

// To the nearest integer, ties to even, |x| < 2^22: the first addition rounds.
float rounded(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

// The scale of 4-bit codes with the least squared error among some from the one that reaches the largest number on
// down: to cut that number often costs less than wide steps for all others.
float nearest_scale(std::span<const float> part) {
  constexpr int kTried = 24;
  const float widest = largest_of(part) / 7.5f;
  float best = widest;
  float least = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kTried && widest > 0.0f; ++i) {
    const float step = widest * (1.0f - 0.02f * static_cast<float>(i));
    const float inverse = 1.0f / step;
    float error = 0.0f;
    for (const float number : part) {
      const float off = number - step * std::min(7.0f, std::max(-8.0f, rounded(number * inverse)));
      error += off * off;
    }
    if (error < least) least = error, best = step;
  }
  return best;
}

struct Coder {
  QuantizedForm form;
  std::uint64_t group;  // of w4a16

  Format format() const { return form == QuantizedForm::kFp8 ? Format::kFp8 : Format::kInt8; }

  std::uint64_t groups(const Tensor& tensor) const {
    return form == QuantizedForm::kW4A16 ? tensor.shape[1] / group : 1;
  }
  std::uint64_t words(const Tensor& tensor) const { return tensor.shape[1] * kBits / 32; }

  // Of a part of a row that shares it.
  float scale(std::span<const float> part) const {
    if (form == QuantizedForm::kW4A16) return nearest_scale(part);
    return largest_of(part) / (form == QuantizedForm::kFp8 ? kFp8Highest : 127.0f);
  }

  template <typename Take>
  void for_parts(const Tensor& tensor, const Take& take) const {
    const std::uint64_t width = tensor.shape[1] / groups(tensor);
    for_rows(tensor, [&](std::span<const float> row) {
      for (std::uint64_t first = 0; first < row.size(); first += width) take(row.subspan(first, width));
    });
  }

  std::vector<float> scales(const Tensor& tensor) const {
    std::vector<float> out;
    for_parts(tensor, [&](std::span<const float> part) { out.push_back(scale(part)); });
    return out;
  }

  std::vector<std::byte> codes(const Tensor& tensor, std::span<const float> scales) const {
    std::vector<std::byte> out;
    out.reserve(tensor.num_elements() * (form == QuantizedForm::kW4A16 ? kBits : 8) / 8);
    std::vector<std::byte> bytes;
    for_parts(tensor, [&](std::span<const float> part) {
      const float step = put_scale(scales.front(), tensor, nullptr);
      scales = scales.subspan(1);
      if (form == QuantizedForm::kW4A16) return put_nibbles(part, step, out);
      bytes.resize(part.size());
      backend::output_codes(format(), part, step, bytes.data());
      out.insert(out.end(), bytes.begin(), bytes.end());
    });
    return out;
  }

  // Two codes + 8 in a byte, the first in the low half: eight in a word of 32 bits.
  static void put_nibbles(std::span<const float> part, float step, std::vector<std::byte>& out) {
    const auto code = [&](float number) {
      const float whole = step == 0.0f ? 0.0f : std::nearbyint(number / step);
      return static_cast<std::uint32_t>(std::clamp(whole, -8.0f, 7.0f) + 8.0f);
    };
    for (std::size_t i = 0; i < part.size(); i += 2) {
      out.push_back(static_cast<std::byte>(code(part[i]) | code(part[i + 1]) << 4));
    }
  }
};

// The tensors of a module in fewer bits.
void add_quantized(const Tensor& tensor, const Coder& coder, std::vector<TensorToWrite>& out) {
  const std::string module = tensor.name.substr(0, tensor.name.size() - kWeight.size());
  const std::uint64_t n = tensor.shape[0];
  const auto found = std::make_shared<std::vector<float>>();  // scales, once codes were made
  const auto codes = [&tensor, coder, found] {
    *found = coder.scales(tensor);
    return coder.codes(tensor, *found);
  };
  const auto scales = [&tensor, found] {
    std::vector<std::byte> bytes;
    for (const float scale : *found) put_scale(scale, tensor, &bytes);
    *found = {};
    return bytes;
  };
  if (coder.form == QuantizedForm::kW4A16) {
    const std::uint64_t words = coder.words(tensor);
    out.push_back({module + ".weight_packed", "I32", {n, words}, n * words * 4, {}, codes});
    const auto shape = [&tensor] {
      const std::array<std::int64_t, 2> extents = {static_cast<std::int64_t>(tensor.shape[0]),
                                                   static_cast<std::int64_t>(tensor.shape[1])};
      const auto bytes = std::as_bytes(std::span(extents));
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    out.push_back({module + ".weight_shape", "I64", {2}, 16, {}, shape});
  } else {
    out.push_back({tensor.name,
                   coder.form == QuantizedForm::kFp8 ? "F8_E4M3" : "I8",
                   tensor.shape,
                   tensor.num_elements(),
                   {},
                   codes});
  }
  const std::uint64_t groups = coder.groups(tensor);
  out.push_back({module + ".weight_scale", tensor.dtype, {n, groups}, n * groups * bytes_of_scale(tensor), {}, scales});
}

// The names, as the decoder has them, of matrices that are linear layers of its layers.
std::set<std::string> linear_layers(const model::ModelSpec& spec) {
  std::set<std::string> names;
  for (const model::TensorEntry& entry : model::tensor_table(spec).entries) {
    const bool is_layer = entry.kind == model::TensorEntry::Kind::kMatrix && entry.layer != model::TensorEntry::kTop;
    if (!is_layer || model::is_router(entry.role) || model::is_looked_up(entry.role, spec)) continue;
    for (const model::TensorPart& part : entry.parts) {
      // GPT-2's lie the other way round; the part of a latent's matrix that is transposed has another one that is not.
      if (part.shape.size() == 2 && !part.transposed && part.name.ends_with(kWeight)) names.insert(part.name);
    }
  }
  return names;
}

json::object scheme_of(QuantizedForm form, std::uint64_t group) {
  const bool is_float = form == QuantizedForm::kFp8;
  const bool is_grouped = form == QuantizedForm::kW4A16;
  const std::string_view format = is_grouped ? "pack-quantized" : is_float ? "float-quantized" : "int-quantized";
  json::object weights{{"num_bits", is_grouped ? 4 : 8},
                       {"type", is_float ? "float" : "int"},
                       {"symmetric", true},
                       {"strategy", is_grouped ? "group" : "channel"},
                       {"group_size", is_grouped ? json::value(group) : json::value(nullptr)},
                       {"block_structure", nullptr},
                       {"dynamic", false},
                       {"actorder", nullptr}};
  json::value inputs = nullptr;
  if (!is_grouped) {
    inputs = json::object{
        {"num_bits", 8},         {"type", is_float ? "float" : "int"}, {"symmetric", true}, {"strategy", "token"},
        {"group_size", nullptr}, {"block_structure", nullptr},         {"dynamic", true},   {"actorder", nullptr}};
  }
  return {{"targets", json::array{"Linear"}},
          {"weights", weights},
          {"input_activations", inputs},
          {"output_activations", nullptr},
          {"format", format}};
}

class Quantizer {
 public:
  Quantizer(const std::string& model, QuantizedForm form, const std::string& out)
      : files_(model::ModelFiles::directory(model)),
        checkpoint_(model::Checkpoint::open(*files_)),
        model_(model),
        out_(out),
        coder_{form, 128} {
    if (model::quantization_of(*files_)) throw StartError(model + " is quantised already: give the original");
    choose_matrices();
  }

  QuantizedCheckpoint run(const std::function<void(std::uint64_t, std::uint64_t)>& on_progress) {
    std::error_code error;
    fs::create_directories(out_, error);
    if (error) throw StartError(fmt::format("{}: cannot be made: {}", out_, error.message()));
    QuantizedCheckpoint result{.bytes_before = checkpoint_.bytes(), .num_matrices = chosen_.size()};
    std::map<std::string, std::vector<TensorToWrite>> shards = shards_of();
    for (const auto& [file, tensors] : shards) {
      for (const TensorToWrite& tensor : tensors) result.bytes += tensor.bytes;
    }
    std::uint64_t done = 0;
    const auto on_written = [&](std::uint64_t bytes) { on_progress(done += bytes, result.bytes); };
    json::object weight_map;
    for (const auto& [file, tensors] : shards) {
      const std::string path = out_ + "/" + file;
      for (const TensorToWrite& tensor : tensors) weight_map[tensor.name] = file;
      if (is_written(path, tensors)) {
        for (const TensorToWrite& tensor : tensors) on_written(tensor.bytes);
      } else {
        write_safetensors(path, tensors, on_written);
      }
    }
    if (shards.size() > 1) {
      write_json("model.safetensors.index.json",
                 {{"metadata", json::object{{"total_size", result.bytes}}}, {"weight_map", weight_map}});
    }
    copy_other_files();
    write_config();
    return result;
  }

 private:
  void choose_matrices() {
    const model::Checkpoint decoder = model::open_decoder(*files_);
    const model::ModelSpec spec = model::fitted(model::load_config(*files_), decoder);
    model::check_weights(spec, decoder);
    const std::set<std::string> linear = linear_layers(spec);
    // A tensor of the decoder lies where the file's own does.
    std::map<const std::byte*, const Tensor*> own;
    for (const auto& [name, tensor] : checkpoint_.tensors()) own[tensor.data.data()] = &tensor;
    for (const auto& [name, tensor] : decoder.tensors()) {
      if (linear.contains(name) && tensor.shape.size() == 2) chosen_.insert(own.at(tensor.data.data())->name);
    }
    if (chosen_.empty()) {
      throw StartError(model_ + " has no linear layers of its own: experts that lie in one tensor are not split");
    }
    if (coder_.form == QuantizedForm::kW4A16) choose_group();
  }

  void choose_group() {
    for (const std::string& name : chosen_) {
      const std::uint64_t inputs = checkpoint_.find(name)->shape[1];
      while (inputs % coder_.group != 0) coder_.group /= 2;
      if (coder_.group < 32) {
        throw StartError(fmt::format("{}: tensor '{}' has {} inputs; w4a16 needs a multiple of 32: take w8a8 or fp8",
                                     model_, log_safe(name), inputs));
      }
    }
  }

  std::map<std::string, std::vector<TensorToWrite>> shards_of() const {
    std::map<std::string, std::vector<TensorToWrite>> shards;
    for (const auto& [name, tensor] : checkpoint_.tensors()) {
      std::vector<TensorToWrite>& shard = shards[fs::path(tensor.file).filename()];
      if (chosen_.contains(name)) {
        add_quantized(tensor, coder_, shard);
      } else {
        shard.push_back({name, tensor.dtype, tensor.shape, tensor.data.size(), tensor.data});
      }
    }
    return shards;
  }

  // Modules that other programs would take for linear layers in fewer bits.
  json::array ignored() const {
    json::array names;
    for (const auto& [name, tensor] : checkpoint_.tensors()) {
      if (chosen_.contains(name) || tensor.shape.size() != 2 || !name.ends_with(kWeight)) continue;
      names.emplace_back(name.substr(0, name.size() - kWeight.size()));
    }
    if (checkpoint_.find("lm_head.weight") == nullptr) names.emplace_back("lm_head");
    return names;
  }

  void write_json(const std::string& name, const json::object& object) const {
    write_file(out_ + "/" + name, [&](std::ostream& stream) { stream << json::serialize(object) << "\n"; });
  }

  void write_config() const {
    const model::FileBytes bytes = files_->require("config.json");
    json::object config = model::parse_object({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                              files_->describe("config.json"));
    const json::object scheme = scheme_of(coder_.form, coder_.group);
    config["quantization_config"] = json::object{{"quant_method", "compressed-tensors"},
                                                 {"format", scheme.at("format")},
                                                 {"config_groups", json::object{{"group_0", scheme}}},
                                                 {"ignore", ignored()},
                                                 {"kv_cache_scheme", nullptr},
                                                 {"quantization_status", "compressed"}};
    write_json("config.json", config);
  }

  // Tokenizer, templates, settings: all but weights and config.json.
  void copy_other_files() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(model_)) {
      const std::string name = entry.path().filename();
      const bool is_weights = name.ends_with(".safetensors") || name.ends_with(".index.json") ||
                              name.ends_with(".bin") || name.ends_with(".gguf");
      if (is_weights || name == "config.json" || name.starts_with(".") || !entry.is_regular_file()) continue;
      std::error_code error;
      fs::copy_file(entry.path(), fs::path(out_) / name, fs::copy_options::overwrite_existing, error);
      if (error) throw StartError(fmt::format("{}/{}: cannot be written: {}", out_, name, error.message()));
    }
  }

  std::unique_ptr<model::ModelFiles> files_;
  model::Checkpoint checkpoint_;
  std::string model_;
  std::string out_;
  Coder coder_;
  std::set<std::string> chosen_;  // names in the files
};

}  // namespace

QuantizedCheckpoint quantize_checkpoint(
    const std::string& model, QuantizedForm form, const std::string& out,
    const std::function<void(std::uint64_t done, std::uint64_t size)>& on_progress) {
  std::error_code error;
  if (fs::equivalent(model, out, error)) throw StartError(out + " is the model's own directory: give another --out");
  return Quantizer(model, form, out).run(on_progress);
}

}  // namespace quire::app
