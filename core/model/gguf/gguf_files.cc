#include "core/model/gguf/gguf_files.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/gguf/gguf_config.h"
#include "core/model/gguf/gguf_set.h"
#include "core/model/gguf/gguf_source.h"
#include "core/model/gguf/gguf_tokenizer.h"
#include "core/model/source/safetensors.h"

namespace quire::model {
namespace {

namespace fs = std::filesystem;

std::string base_name(const std::string& path) { return fs::path(path).filename().string(); }

class GgufModelFiles final : public ModelFiles {
 public:
  explicit GgufModelFiles(const std::string& path) : set_(path), source_(set_), numbers_(numbers_in_metadata(set_)) {}

  std::optional<FileBytes> find(std::string_view name) const override {
    if (const MappedFile* mapped = set_.mapped(name)) return mapped->bytes();
    const auto known = made_.find(name);
    if (known != made_.end()) return bytes_of(known->second);
    std::optional<std::string> text;
    if (name == "config.json") text = gguf_config_json(set_);
    if (name == "generation_config.json") text = gguf_generation_config_json(set_);
    if (name == "tokenizer.json") text = gguf_tokenizer_json(set_.metadata());
    if (name == "tokenizer_config.json") text = gguf_tokenizer_config_json(set_.metadata());
    if (!text) return std::nullopt;
    return bytes_of(made_.emplace(name, *std::move(text)).first->second);
  }

  std::optional<FileStamp> stamp(std::string_view name) const override {
    const MappedFile* mapped = set_.mapped(name);
    return mapped == nullptr ? std::nullopt : std::optional(mapped->stamp());
  }

  std::string describe(std::string_view) const override { return set_.metadata().name(); }

  void release(FileBytes bytes) const override { release_pages(bytes); }

  std::optional<NamedTensors> tensors() const override {
    NamedTensors out;
    for (const auto& file : set_.files()) {
      out.files.push_back(base_name(file->name()));
      for (const GgufTensor& tensor : file->tensors()) {
        if (const std::string known = explain_gguf_type(tensor.dtype); !known.empty()) {
          throw StartError(fmt::format("{}: tensor '{}' has type {}", file->name(), log_safe(tensor.name), known));
        }
        if (is_of_nvfp4(tensor.name)) continue;
        if (is_stacked(tensor)) {
          add_stacked(tensor, file->name(), out.tensors);
        } else {
          out.tensors.push_back({tensor.name, tensor.dtype, shape_of(tensor), tensor.data, file->name(),
                                 factors_of(tensor), block_format(tensor.dtype)});
        }
      }
    }
    for (const GgufNumber& number : numbers_) {
      out.tensors.push_back(
          {number.tensor, "F32", number.shape, std::as_bytes(std::span(&number.value, 1)), set_.metadata().name()});
    }
    return out;
  }

  void fit(ModelSpec& spec) const override { fit_to_gguf(set_, spec); }

 private:
  // True for "x.scale" and "x.input_scale" beside an NVFP4 matrix "x.weight": its factor, and one of its input that is
  // for products in NVFP4.
  bool is_of_nvfp4(std::string_view name) const {
    for (const std::string_view ending : {".scale", ".input_scale"}) {
      if (!name.ends_with(ending)) continue;
      const GgufTensor* matrix = source_.find(std::string(name.substr(0, name.size() - ending.size())) + ".weight");
      return matrix != nullptr && matrix->dtype == "NVFP4";
    }
    return false;
  }
  std::vector<float> factors_of(const GgufTensor& tensor) const {
    constexpr std::string_view kWeight = ".weight";
    if (tensor.dtype != "NVFP4" || !tensor.name.ends_with(kWeight)) return {};
    const GgufTensor* scale = source_.find(tensor.name.substr(0, tensor.name.size() - kWeight.size()) + ".scale");
    if (scale == nullptr) return {};
    std::vector<float> numbers = source_.numbers(*scale);
    const std::uint64_t matrices = tensor.shape.size() == 3 ? tensor.shape.front() : 1;
    if (numbers.size() != matrices) {
      source_.refuse_tensor(*scale, fmt::format("has {} numbers; expected {}", numbers.size(), matrices));
    }
    return numbers;
  }

  // A matrix of one row is a vector to programs that do not count its rows.
  static std::vector<std::uint64_t> shape_of(const GgufTensor& tensor) {
    if (tensor.shape.size() != 1 || !tensor.name.ends_with(".ffn_gate_inp_shexp.weight")) return tensor.shape;
    return {1, tensor.shape.front()};
  }

  // Gemma 3n's matrices of its streams, which lie in one tensor: "altup_proj.0.weight" and so on.
  static bool is_stacked(const GgufTensor& tensor) {
    return tensor.shape.size() == 3 &&
           (tensor.name == "altup_proj.weight" || tensor.name == "altup_unembd_proj.weight");
  }
  static std::optional<backend::Format> block_format(std::string_view type) {
    const auto found = backend::block_type_named(type);
    return found ? std::optional(backend::Format::of_blocks(*found)) : std::nullopt;
  }
  static void add_stacked(const GgufTensor& tensor, const std::string& file, std::vector<Tensor>& out) {
    const std::string stem = tensor.name.substr(0, tensor.name.size() - std::string_view("weight").size());
    const std::uint64_t count = tensor.shape.front();
    const std::size_t bytes = count == 0 ? 0 : tensor.data.size() / count;
    for (std::uint64_t i = 0; i < count; ++i) {
      out.push_back({fmt::format("{}{}.weight", stem, i),
                     tensor.dtype,
                     {tensor.shape[1], tensor.shape[2]},
                     tensor.data.subspan(i * bytes, bytes),
                     file,
                     {},
                     block_format(tensor.dtype)});
    }
  }

  static FileBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

  const GgufSet set_;
  const GgufSource source_;
  const std::vector<GgufNumber> numbers_;
  mutable std::map<std::string, std::string, std::less<>> made_;
};

// By its first bytes: the blobs of other programs' stores have no endings.
bool is_gguf_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  std::ifstream stream(path, std::ios::binary);
  std::array<char, 4> magic{};
  stream.read(magic.data(), magic.size());
  return stream && std::string_view(magic.data(), magic.size()) == "GGUF";
}

// The GGUF models of a directory: of a split one its first part. Towers of images are none.
std::vector<std::string> models_in(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    const std::string name = base_name(path);
    if (!name.ends_with(".gguf") || name.find("mmproj") != name.npos || name.find("imatrix") != name.npos) continue;
    if (parts_of_split(path).front() == path) out.push_back(path);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

bool is_model_path(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) || is_gguf_file(path);
}

std::unique_ptr<ModelFiles> open_model_files(const std::string& path) {
  std::error_code error;
  if (is_gguf_file(path)) return std::make_unique<GgufModelFiles>(path);
  if (!fs::exists(fs::path(path) / "config.json", error)) {
    const std::vector<std::string> models = models_in(path);
    if (models.size() == 1) return std::make_unique<GgufModelFiles>(models.front());
    if (models.size() > 1) {
      std::string names;
      for (const std::string& model : models) names += (names.empty() ? "" : ", ") + base_name(model);
      throw StartError(fmt::format("{} holds several GGUF models: give one of {}", path, names));
    }
  }
  return ModelFiles::directory(path);
}

}  // namespace quire::model
