#include "core/model/source/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/source/safetensors_header.h"

namespace quire::model {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are read in place: little endian only");

constexpr std::size_t kLengthBytes = 8;

// Bytes per element of the format's whole-byte dtypes; 0: unknown dtype, its length is not checked.
std::uint64_t element_bytes(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 16> kBytes = {{{"BOOL", 1},
                                                                                  {"U8", 1},
                                                                                  {"I8", 1},
                                                                                  {"F8_E5M2", 1},
                                                                                  {"F8_E4M3", 1},
                                                                                  {"F8_E8M0", 1},
                                                                                  {"I16", 2},
                                                                                  {"U16", 2},
                                                                                  {"F16", 2},
                                                                                  {"BF16", 2},
                                                                                  {"I32", 4},
                                                                                  {"U32", 4},
                                                                                  {"F32", 4},
                                                                                  {"F64", 8},
                                                                                  {"I64", 8},
                                                                                  {"U64", 8}}};
  const auto found =
      std::find_if(kBytes.begin(), kBytes.end(), [&](const auto& entry) { return entry.first == dtype; });
  return found == kBytes.end() ? 0 : found->second;
}

bool multiply(std::uint64_t& product, std::uint64_t factor) {
  return !__builtin_mul_overflow(product, factor, &product);
}

[[noreturn]] void refuse(const std::string& file, const HeaderEntry& entry, const std::string& what) {
  throw StartError(file + ": tensor '" + log_safe(entry.name) + "': " + what);
}

void check_length(const std::string& file, const HeaderEntry& entry) {
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : entry.shape) {
    if (!multiply(elements, extent))
      refuse(file, entry, "shape " + shape_text(entry.shape) + " has more than 2^64 elements");
  }
  const std::uint64_t size = element_bytes(entry.dtype);
  if (size == 0) return;
  std::uint64_t expected = elements;
  if (!multiply(expected, size)) refuse(file, entry, "shape " + shape_text(entry.shape) + " has more than 2^64 bytes");
  if (entry.end - entry.begin != expected) {
    refuse(file, entry,
           "holds " + std::to_string(entry.end - entry.begin) + " bytes; " + log_safe(entry.dtype) + " " +
               shape_text(entry.shape) + " needs " + std::to_string(expected));
  }
}

// Checks that the tensors cover the data section exactly: no overlap, no gap, nothing outside.
void check_offsets(const std::string& file, std::vector<HeaderEntry>& entries, std::uint64_t data_bytes) {
  for (const HeaderEntry& entry : entries) {
    const std::string range = "data_offsets [" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
    if (entry.begin > entry.end) refuse(file, entry, range + " end before they begin");
    if (entry.end > data_bytes) {
      refuse(file, entry,
             range + " exceed the file's data section of " + std::to_string(data_bytes) +
                 " bytes; the file is truncated or damaged: fetch it again");
    }
    check_length(file, entry);
  }
  std::stable_sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin < covered)
      refuse(file, entry, "begins at byte " + std::to_string(entry.begin) + ", inside the tensor before it");
    if (entry.begin > covered) {
      refuse(file, entry,
             "begins at byte " + std::to_string(entry.begin) + "; bytes from " + std::to_string(covered) +
                 " on belong to no tensor");
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    throw StartError(file + ": the last " + std::to_string(data_bytes - covered) + " bytes belong to no tensor");
  }
}

}  // namespace

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::uint64_t Tensor::num_elements() const {
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape) elements *= extent;
  return elements;
}

void Tensor::set_coded(backend::Format format, std::shared_ptr<const CodedMatrix> from) {
  coded = format;
  dtype = format.is_blocks()                                  ? std::string(backend::layout_of(format.blocks).name)
          : format.element == backend::Format::Element::kE4M3 ? "F8_E4M3"
                                                              : "I8";
  matrix = std::move(from);
}

std::vector<FileBytes> Tensor::parts() const { return matrix == nullptr ? std::vector{data} : matrix->parts(); }

std::uint64_t Tensor::bytes() const {
  std::uint64_t size = 0;
  for (const FileBytes& part : parts()) size += part.size();
  if (size != 0) return size;
  const auto format = stored_format();
  return format ? backend::stored_bytes(*format, num_elements()) : 0;
}

std::optional<backend::Format> Tensor::format() const {
  if (dtype == "F32") return backend::Format::kF32;
  if (dtype == "BF16") return backend::Format::kBF16;
  if (dtype == "F16") return backend::Format::kF16;
  return std::nullopt;
}

std::optional<backend::BlockType> Tensor::blocks() const {
  return coded && coded->is_blocks() ? std::optional(coded->blocks) : std::nullopt;
}

std::optional<backend::Format> Tensor::stored_format() const { return coded ? coded : format(); }

std::vector<Tensor> parse_safetensors(FileBytes file, const std::string& name) {
  std::uint64_t header_bytes = 0;
  if (file.size() < kLengthBytes) {
    throw StartError(name + " holds " + std::to_string(file.size()) +
                     " bytes; a safetensors file begins with an 8-byte header length");
  }
  std::memcpy(&header_bytes, file.data(), kLengthBytes);
  if (header_bytes > kMaxHeaderBytes) {
    throw StartError(name + ": header length " + std::to_string(header_bytes) + " exceeds the format's limit of " +
                     std::to_string(kMaxHeaderBytes) + "; is this a safetensors file?");
  }
  if (header_bytes > file.size() - kLengthBytes) {
    throw StartError(name + ": header length " + std::to_string(header_bytes) + " exceeds the file of " +
                     std::to_string(file.size()) + " bytes; the file is truncated or damaged: fetch it again");
  }
  const FileBytes header = file.subspan(kLengthBytes, header_bytes);
  const FileBytes data = file.subspan(kLengthBytes + header_bytes);
  std::vector<HeaderEntry> entries =
      parse_safetensors_header({reinterpret_cast<const char*>(header.data()), header.size()}, name);
  check_offsets(name, entries, data.size());

  std::vector<Tensor> tensors;
  tensors.reserve(entries.size());
  for (HeaderEntry& entry : entries) {
    const FileBytes bytes = data.subspan(entry.begin, entry.end - entry.begin);
    tensors.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape), bytes, name});
  }
  return tensors;
}

Checkpoint Checkpoint::of(const ModelFiles& files, NamedTensors named) {
  Checkpoint checkpoint;
  checkpoint.file_ = files.describe(named.files.front());
  checkpoint.files_ = std::move(named.files);
  std::ranges::sort(checkpoint.files_);
  for (Tensor& tensor : named.tensors) checkpoint.tensors_.try_emplace(tensor.name, std::move(tensor));
  return checkpoint;
}

Checkpoint Checkpoint::open(const ModelFiles& files) {
  if (auto named = files.tensors()) return of(files, *std::move(named));
  constexpr std::string_view kSingle = "model.safetensors";
  constexpr std::string_view kIndex = "model.safetensors.index.json";
  const std::optional<FileBytes> index = files.find(kIndex);
  const std::optional<FileBytes> single = files.find(kSingle);
  Checkpoint checkpoint;
  if (index) {
    const std::string_view text(reinterpret_cast<const char*>(index->data()), index->size());
    const ShardOf shard_of = parse_shard_index(text, files.describe(kIndex));
    const auto is_there = [&](const auto& named) { return files.find(named.second).has_value(); };
    if (!single || std::ranges::any_of(shard_of, is_there)) {
      checkpoint.add_shards(files, files.describe(kIndex), shard_of);
      if (single && !std::ranges::binary_search(checkpoint.files_, kSingle)) {
        log_warn("checkpoint", "{} is not read: {} names other files", files.describe(kSingle), checkpoint.file_);
      }
      return checkpoint;
    }
    log_warn("checkpoint", "{} is not read: none of the files that it names exists", files.describe(kIndex));
  }
  if (!single) {
    const std::string known = files.explain_missing(kSingle);
    throw StartError(files.describe(kSingle) + " is missing, and so is " + std::string(kIndex) +
                     (known.empty() ? "; weights are read only from safetensors" : ": " + known));
  }
  return open_file(files, kSingle);
}

Checkpoint Checkpoint::open_file(const ModelFiles& files, std::string_view name) {
  Checkpoint checkpoint;
  checkpoint.file_ = files.describe(name);
  for (Tensor& tensor : parse_safetensors(files.require(name), checkpoint.file_)) {
    checkpoint.tensors_.try_emplace(tensor.name, std::move(tensor));
  }
  checkpoint.files_ = {std::string(name)};
  return checkpoint;
}

// Takes each tensor from the file that weight_map names; a tensor that it does not name, from the first file with one.
void Checkpoint::add_shards(const ModelFiles& files, const std::string& index, const ShardOf& shard_of) {
  file_ = index;
  std::vector<std::string> shards;
  for (const auto& [tensor, shard] : shard_of) shards.push_back(shard);
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  std::vector<std::string> copies;  // ignored copies, as "'tensor' in file"
  for (const std::string& shard : shards) {
    if (shard.find('/') != std::string::npos) {
      throw StartError(file_ + ": weight_map names '" + log_safe(shard) + "'; expected a file of the same directory");
    }
    const std::optional<FileBytes> bytes = files.find(shard);
    if (!bytes) throw StartError(files.describe(log_safe(shard)) + " is missing; " + file_ + " names it");
    for (Tensor& tensor : parse_safetensors(*bytes, files.describe(shard))) {
      const auto named = shard_of.find(tensor.name);
      const bool is_elsewhere = named != shard_of.end() && named->second != shard;
      if (is_elsewhere || tensors_.contains(tensor.name)) {
        copies.push_back("'" + log_safe(tensor.name) + "' in " + tensor.file);
      } else {
        tensors_.emplace(tensor.name, tensor);
      }
    }
  }
  files_ = std::move(shards);
  for (const auto& [name, shard] : shard_of) {
    const Tensor* tensor = find(name);
    if (tensor == nullptr) {
      throw StartError(files.describe(shard) + ": tensor '" + log_safe(name) + "' is missing; " + file_ +
                       " names this file for it");
    }
  }
  if (!copies.empty()) {
    log_warn("checkpoint", "{}: ignored {} copies of tensors in files that it does not name for them, the first: {}",
             file_, copies.size(), copies.front());
  }
}

const Tensor* Checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::uint64_t Checkpoint::num_parameters() const {
  std::uint64_t count = 0;
  for (const auto& [name, tensor] : tensors_) count += tensor.num_elements();
  return count;
}

std::uint64_t Checkpoint::bytes() const {
  std::uint64_t count = 0;
  for (const auto& [name, tensor] : tensors_) count += tensor.bytes();
  return count;
}

}  // namespace quire::model
