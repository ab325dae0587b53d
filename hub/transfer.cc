#include "hub/transfer.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <mutex>

#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::hub {
namespace {

constexpr int kMaxRedirects = 10;
constexpr std::uint64_t kMaxFieldBytes = 64 << 10;
constexpr std::uint64_t kMaxMessageBytes = 16 << 10;  // of the body of an error
constexpr long kMaxTextSeconds = 300;                 // for an answer that is no file

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// "bytes 100-199/200" → 100
std::uint64_t first_byte_of(const std::string& content_range) {
  const std::size_t begin = content_range.find_first_of("0123456789");
  std::uint64_t value = ~std::uint64_t{0};
  if (!content_range.starts_with("bytes ") || begin == content_range.npos) return value;
  std::from_chars(content_range.data() + begin, content_range.data() + content_range.size(), value);
  return value;
}

struct FieldList {
  curl_slist* list = nullptr;
  FieldList() = default;
  FieldList(const FieldList&) = delete;
  FieldList& operator=(const FieldList&) = delete;
  ~FieldList() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

Failure failure_of(CURLcode code, const char* detail, const Settings& settings, const Origin& to) {
  const std::string why = log_safe(*detail != '\0' ? detail : curl_easy_strerror(code));
  const std::string host = log_safe(to.host);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return {fmt::format("{} cannot be found: is this machine on the network? A mirror is set with HF_ENDPOINT, a "
                          "proxy with HTTPS_PROXY; HF_HUB_OFFLINE=1 uses what is on disk",
                          host),
              true};
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return {fmt::format("the proxy cannot be used ({}): check HTTPS_PROXY, ALL_PROXY and NO_PROXY", why), false};
    case CURLE_COULDNT_CONNECT:
      return {fmt::format("{} does not answer ({}): is this machine on the network? A proxy is set with HTTPS_PROXY",
                          log_safe(to.text()), why),
              true};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
      return {fmt::format("the certificate of {} is not trusted ({}): {}", host, why,
                          settings.ca_file.empty()
                              ? "install ca-certificates; if your network has a certificate authority of its own, name "
                                "its PEM file in SSL_CERT_FILE"
                              : "SSL_CERT_FILE names " + log_safe(settings.ca_file)),
              false};
    case CURLE_OPERATION_TIMEDOUT:
      return {fmt::format("{} sent nothing for {} s", host,
                          std::chrono::duration_cast<std::chrono::seconds>(settings.silence).count()),
              true};
    case CURLE_URL_MALFORMAT:
      return {fmt::format("{}: {}", log_safe(to.text()), why), false};
    default:
      return {fmt::format("the connection to {} broke ({})", host, why), true};
  }
}

void begin_curl() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw StartError("libcurl cannot be used on this machine");
  });
}

}  // namespace

std::string Answer::field(std::string_view name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

// The target of libcurl's callbacks.
class Transfer::Request {
 public:
  Request(const std::stop_token& stop, std::uint64_t max_bytes, Sink* sink)
      : stop_(stop), max_bytes_(max_bytes), sink_(sink) {}

  Answer answer;
  bool is_too_long = false;
  bool sink_ended = false;

  static std::size_t on_field(char* data, std::size_t, std::size_t size, void* self) {
    return static_cast<Request*>(self)->take_field({data, size}) ? size : 0;
  }
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    return static_cast<Request*>(self)->take_body({data, size}) ? size : 0;
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Request*>(self)->stop_.stop_requested() ? 1 : 0;
  }

 private:
  bool take_field(std::string_view line) {
    field_bytes_ += line.size();
    if (field_bytes_ > kMaxFieldBytes) return false;
    if (line.starts_with("HTTP/")) {  // of another response: 100, or a proxy's
      answer.fields.clear();
      answer.status = 0;
      const std::size_t blank = line.find(' ');
      if (blank != line.npos) std::from_chars(line.data() + blank + 1, line.data() + line.size(), answer.status);
      return true;
    }
    const std::size_t colon = line.find(':');
    if (colon == line.npos) return true;
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front())) != 0) value.remove_prefix(1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())) != 0) value.remove_suffix(1);
    answer.fields.insert_or_assign(std::move(name), std::string(value));
    return true;
  }

  bool take_body(std::string_view piece) {
    const bool is_file = sink_ != nullptr && (answer.status == 200 || answer.status == 206);
    if (is_file) {
      if (!has_begun_) {
        has_begun_ = true;
        const std::uint64_t offset = answer.status == 200 ? 0 : first_byte_of(answer.field("content-range"));
        if (!sink_->begin(offset)) return end_by_sink();
      }
      return sink_->take(std::as_bytes(std::span(piece))) || end_by_sink();
    }
    const std::uint64_t most = answer.status == 200 ? max_bytes_ : kMaxMessageBytes;
    const std::size_t taken =
        std::min<std::uint64_t>(piece.size(), most - std::min<std::uint64_t>(most, answer.body.size()));
    answer.body.append(piece.substr(0, taken));
    is_too_long = taken < piece.size();
    return !is_too_long;
  }

  bool end_by_sink() {
    sink_ended = true;
    return false;
  }

  const std::stop_token& stop_;
  const std::uint64_t max_bytes_;
  Sink* const sink_;
  std::uint64_t field_bytes_ = 0;
  bool has_begun_ = false;
};

Transfer::Transfer(const Settings& settings, std::stop_token stop)
    : settings_(settings), endpoint_(origin_of(settings.endpoint)), stop_(std::move(stop)) {
  begin_curl();
  handle_ = curl_easy_init();
  if (handle_ == nullptr) throw StartError("libcurl has no memory for a connection");
}

Transfer::~Transfer() { curl_easy_cleanup(handle_); }

Got<Answer> Transfer::get(const std::string& url, std::uint64_t max_bytes) { return run(url, max_bytes, 0, nullptr); }

Got<Answer> Transfer::get_file(const std::string& url, std::uint64_t offset, Sink& sink) {
  return run(url, 0, offset, &sink);
}

Got<Answer> Transfer::run(std::string url, std::uint64_t max_bytes, std::uint64_t offset, Sink* sink) {
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    const Origin to = origin_of(url);
    const bool allows_http =
        endpoint_.scheme == "http" && (settings_.allows_http || (endpoint_.is_loopback() && to.is_loopback()));
    if (to.scheme.empty() || (to.scheme == "http" && !allows_http)) {
      return Failure{fmt::format("{} leads to {}, and only https is followed; --allow-http-hub allows plain HTTP",
                                 settings_.endpoint,
                                 log_safe(to.scheme.empty() ? "another kind of address" : to.text()))};
    }
    Request request(stop_, max_bytes, sink);
    FieldList fields;
    if (to == endpoint_ && !settings_.token.empty()) fields.add("Authorization: Bearer " + settings_.token);
    char detail[CURL_ERROR_SIZE] = "";
    curl_easy_reset(handle_);
    const auto set = [this](CURLoption option, auto value) { curl_easy_setopt(handle_, option, value); };
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_HTTPHEADER, fields.list);
    set(CURLOPT_USERAGENT, "quire");
    set(CURLOPT_ERRORBUFFER, detail);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_QUICK_EXIT, 1L);  // without waiting for a name's lookup
    // A proxy would see the token that plain HTTP sends to this machine.
    if (to.is_loopback()) set(CURLOPT_NOPROXY, "*");
    if (sink == nullptr) set(CURLOPT_TIMEOUT, kMaxTextSeconds);
    set(CURLOPT_FOLLOWLOCATION, 0L);  // by this loop, which decides where the token goes
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_PROTOCOLS_STR, allows_http ? "https,http" : "https");
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!settings_.ca_file.empty()) set(CURLOPT_CAINFO, settings_.ca_file.c_str());
    const long seconds = std::max<long>(1, std::chrono::duration_cast<std::chrono::seconds>(settings_.silence).count());
    set(CURLOPT_CONNECTTIMEOUT, seconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, seconds);
    set(CURLOPT_BUFFERSIZE, 256L << 10);
    set(CURLOPT_HEADERFUNCTION, &Request::on_field);
    set(CURLOPT_HEADERDATA, &request);
    set(CURLOPT_WRITEFUNCTION, &Request::on_body);
    set(CURLOPT_WRITEDATA, &request);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Request::on_progress);
    set(CURLOPT_XFERINFODATA, &request);
    // A file is asked for as it is: a range of a compressed answer would be another range.
    const std::string range = std::to_string(offset) + "-";
    if (offset > 0) set(CURLOPT_RANGE, range.c_str());

    const CURLcode code = curl_easy_perform(handle_);
    if (stop_.stop_requested()) return Failure{.message = "interrupted", .cancelled = true};
    if (request.sink_ended) return Failure{};
    if (request.is_too_long && request.answer.status == 200) {
      return Failure{fmt::format("{} answered more than {} bytes", log_safe(to.host), max_bytes)};
    }
    if (code != CURLE_OK && !request.is_too_long) return failure_of(code, detail, settings_, to);
    if (!is_redirect(request.answer.status)) return std::move(request.answer);
    char* next = nullptr;
    curl_easy_getinfo(handle_, CURLINFO_REDIRECT_URL, &next);
    if (next == nullptr) return Failure{fmt::format("{} redirects to nowhere", log_safe(to.host))};
    url = next;
  }
  return Failure{fmt::format("{} redirects more than {} times", log_safe(endpoint_.host), kMaxRedirects)};
}

}  // namespace quire::hub
