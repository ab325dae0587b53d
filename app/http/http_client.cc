#include "app/http/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/wire/text.h"
#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

constexpr std::string_view kRetryAfter = "retry-after:";
constexpr std::size_t kMaxErrorBytes = std::size_t{1} << 20;  // of an answer that should have come piece by piece

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using FieldList = std::unique_ptr<curl_slist, FreeList>;

void append(FieldList& list, const std::string& line) { list.reset(curl_slist_append(list.release(), line.c_str())); }

void check_ca_file(const std::string& path) {
  if (path.empty()) return;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) throw StartError(fmt::format("{}: {}", path, std::strerror(errno)));
  const std::unique_ptr<X509, void (*)(X509*)> first(PEM_read_X509(file.get(), nullptr, nullptr, nullptr), &X509_free);
  if (first == nullptr) throw StartError(fmt::format("{}: no certificate in PEM form", path));
}

// Empty: those of libcurl.
std::string authorities(const HttpClientOptions& options) {
  const char* of_openssl = std::getenv("SSL_CERT_FILE");
  return !options.ca_file.empty() || of_openssl == nullptr ? options.ca_file : std::string(of_openssl);
}

bool is_this_machine(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

std::string host_in_url(const std::string& host) { return host.find(':') == host.npos ? host : '[' + host + ']'; }

}  // namespace

// One request: the target of libcurl's callbacks.
class HttpClient::Call {
 public:
  Call(CURL* easy, const HttpClientOptions& options, const Take& take) : easy_(easy), options_(options), take_(take) {}

  HttpReply reply;
  bool is_too_long = false;
  char detail[CURL_ERROR_SIZE] = "";

  static std::size_t on_field(char* data, std::size_t, std::size_t size, void* self) {
    return static_cast<Call*>(self)->take_field({data, size}) ? size : 0;
  }
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    return static_cast<Call*>(self)->take_body({data, size}) ? size : 0;
  }

 private:
  bool take_field(std::string_view line) {
    head_bytes_ += line.size();
    is_too_long = head_bytes_ > options_.head_bytes;
    if (line.size() > kRetryAfter.size() && api::http::iequals(line.substr(0, kRetryAfter.size()), kRetryAfter)) {
      reply.retry_after =
          api::http::trim(line.substr(kRetryAfter.size(), line.find_last_not_of("\r\n") + 1 - kRetryAfter.size()));
    }
    return !is_too_long;
  }

  bool take_body(std::string_view piece) {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    reply.status = static_cast<int>(status);
    if (take_ && reply.is_ok()) {
      take_(piece);
      return true;
    }
    const std::uint64_t most = take_ ? kMaxErrorBytes : options_.body_bytes;
    is_too_long = reply.body.size() + piece.size() > most;
    if (!is_too_long) reply.body.append(piece);
    return !is_too_long;
  }

  CURL* const easy_;
  const HttpClientOptions& options_;
  const Take& take_;
  std::size_t head_bytes_ = 0;
};

namespace {

Error failure_of(CURL* easy, CURLcode code, const char* detail, const Url& url) {
  const std::string why = log_safe(*detail != '\0' ? detail : curl_easy_strerror(code));
  const auto failure = [](std::string text, const char* reason = nullptr) {
    return Error{Code::kUnavailable, std::move(text), "", 0, reason};
  };
  long verified = X509_V_OK;
  long system_error = 0;
  curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &verified);
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &system_error);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return failure(fmt::format("the name {} cannot be resolved", log_safe(url.host)));
    case CURLE_COULDNT_CONNECT:
      return failure(fmt::format("connection refused ({})",
                                 system_error != 0 ? std::strerror(static_cast<int>(system_error)) : why));
    case CURLE_PEER_FAILED_VERIFICATION:
      if (verified != X509_V_OK && verified != X509_V_ERR_UNSPECIFIED) {  // the latter: a name that differs
        return failure(
            fmt::format("TLS: the server's certificate is not trusted: {}", X509_verify_cert_error_string(verified)),
            kUntrusted);
      }
      return failure(fmt::format("TLS: the server's certificate is not for the name {}", log_safe(url.host)));
    case CURLE_SSL_CONNECT_ERROR:
      if (why.find("wrong version number") != why.npos) {
        return failure("TLS: the server does not speak TLS on this port; try http://");
      }
      return failure(fmt::format("TLS: the handshake failed ({})", why));
    default:
      return failure(why);
  }
}

}  // namespace

HttpClient::HttpClient(Url url, HttpClientOptions options)
    : url_(std::move(url)), options_(std::move(options)), multi_(curl_multi_init()), easy_(curl_easy_init()) {
  if (multi_ == nullptr || easy_ == nullptr) throw StartError("libcurl cannot be used on this machine");
  check_ca_file(options_.ca_file);
}

HttpClient::~HttpClient() {
  curl_easy_cleanup(easy_);
  curl_multi_cleanup(multi_);
}

void HttpClient::give_up_at(TimePoint time) {
  limit_.store(time);
  curl_multi_wakeup(multi_);
}

Result<HttpReply> HttpClient::send(std::string_view method, std::string_view path, const Fields& fields,
                                   std::string_view body, Duration timeout, const Take& take) {
  CURL* const easy = easy_;
  Call call(easy, options_, take);
  const std::string target =
      fmt::format("{}://{}:{}{}{}", url_.https ? "https" : "http", host_in_url(url_.host), url_.port, url_.path, path);
  const std::string verb(method);
  FieldList lines;
  append(lines, "Expect:");  // a body is sent at once
  append(lines, "Accept:");
  for (const auto& [name, value] : fields) append(lines, fmt::format("{}: {}", name, value));
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, target.c_str());
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, verb.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines.get());
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call.detail);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Call::on_field);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &call);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Call::on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &call);
  if (verb == "HEAD") curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  if (!body.empty()) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.data());
  }
  if (const std::string file = authorities(options_); !file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, file.c_str());  // libcurl keeps a copy
  }
  if (!options_.unix_socket.empty()) {
    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, options_.unix_socket.c_str());
  }
  if (is_this_machine(url_.host)) curl_easy_setopt(easy, CURLOPT_PROXY, "");
  const TimePoint now = SteadyClock().now();
  return run(call, timeout < TimePoint::max() - now ? now + timeout : TimePoint::max());
}

Result<HttpReply> HttpClient::run(Call& call, TimePoint end) {
  CURL* const easy = easy_;
  curl_multi_add_handle(multi_, easy);
  bool late = false;
  for (int running = 1;;) {
    curl_multi_perform(multi_, &running);
    if (running == 0) break;
    const TimePoint now = SteadyClock().now();
    const TimePoint until = std::min(end, limit_.load());
    late = now >= until;
    if (late || call.reply.stopped) break;
    constexpr Duration kLongest = std::chrono::seconds(1);
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(std::min(until - now, kLongest));
    curl_waitfd stop{.fd = options_.stop_fd, .events = CURL_WAIT_POLLIN, .revents = 0};
    curl_multi_poll(multi_, &stop, options_.stop_fd < 0 ? 0 : 1, static_cast<int>(pause.count()), nullptr);
    call.reply.stopped = stop.revents != 0;
  }
  CURLcode result = CURLE_OK;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) result = message->data.result;
  }
  long status = 0;
  long port = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy, CURLINFO_PRIMARY_PORT, &port);
  connected_ = port != 0;
  Error failure = failure_of(easy, result, call.detail, url_);
  curl_multi_remove_handle(multi_, easy);  // closes a connection whose call was ended
  call.reply.status = static_cast<int>(status);
  if (late) return Error{Code::kUnavailable, "no answer in time", "", 0};
  if (call.is_too_long) return Error{Code::kUnavailable, "the answer is too long", "", 0};
  if (result == CURLE_OK || call.reply.stopped) return std::move(call.reply);
  return failure;
}

HttpClient::Fields json_fields(const std::string& key) {
  HttpClient::Fields fields = {{"Content-Type", "application/json"}};
  if (!key.empty()) fields.emplace_back("Authorization", "Bearer " + key);
  return fields;
}

}  // namespace quire::app
