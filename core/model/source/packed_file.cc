#include "core/model/source/packed_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/model/source/digest.h"

namespace quire::model {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'q', 'u', 'i', 'r', 'e', 'W', 'T', '\0'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kPieceBytes = std::size_t{2} << 20;
constexpr std::size_t kWeightAlignment = 4096;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint64_t hash = 0;
  std::uint32_t version = kVersion;
  std::uint32_t num_weights = 0;
  std::uint64_t key = 0;
  std::uint64_t checkpoint_digest = 0;
  std::uint64_t weight_bytes = 0;  // of all weights, each rounded up to kWeightAlignment
};
constexpr std::size_t kHashedFrom = offsetof(Header, version);

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Number of pieces in the given total of weight bytes.
std::size_t num_pieces_of(std::size_t weight_bytes) { return (weight_bytes + kPieceBytes - 1) / kPieceBytes; }

// Offset of the weights. Both arguments are bounded by the size of a file that can be mapped, so nothing overflows.
std::size_t first_part_bytes(std::size_t num_weights, std::size_t weight_bytes) {
  return round_up(sizeof(Header) + (num_weights + num_pieces_of(weight_bytes)) * sizeof(std::uint64_t), kPieceBytes);
}

std::uint64_t hash_of_first_part(FileBytes first_part) { return hash_bytes(first_part.subspan(kHashedFrom), 0); }

std::vector<std::uint64_t> numbers_at(FileBytes bytes, std::size_t at, std::size_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::ranges::copy(bytes.subspan(at, count * sizeof(std::uint64_t)),
                    std::as_writable_bytes(std::span(numbers)).begin());
  return numbers;
}

Error no_good(const std::string& why) { return {Code::kInvalidArgument, why, "", 0}; }
Error disk_error(const std::string& what) { return {Code::kInternal, what + ": " + system_error_text(errno), "", 0}; }

// The header, if the file's first part is undamaged and the key is equal.
Result<Header> read_header(FileBytes file, std::uint64_t key) {
  Header header;
  if (file.size() < sizeof(header)) return no_good("it is truncated");
  std::memcpy(&header, file.data(), sizeof(header));
  if (header.magic != kMagic) return no_good("it is not a file of packed weights");
  if (header.version != kVersion) {
    return no_good("its version is " + std::to_string(header.version) + ", and this program reads version " +
                   std::to_string(kVersion));
  }
  // Bounds both, so that no sum below overflows.
  if (header.num_weights > file.size() / sizeof(std::uint64_t) || header.weight_bytes > file.size() ||
      file.size() != first_part_bytes(header.num_weights, header.weight_bytes) + header.weight_bytes) {
    return no_good("its length differs from its header");
  }
  if (hash_of_first_part(file.first(file.size() - header.weight_bytes)) != header.hash) {
    return no_good("its header is damaged");
  }
  if (header.key != key) return no_good("it was made from another checkpoint, or with other settings");
  return header;
}

// Each weight's bytes; nothing if they do not fill `all` exactly.
std::optional<std::vector<FileBytes>> cut(FileBytes all, std::span<const std::uint64_t> sizes) {
  std::vector<FileBytes> weights;
  for (const std::uint64_t bytes : sizes) {
    if (bytes > all.size() || round_up(bytes, kWeightAlignment) > all.size()) return std::nullopt;
    weights.push_back(all.first(bytes));
    all = all.subspan(round_up(bytes, kWeightAlignment));
  }
  if (!all.empty()) return std::nullopt;
  return weights;
}

// The file under its working name, locked (flock) while a process writes it. A file left by a process that died is not
// locked.
class PartFile {
 public:
  explicit PartFile(const std::string& path)
      : path_(path),
        part_((std::filesystem::path(path).parent_path() /
               ("." + std::filesystem::path(path).filename().string() + ".part"))
                  .string()) {}
  ~PartFile() {
    if (mine_) ::unlink(part_.c_str());
    if (fd_ >= 0) ::close(fd_);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  Result<Done> begin() {
    fd_ = ::open(part_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd_ < 0) return disk_error("cannot make " + part_);
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      return errno == EWOULDBLOCK ? Error{Code::kUnavailable, "another process is writing it", "", 0}
                                  : disk_error("cannot lock " + part_);
    }
    // The previous holder of the lock may have renamed the file to its final name; this process must not write it then.
    struct stat opened {
    }, named{};
    if (::fstat(fd_, &opened) != 0 || ::stat(part_.c_str(), &named) != 0 || opened.st_ino != named.st_ino ||
        opened.st_dev != named.st_dev || !S_ISREG(opened.st_mode)) {
      return Error{Code::kUnavailable, "another process has just written it", "", 0};
    }
    mine_ = true;
    mode_ = opened.st_mode;
    if (::ftruncate(fd_, 0) != 0) return disk_error("cannot write " + part_);
    return Done{};
  }

  Result<Done> write(FileBytes bytes, std::size_t at) {
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return disk_error("cannot write " + part_);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      at += static_cast<std::size_t>(written);
    }
    return Done{};
  }

  // Makes the file read-only, since servers map it: an edit in place would change a running server's weights.
  Result<Done> publish() {
    if (::fsync(fd_) != 0) return disk_error("cannot write " + part_);
    if (::fchmod(fd_, mode_ & 0444) != 0 || std::rename(part_.c_str(), path_.c_str()) != 0) {
      return disk_error("cannot make " + path_);
    }
    mine_ = false;
    return Done{};
  }

 private:
  const std::string path_;
  const std::string part_;
  int fd_ = -1;
  bool mine_ = false;
  mode_t mode_ = 0;
};

// Gathers bytes into pieces; hashes each and writes it, from file offset `at` on.
class PieceWriter {
 public:
  PieceWriter(PartFile& file, std::size_t at) : file_(file), at_(at), piece_(kPieceBytes) {}

  Result<Done> add(FileBytes bytes) {
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), kPieceBytes - filled_);
      std::copy_n(bytes.data(), count, piece_.data() + filled_);
      filled_ += count;
      bytes = bytes.subspan(count);
      if (filled_ < kPieceBytes) continue;
      if (Result<Done> flushed = flush(); !flushed) return flushed;
    }
    return Done{};
  }
  Result<Done> flush() {
    const FileBytes filled(piece_.data(), std::exchange(filled_, 0));
    if (filled.empty()) return Done{};
    hashes_.push_back(hash_bytes(filled, 0));
    return file_.write(filled, std::exchange(at_, at_ + filled.size()));
  }
  const std::vector<std::uint64_t>& hashes() const { return hashes_; }

 private:
  PartFile& file_;
  std::size_t at_;
  std::vector<std::byte> piece_;
  std::size_t filled_ = 0;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace

std::optional<std::uint64_t> packed_key(const ModelFiles& files, const Checkpoint& checkpoint,
                                        std::optional<backend::Format> quantize, const std::string& layout) {
  constexpr std::size_t kSampleBytes = 4096;
  std::string text;
  const auto add = [&](const auto&... parts) { ((text += parts, text += '\n'), ...); };
  add(layout, quantize ? backend::name_of(*quantize) : "as stored");
  for (const std::string& name : checkpoint.files()) {
    const std::optional<FileStamp> stamp = files.stamp(name);
    if (!stamp) return std::nullopt;
    add(name, std::to_string(stamp->bytes), std::to_string(stamp->modified_ns));
  }
  for (const char* name : {"config.json", "hf_quant_config.json", "quantize_config.json", "quant_config.json"}) {
    if (const auto config = files.find(name)) add(std::to_string(hash_bytes(*config, 0)));
  }
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    add(name, tensor.dtype, shape_text(tensor.shape));
    for (const FileBytes& part : tensor.parts()) {
      add(std::to_string(hash_bytes(part.first(std::min(part.size(), kSampleBytes)), 0)));
      files.release(part);
    }
  }
  return hash_bytes(std::as_bytes(std::span(text)), 0);
}

Result<PackedFile> PackedFile::open(const std::string& path, std::uint64_t key, backend::Factory& ops) {
  Result<std::unique_ptr<MappedFile>> mapped = MappedFile::open(path, MappedFile::Pages::kHuge);
  if (!mapped) return mapped.error();
  const FileBytes bytes = (*mapped)->bytes();
  const Result<Header> header = read_header(bytes, key);
  if (!header) return header.error();

  const FileBytes all = bytes.last(header->weight_bytes);
  const std::vector<std::uint64_t> sizes = numbers_at(bytes, sizeof(Header), header->num_weights);
  const std::size_t hashes_at = sizeof(Header) + sizes.size() * sizeof(std::uint64_t);
  const std::vector<std::uint64_t> hashes = numbers_at(bytes, hashes_at, num_pieces_of(all.size()));
  const std::optional<std::vector<FileBytes>> weights = cut(all, sizes);
  if (!weights) return no_good("its table is damaged");

  std::vector<std::uint8_t> is_good(hashes.size());
  ops.for_parts(static_cast<std::uint32_t>(hashes.size()), [&](std::uint32_t i) {
    const std::size_t at = std::size_t{i} * kPieceBytes;
    is_good[i] = hash_bytes(all.subspan(at, std::min(kPieceBytes, all.size() - at)), 0) == hashes[i];
  });
  if (std::ranges::count(is_good, 0) != 0) return no_good("its weights are damaged");

  PackedFile file;
  file.file_ = *std::move(mapped);
  file.checkpoint_digest_ = header->checkpoint_digest;
  file.weights_ = *weights;
  return file;
}

Result<Done> write_packed_file(const std::string& path, std::uint64_t key, std::uint64_t checkpoint_digest,
                               std::span<const FileBytes> weights) {
  Header header;
  header.num_weights = static_cast<std::uint32_t>(weights.size());
  header.key = key;
  header.checkpoint_digest = checkpoint_digest;
  std::vector<std::uint64_t> table;
  for (const FileBytes weight : weights) {
    table.push_back(weight.size());
    header.weight_bytes += round_up(weight.size(), kWeightAlignment);
  }
  std::vector<std::byte> first_part(first_part_bytes(weights.size(), header.weight_bytes));

  PartFile file(path);
  if (Result<Done> begun = file.begin(); !begun) return begun;
  PieceWriter writer(file, first_part.size());
  const std::array<std::byte, kWeightAlignment> zeros{};
  for (const FileBytes weight : weights) {
    if (Result<Done> added = writer.add(weight); !added) return added;
    const std::size_t padding = round_up(weight.size(), kWeightAlignment) - weight.size();
    if (Result<Done> added = writer.add(std::span(zeros).first(padding)); !added) return added;
  }
  if (Result<Done> flushed = writer.flush(); !flushed) return flushed;

  table.insert(table.end(), writer.hashes().begin(), writer.hashes().end());
  std::ranges::copy(std::as_bytes(std::span(table)), first_part.begin() + sizeof(header));
  std::memcpy(first_part.data(), &header, sizeof(header));
  header.hash = hash_of_first_part(first_part);
  std::memcpy(first_part.data(), &header, sizeof(header));
  if (Result<Done> written = file.write(first_part, 0); !written) return written;
  return file.publish();
}

}  // namespace quire::model
