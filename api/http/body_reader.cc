#include "api/http/body_reader.h"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <utility>

#include "api/http/chunk_lines.h"

namespace quire::api::http {
namespace {

namespace beast_http = boost::beast::http;

// Size of "0\r\n\r\n". Until a chunked body is complete, at least so many bytes of it are still to come. Beast 1.81
// fails an assertion if it is given fewer after the size of a last chunk (found by http_request_fuzz).
constexpr std::size_t kLastChunkBytes = 5;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

}  // namespace

struct BodyReader::Parser {
  beast_http::request_parser<beast_http::string_body> beast;
  ChunkLines chunk_lines;
};

BodyReader::BodyReader(const FramingLimits& limits)
    : parser_(std::make_unique<Parser>()), max_body_bytes_(limits.body_bytes) {
  auto& beast = parser_->beast;
  beast.eager(true);
  beast.header_limit(static_cast<std::uint32_t>(limits.head_bytes));
  beast.body_limit(limits.body_bytes);
}
BodyReader::~BodyReader() = default;

BodyReader::Taken BodyReader::put(std::string_view bytes) {
  Taken taken;
  auto& beast = parser_->beast;
  while (!beast.is_done() && taken.bytes < bytes.size()) {
    boost::system::error_code error;
    std::string_view rest = bytes.substr(taken.bytes);
    const bool in_chunks = beast.is_header_done() && beast.chunked();
    if (in_chunks) {
      if (rest.size() < kLastChunkBytes) return taken;
      const std::optional<std::size_t> allowed = parser_->chunk_lines.allow(rest);
      if (!allowed) {
        taken.refusal = {Fault::kMalformed, "the body's chunks are malformed"};
        return taken;
      }
      if (*allowed == 0) return taken;  // the line is incomplete
      rest = rest.substr(0, *allowed);
    } else if (const std::size_t end = rest.find(kHeadEnd); end != rest.npos) {
      rest = rest.substr(0, end + kHeadEnd.size());  // the head alone: chunk lines are checked before Beast gets them
    }
    const std::size_t n = beast.put(boost::asio::const_buffer(rest.data(), rest.size()), error);
    taken.bytes += n;
    if (in_chunks) parser_->chunk_lines.taken(n);
    if (error == beast_http::error::body_limit) {
      taken.refusal = {Fault::kBodyTooLarge, "the body may have at most " + std::to_string(max_body_bytes_) + " bytes"};
      return taken;
    }
    if (error && error != beast_http::error::need_more) {
      taken.refusal = {Fault::kMalformed,
                       beast.is_header_done() ? "the body's chunks are malformed" : "the header is malformed"};
      return taken;
    }
    if (error || n == 0) return taken;  // Beast needs more bytes
  }
  return taken;
}

bool BodyReader::done() const { return parser_->beast.is_done(); }
std::size_t BodyReader::body_bytes() const { return parser_->beast.get().body().size(); }
std::string BodyReader::field(std::string_view name) const {
  return std::string(std::string_view(parser_->beast.get()[name]));
}
bool BodyReader::has(std::string_view name) const { return parser_->beast.get().count(name) > 0; }
bool BodyReader::repeats(std::string_view name) const { return parser_->beast.get().count(name) > 1; }
std::string BodyReader::all_of(std::string_view name) const {
  std::string all;
  const auto range = parser_->beast.get().equal_range(name);
  for (auto at = range.first; at != range.second; ++at)
    all.append(all.empty() ? "" : ",").append(std::string_view(at->value()));
  return all;
}
std::string BodyReader::take_body() { return std::move(parser_->beast.get().body()); }

}  // namespace quire::api::http
