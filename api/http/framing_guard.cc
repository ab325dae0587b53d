#include "api/http/framing_guard.h"

#include <algorithm>
#include <array>
#include <optional>

#include "api/wire/text.h"

namespace quire::api::http {
namespace {

constexpr std::size_t kMaxMethodBytes = 32;
constexpr std::size_t kMaxLengthDigits = 18;  // fits in 63 bits; the body limit is far below

Refusal malformed(std::string message) { return {Fault::kMalformed, std::move(message)}; }

bool is_token_char(char c) {
  return is_alpha(c) || is_digit(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char); }

bool is_value_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}
bool is_target_char(char c) { return c > 0x20 && c < 0x7f; }

// True if the value has only characters of an address and a port: none that makes another parser read a second host or
// a path.
bool is_host(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    return is_alpha(c) || is_digit(c) || std::string_view("-._~:[]%").find(c) != std::string_view::npos;
  });
}

// Header fields about framing, gathered in one pass.
struct Fields {
  std::size_t count = 0;
  std::size_t hosts = 0;
  std::size_t lengths = 0;
  std::size_t encodings = 0;
  std::string_view length;
  std::string_view encoding;
  bool close = false;
  bool keep_alive = false;
  bool expects_continue = false;
};

bool has_list_member(std::string_view list, std::string_view member) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (iequals(trim(list.substr(0, comma)), member)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

std::optional<Refusal> note_field(std::string_view name, std::string_view value, Fields& fields) {
  if (iequals(name, "host")) {
    ++fields.hosts;
    if (!is_host(value)) return malformed("the Host field is not a valid host");
  } else if (iequals(name, "content-length")) {
    ++fields.lengths;
    fields.length = value;
  } else if (iequals(name, "transfer-encoding")) {
    ++fields.encodings;
    fields.encoding = value;
  } else if (iequals(name, "connection")) {
    fields.close = fields.close || has_list_member(value, "close");
    fields.keep_alive = fields.keep_alive || has_list_member(value, "keep-alive");
  } else if (iequals(name, "expect")) {
    if (!iequals(value, "100-continue")) {
      return Refusal{Fault::kUnknownExpectation, "the only supported expectation is 100-continue"};
    }
    fields.expects_continue = true;
  }
  return std::nullopt;
}

std::optional<Refusal> read_fields(std::string_view lines, std::size_t max_fields, Fields& fields) {
  while (!lines.empty()) {
    const std::size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 2);
    if (line.empty()) return std::nullopt;
    if (++fields.count > max_fields) {
      return Refusal{Fault::kHeadTooLarge,
                     "the request has more than " + std::to_string(max_fields) + " header fields"};
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
      return malformed("a header line is not `name: value`");
    }
    const std::string_view value = trim(line.substr(colon + 1));
    if (!std::all_of(value.begin(), value.end(), is_value_char)) {
      return malformed("a header value has a control character");
    }
    if (auto refusal = note_field(line.substr(0, colon), value, fields)) return refusal;
  }
  return malformed("the header has no end");
}

std::optional<Refusal> read_request_line(std::string_view line, Framing& framing) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return malformed("the request line is not `METHOD target HTTP/1.1`");
  framing.method = line.substr(0, first);
  framing.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (framing.method.size() > kMaxMethodBytes || !is_token(framing.method))
    return malformed("the method is not a token");
  if (framing.target.empty() || !std::all_of(framing.target.begin(), framing.target.end(), is_target_char)) {
    return malformed("the request target has an invalid character");
  }
  const bool shaped = version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5]) &&
                      version[6] == '.' && is_digit(version[7]);
  if (!shaped) return malformed("the request line does not end in an HTTP version");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return Refusal{Fault::kUnsupportedVersion, "this server supports HTTP/1.1 and HTTP/1.0"};
  }
  framing.http_1_1 = version == "HTTP/1.1";
  return std::nullopt;
}

std::optional<Refusal> settle_encoding(const Fields& fields, const Framing& framing) {
  if (fields.encodings > 1) return malformed("the request has more than one Transfer-Encoding field");
  if (!framing.http_1_1) return malformed("Transfer-Encoding does not exist in HTTP/1.0");
  if (fields.lengths != 0) return malformed("the request has both Transfer-Encoding and Content-Length");
  if (!iequals(fields.encoding, "chunked")) return malformed("the only supported Transfer-Encoding is `chunked`");
  return std::nullopt;
}

std::optional<Refusal> settle_length(const Fields& fields, const FramingLimits& limits, Framing& framing) {
  if (fields.lengths > 1) return malformed("the request has more than one Content-Length field");
  const std::string_view digits = fields.length;
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) {
    return malformed("Content-Length is not a number");
  }
  for (const char c : digits.substr(0, kMaxLengthDigits)) {
    framing.content_length = framing.content_length * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (digits.size() > kMaxLengthDigits || framing.content_length > limits.body_bytes) {
    return Refusal{Fault::kBodyTooLarge, "the body may have at most " + std::to_string(limits.body_bytes) + " bytes"};
  }
  return std::nullopt;
}

std::optional<Refusal> settle(const Fields& fields, const FramingLimits& limits, Framing& framing) {
  if (fields.hosts > 1 || (framing.http_1_1 && fields.hosts == 0)) {
    return malformed("an HTTP/1.1 request must have exactly one Host field");
  }
  framing.keep_alive = !fields.close && (framing.http_1_1 || fields.keep_alive);
  framing.expects_continue = fields.expects_continue && framing.http_1_1;
  framing.chunked = fields.encodings != 0;
  if (framing.chunked) return settle_encoding(fields, framing);
  if (fields.lengths != 0) return settle_length(fields, limits, framing);
  return std::nullopt;  // with neither of them there is no body, whatever the method (RFC 9112, 6.3)
}

}  // namespace

std::variant<std::size_t, Refusal> find_head_end(std::string_view bytes, std::size_t seen,
                                                 const FramingLimits& limits) {
  if (bytes == "\r") return std::size_t{0};  // half of the empty line that is ignored before a request
  if (!bytes.empty() && !is_token_char(bytes.front())) {
    constexpr char kTlsHandshake = 0x16;
    return malformed(bytes.front() == kTlsHandshake ? "this port speaks plain HTTP: use http://" : "this is not HTTP");
  }
  for (std::size_t at = bytes.find('\n', seen); at != std::string_view::npos; at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') return malformed("a line does not end in CRLF");
    if (bytes.find('\n') == at) {  // a malformed request line is refused at once, not after head_timeout
      Framing framing;
      if (auto refusal = read_request_line(bytes.substr(0, at - 1), framing)) return *refusal;
    }
    if (at >= 3 && bytes.substr(at - 3, 4) == "\r\n\r\n" && at < limits.head_bytes) return at + 1;
  }
  if (bytes.size() >= limits.head_bytes) {
    return Refusal{Fault::kHeadTooLarge, "the header has more than " + std::to_string(limits.head_bytes) + " bytes"};
  }
  return std::size_t{0};
}

std::variant<Framing, Refusal> inspect_head(std::string_view head, const FramingLimits& limits) {
  Framing framing;
  Fields fields;
  const std::size_t end = head.find("\r\n");
  if (end == std::string_view::npos) return malformed("the request line has no end");
  if (auto refusal = read_request_line(head.substr(0, end), framing)) return *refusal;
  if (auto refusal = read_fields(head.substr(end + 2), limits.head_fields, fields)) return *refusal;
  if (auto refusal = settle(fields, limits, framing)) return *refusal;
  return framing;
}

std::string_view target_of(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = std::min(line.find(' '), line.size());
  const std::size_t begin = std::min(first + 1, line.size());
  return line.substr(begin, line.find(' ', begin) - begin);
}

std::string_view path_of(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() >= scheme.size() && iequals(target.substr(0, scheme.size()), scheme)) {
      target.remove_prefix(scheme.size());
      const std::size_t slash = target.find_first_of("/?");
      if (slash == std::string_view::npos || target[slash] == '?') return "/";
      target.remove_prefix(slash);
      break;
    }
  }
  if (!target.starts_with('/')) return {};
  return target.substr(0, target.find_first_of("?#"));
}

}  // namespace quire::api::http
