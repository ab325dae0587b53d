#include "core/model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/backend/weights/quantize.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/source/digest.h"
#include "core/model/source/packed_file.h"
#include "core/model/tensor_rows.h"
#include "core/model/weight_checks.h"

namespace quire::model {
namespace {

using Kind = TensorEntry::Kind;

// Arguments of load_weights().
struct Loading {
  backend::Factory& factory;
  const ModelSpec& spec;
  const TensorTable table;
  const Checkpoint& checkpoint;
  const ModelFiles& files;
  const LoadOptions& options;
  bool keeps_packed;  // packed bytes are needed for a packed file
};

// A run of an entry's parts that are packed as one weight: all of them, or one, if their types differ.
struct Run {
  std::size_t first = 0;
  std::size_t last = 0;
};

// Reads the table's entries in order: packs tensors of a checked checkpoint, or adopts the weights of a packed file. A
// tensor is digested and packed, and its pages are released before the next: a file is read once, and little of it is
// in memory at a time. Vectors are small: they always come from the checkpoint.
class WeightReader {
 public:
  WeightReader(const Loading& loading, const PackedFile* packed) : loading_(loading), packed_(packed) {}

  // Nothing if the packed file has other weights than the table.
  std::optional<Weights> read() {
    tell();
    for (const TensorEntry& entry : loading_.table.entries) {
      if (entry.kind == Kind::kMatrix && !read_matrix(entry)) return std::nullopt;
      if (entry.kind != Kind::kMatrix) read_vector(entry);
    }
    if (packed_ != nullptr && next_ != packed_->weights().size()) return std::nullopt;
    tell();
    out_.end(step_bytes_, packed_ != nullptr ? packed_->checkpoint_digest() : digest_, packed_ != nullptr);
    return std::move(out_);
  }

 private:
  const Tensor& tensor(const TensorPart& part) const { return *loading_.checkpoint.find(part.name); }

  void tell() const {
    if (packed_ == nullptr && loading_.options.on_packed) loading_.options.on_packed(done_, size_);
  }

  std::uint64_t bytes_of_tensors() const {
    std::set<std::string_view> seen;
    std::uint64_t bytes = 0;
    for (const TensorPart& part : loading_.table.tensors()) {
      const Tensor* found = loading_.checkpoint.find(part.name);
      if (found != nullptr && seen.insert(found->name).second) bytes += found->bytes();
    }
    return bytes;
  }

  void release(const Tensor& tensor) const {
    for (const FileBytes& part : tensor.parts()) loading_.files.release(part);
  }

  void digest(const TensorPart& part) {
    if (packed_ != nullptr || !digested_.insert(part.name).second) return;
    digest_ += tensor_digest(tensor(part));
    done_ += tensor(part).bytes();
  }

  bool read_matrix(const TensorEntry& entry) {
    const Tensor& first = tensor(entry.parts.front());
    const auto differs = [&](const TensorPart& part) {
      return given(tensor(part)) != given(first) || !std::ranges::equal(tensor(part).columns(), first.columns());
    };
    std::vector<Run> runs = {{0, entry.parts.size()}};
    if (std::ranges::any_of(entry.parts, differs)) {
      runs.clear();
      for (std::size_t i = 0; i < entry.parts.size(); ++i) runs.push_back({i, i + 1});
    }
    for (const Run& run : runs) {
      std::unique_ptr<backend::Weight> weight = packed_ != nullptr ? adopt(entry, run) : pack(entry, run);
      if (weight == nullptr) return false;
      step_bytes_ += step_bytes_of(entry, loading_.spec, weight->bytes());
      const backend::Format format = weight->format();
      const backend::Format stored = given(tensor(entry.parts[run.first]));
      if (format.is_blocks() || keeps_codes(stored, format)) out_.note_codes(format.activation);
      out_.add(entry, std::move(weight));
      tell();
    }
    if (entry.expert != 0) expect_alike(entry);
    return true;
  }

  // Experts of a layer are multiplied together, from rows that are coded for all of them.
  void expect_alike(const TensorEntry& entry) const {
    const backend::WeightList first = out_.list(entry.role, entry.layer);
    const backend::WeightList own = out_.list(entry.role, entry.layer, entry.expert);
    bool is_alike = own.size() == first.size();
    for (std::size_t i = 0; is_alike && i < own.size(); ++i) {
      is_alike = own[i].format() == first[i].format() && own[i].has_columns() == first[i].has_columns();
    }
    if (is_alike) return;
    throw StartError(
        fmt::format("{}: tensor '{}' is stored in another format than that of expert 0 of its layer: {} and {}",
                    tensor(entry.parts.front()).file, log_safe(entry.parts.front().name),
                    backend::name_of(own[0].format()), backend::name_of(first[0].format())));
  }

  backend::Format given(const Tensor& tensor) const { return given_format(tensor, takes_); }

  // The parts of a run have one type.
  backend::Format format_of(const TensorEntry& entry, const Run& run) const {
    const TensorPart& part = entry.parts[run.first];
    return packed_format(entry.role, loading_.spec, tensor(part), loading_.options.quantize, loading_.options.blocks,
                         takes_, part.transposed, rounds_rows_);
  }

  // Coded numbers that the device does not take as they are, or that are quantised anew, are packed from f32; so are
  // plain ones that are to be f32.
  bool widens(const TensorEntry& entry, const Run& run) const {
    const Tensor& first = tensor(entry.parts[run.first]);
    const backend::Format stored = given(first);
    const backend::Format format = format_of(entry, run);
    if (first.coded && entry.parts[run.first].transposed) return true;
    const bool is_plain = !stored.is_blocks() && !has_stored_scales(stored);
    if (is_plain) return stored != format && format == backend::Format::kF32;
    return !takes_(stored) || (has_own_factor(stored) && !format.is_blocks()) ||
           (has_stored_scales(stored) && !keeps_codes(stored, format));
  }

  std::unique_ptr<backend::Weight> pack(const TensorEntry& entry, const Run& run) {
    std::vector<TensorRows> rows;
    std::vector<backend::HostMatrix> matrices;
    std::vector<std::vector<float>> bias_values;
    rows.reserve(run.last - run.first);
    const backend::Format format = format_of(entry, run);
    const bool widens = this->widens(entry, run);
    for (std::size_t i = run.first; i < run.last; ++i) {
      const TensorPart& part = entry.parts[i];
      digest(part);
      rows.emplace_back(tensor(part), part, entry.kind, widens, &last_read_, given(tensor(part)));
      matrices.push_back({rows.back().bytes().data(), rows.back().format(), static_cast<std::uint32_t>(part.num_rows()),
                          static_cast<std::uint32_t>(part.inputs()), widens ? 1.0f : tensor(part).factor(part.index()),
                          widens ? std::span<const std::uint32_t>() : tensor(part).columns()});
      if (!entry.biases.empty()) bias_values.push_back(values(entry.biases[i]));
    }
    const std::vector<std::span<const float>> biases(bias_values.begin(), bias_values.end());
    const auto quantize = format == matrices.front().format ? std::nullopt : std::optional(format);
    std::unique_ptr<backend::Weight> packed = loading_.factory.pack(matrices, biases, quantize);
    for (std::size_t i = run.first; i < run.last; ++i) release(tensor(entry.parts[i]));
    if (!loading_.keeps_packed) packed->free_host_copy();
    return packed;
  }

  std::unique_ptr<backend::Weight> adopt(const TensorEntry& entry, const Run& run) {
    if (next_ == packed_->weights().size()) return nullptr;
    backend::WeightShape shape;
    for (std::size_t i = run.first; i < run.last; ++i) {
      shape.n += static_cast<std::uint32_t>(entry.parts[i].num_rows());
    }
    const TensorPart& first = entry.parts[run.first];
    shape.k = static_cast<std::uint32_t>(first.inputs());
    shape.format = format_of(entry, run);
    shape.has_bias = !entry.biases.empty();
    shape.has_columns = !widens(entry, run) && !tensor(first).columns().empty();
    return loading_.factory.adopt(shape, packed_->weights()[next_++], packed_->owner());
  }

  // A vector's values as f32.
  std::vector<float> values(const TensorPart& part) {
    digest(part);
    const TensorRows rows(tensor(part), part, Kind::kVector);
    std::vector<float> out(rows.size());
    backend::widen(rows.bytes().data(), rows.format(), out);
    release(tensor(part));
    return out;
  }

  void read_vector(const TensorEntry& entry) {
    std::vector<float> all;
    for (const TensorPart& part : entry.parts) {
      const std::vector<float> some = values(part);
      all.insert(all.end(), some.begin(), some.end());
    }
    if (entry.kind == Kind::kNumber) return out_.add(entry, all.front());
    for (float& value : all) value = (value + entry.offset) * entry.factor;
    step_bytes_ += step_bytes_of(entry, loading_.spec, all.size() * sizeof(float));
    out_.add(entry, loading_.factory.upload(all));
  }

  const Loading& loading_;
  const std::function<bool(backend::Format)> takes_ = [this](auto format) { return loading_.factory.takes(format); };
  const std::function<bool(backend::Format)> rounds_rows_ = [this](auto format) {
    return loading_.factory.rounds_rows(format);
  };
  const PackedFile* packed_;  // null: the checkpoint
  std::size_t next_ = 0;      // of the packed file's weights
  std::set<std::string> digested_;
  std::uint64_t digest_ = 0;
  const std::uint64_t size_ = bytes_of_tensors();
  std::uint64_t done_ = 0;  // of size_
  std::size_t step_bytes_ = 0;
  LastRead last_read_;
  Weights out_;
};

// The weights of a packed file; nothing if it cannot be used, with the reason in the log.
std::optional<Weights> read_packed(const Loading& loading, const std::string& path, std::uint64_t key) {
  const Result<PackedFile> file = PackedFile::open(path, key, loading.factory);
  if (!file) {
    if (file.error().code != Code::kNotFound) {
      log_info("packed_cache", "{}: {}; packing again", log_safe(path), file.error().message);
    }
    return std::nullopt;
  }
  std::optional<Weights> weights = WeightReader(loading, &*file).read();
  if (!weights) {
    log_info("packed_cache", "{}: its weights belong to another model; packing again", log_safe(path));
    return std::nullopt;
  }
  for (backend::Weight* weight : weights->matrices()) weight->free_host_copy();
  return weights;
}

void write_packed(const Weights& weights, const std::string& path, std::uint64_t key) {
  std::vector<FileBytes> packed;
  for (const backend::Weight* weight : weights.matrices()) packed.push_back(weight->packed());
  const Result<Done> written = write_packed_file(path, key, weights.digest(), packed);
  if (written) {
    log_info("packed_cache", "{}: written for the next start", log_safe(path));
  } else {
    log_warn("packed_cache", "{}: not written: {}", log_safe(path), written.error().message);
  }
}

}  // namespace

backend::WeightList Weights::list(Role role, std::uint32_t layer, std::uint32_t expert) const {
  const auto found = lists_.find(key_of(role, layer, expert));
  CHECK(found != lists_.end());
  if (found->second.size() == 1) return backend::WeightList(*found->second.front());
  return backend::WeightList(found->second);
}

void Weights::add(const TensorEntry& entry, std::unique_ptr<backend::Weight> weight) {
  lists_[key_of(entry.role, entry.layer, entry.expert)].push_back(weight.get());
  weights_.push_back(std::move(weight));
}

void Weights::add(const TensorEntry& entry, std::unique_ptr<backend::Vector> vector) {
  auto& by_role = entry.kind == Kind::kBias ? bias_of_ : vector_of_;
  by_role[key_of(entry.role, entry.layer)] = vector.get();
  vectors_.push_back(std::move(vector));
}

void Weights::add(const TensorEntry& entry, float number) { number_of_[key_of(entry.role, entry.layer)] = number; }

void Weights::end(std::size_t step_bytes, std::uint64_t digest, bool from_packed_file) {
  step_bytes_ = step_bytes;
  digest_ = digest;
  from_packed_file_ = from_packed_file;
}

bool Weights::has(Role role) const { return lists_.contains(key_of(role, kTop)); }

const backend::Vector* Weights::vector(Role role, std::uint32_t layer) const {
  const auto found = vector_of_.find(key_of(role, layer));
  return found == vector_of_.end() ? nullptr : found->second;
}

const backend::Vector* Weights::bias(Role role, std::uint32_t layer) const {
  const auto found = bias_of_.find(key_of(role, layer));
  return found == bias_of_.end() ? nullptr : found->second;
}

float Weights::number(Role role, std::uint32_t layer) const {
  const auto found = number_of_.find(key_of(role, layer));
  CHECK(found != number_of_.end());
  return found->second;
}

std::vector<backend::Weight*> Weights::matrices() const {
  std::vector<backend::Weight*> out;
  for (const auto& weight : weights_) out.push_back(weight.get());
  return out;
}

std::size_t Weights::packed_bytes() const {
  std::size_t bytes = 0;
  for (const auto& weight : weights_) bytes += weight->bytes();
  for (const auto& vector : vectors_) bytes += vector->size() * sizeof(float);
  return bytes;
}

void Weights::note_codes(BlockActivation activation) {
  if (!block_activation_ || activation > *block_activation_) block_activation_ = activation;
}

std::uint64_t step_bytes_of(const TensorEntry& entry, const ModelSpec& spec, std::uint64_t bytes) {
  if (is_looked_up(entry.role, spec)) return 0;
  if (entry.role != Role::kExpertGateUp && entry.role != Role::kExpertDown) return bytes;
  const backend::RouteRule& rule = spec.layers[entry.layer].experts->rule;
  return bytes * rule.top_k / rule.num_experts;
}

std::optional<backend::Format> quantize_of(Role role, const ModelSpec& spec, std::optional<backend::Format> asked) {
  using backend::Format;
  // Formats with a scale per group leave the head in 8 bits.
  const auto head = asked == Format::kInt4 ? Format::kInt8 : asked == Format::kW4A8 ? Format::kW8A8 : asked;
  if (is_looked_up(role, spec) || is_router(role)) return std::nullopt;
  return role == Role::kHead || role == Role::kEmbedding ? head : asked;
}

backend::Format packed_format(Role role, const ModelSpec& spec, const Tensor& tensor,
                              std::optional<backend::Format> asked, BlockActivation blocks,
                              const std::function<bool(backend::Format)>& takes, bool transposed,
                              const std::function<bool(backend::Format)>& rounds_rows) {
  using backend::Format;
  if (const auto quantized = quantize_of(role, spec, asked)) return *quantized;
  if (transposed && tensor.coded) return Format::kF32;
  const Format stored = given_format(tensor, takes);
  const bool is_exact = is_router(role) || is_looked_up(role, spec) || blocks == BlockActivation::kF32;
  Format own = stored;
  if (stored.is_blocks()) {
    const bool in_floats = is_exact || backend::layout_of(stored.blocks).is_in_floats();
    own = Format::of_blocks(stored.blocks, in_floats ? BlockActivation::kF32 : BlockActivation::kInt8);
    if (!takes(own)) own = Format::of_blocks(stored.blocks, BlockActivation::kF32);
  } else if (stored == Format::kInt8 && !is_exact) {
    const bool per_row = blocks == BlockActivation::kInt8PerRow && tensor.matrix && tensor.matrix->takes_int8_rows();
    own = per_row ? Format::kW8A8PerRow : Format::kW8A8;
  }
  const bool of_experts = role == Role::kExpertRouter || role == Role::kSharedExpertGate;
  if (of_experts && rounds_rows && rounds_rows(own)) return Format::kF32;
  return takes(own) ? own : Format::kF32;
}

Weights load_weights(backend::Factory& factory, const ModelSpec& spec, const ModelFiles& files,
                     const LoadOptions& options) {
  const Checkpoint checkpoint = open_decoder(files);
  // Stored integers lie in another order for products in integers.
  const std::string layout = factory.layout() + (options.blocks == BlockActivation::kF32 ? " times f32" : "");
  const std::optional<std::uint64_t> key =
      options.packed_file.empty() ? std::nullopt : packed_key(files, checkpoint, options.quantize, layout);
  const Loading loading{factory, spec, tensor_table(spec), checkpoint, files, options, key.has_value()};
  if (key) {
    // No check_tied_head(): it compared the head with the embedding when the packed file was written.
    check_headers(spec, loading.table, checkpoint);
    if (std::optional<Weights> read = read_packed(loading, options.packed_file, *key)) return *std::move(read);
  }
  check_weights(spec, checkpoint);
  Weights weights = *WeightReader(loading, nullptr).read();
  if (!key) return weights;
  write_packed(weights, options.packed_file, *key);
  for (backend::Weight* weight : weights.matrices()) weight->free_host_copy();
  return weights;
}

}  // namespace quire::model
