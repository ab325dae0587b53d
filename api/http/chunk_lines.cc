#include "api/http/chunk_lines.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace quire::api::http {
namespace {

constexpr std::size_t kMaxExtension = 256;    // bytes of extensions of a chunk
constexpr std::size_t kMaxExtensions = 4096;  // bytes of extensions of a body
constexpr std::size_t kMaxSizeDigits = 15;
constexpr std::size_t kMaxChunkLine = kMaxSizeDigits + kMaxExtension + 2;

std::optional<std::uint64_t> size_of(std::string_view digits) {
  std::uint64_t size = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, size, 16);
  if (digits.size() > kMaxSizeDigits || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return size;
}

}  // namespace

std::optional<std::size_t> ChunkLines::allow(std::string_view rest) {
  if (ahead_ > 0) return static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), ahead_));
  if (last_) return rest.size();
  const std::size_t begin = first_ ? 0 : 2;  // after the CRLF that ends the chunk before
  const std::size_t end = rest.find('\n', begin);
  if (end == rest.npos) return rest.size() > begin + kMaxChunkLine ? std::nullopt : std::optional<std::size_t>(0);
  if (end == begin || rest[end - 1] != '\r') return std::nullopt;
  const std::string_view line = rest.substr(begin, end - 1 - begin);
  const std::size_t digits = std::min(line.find(';'), line.size());
  const std::optional<std::uint64_t> size = size_of(line.substr(0, digits));
  if (!size || !take_extensions(line.substr(digits))) return std::nullopt;
  first_ = false;
  last_ = *size == 0;
  if (last_) return rest.size();
  ahead_ = end + 1 + *size;
  return static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), ahead_));
}

void ChunkLines::taken(std::size_t bytes) { ahead_ -= std::min<std::uint64_t>(bytes, ahead_); }

bool ChunkLines::take_extensions(std::string_view text) {
  num_bytes_ += text.size();
  if (text.size() > kMaxExtension || num_bytes_ > kMaxExtensions) return false;
  bool in_quotes = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte != '\t' && (byte < 0x20 || byte == 0x7f)) return false;
    if (byte == '"') in_quotes = !in_quotes;
    if (byte == '\\' && in_quotes) ++i;
  }
  return !in_quotes;
}

}  // namespace quire::api::http
