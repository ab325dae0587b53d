// A client that sends exactly the bytes it is told to, and reads answers as strictly as it can.
// Fails   every wait ends after 20 s; what went wrong is a test failure.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace quire::api::test {

struct RawResponse {
  int status = 0;
  std::string head;
  std::map<std::string, std::string> fields;  // names in lower case
  std::string body;                           // chunks joined
};

class RawClient {
 public:
  struct Unconnected {};
  explicit RawClient(Unconnected) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {}
  explicit RawClient(std::uint16_t port) : RawClient(Unconnected{}) { connect(port); }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_), buffer_(std::move(other.buffer_)) {}
  ~RawClient() { close(); }

  bool connect(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    return connected_;
  }
  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void half_close() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

  // More bytes into buffer(); false at the end of the stream, a reset, or after `wait_ms`.
  bool read_some(int wait_ms = 20000) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, wait_ms) != 1) return false;
    char bytes[65536];
    const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }
  const std::string& buffer() const { return buffer_; }

  // Until `text` is in the buffer; everything up to its end is taken.
  std::string read_until(std::string_view text) {
    std::size_t at;
    while ((at = buffer_.find(text)) == std::string::npos) {
      if (!read_some()) {
        ADD_FAILURE() << "'" << text << "' did not come; there is: " << buffer_;
        return {};
      }
    }
    return take(at + text.size());
  }

  // The whole answer; `to_head` for an answer to HEAD. Status 0: none came.
  RawResponse read_response(bool to_head = false) {
    RawResponse response;
    while (buffer_.find("\r\n\r\n") == std::string::npos) {
      if (!read_some()) return response;
    }
    response.head = take(buffer_.find("\r\n\r\n") + 4);
    EXPECT_TRUE(response.head.starts_with("HTTP/1.1 ")) << response.head;
    response.status = std::atoi(response.head.c_str() + 9);
    read_fields(response);
    if (to_head || response.status == 100) return response;
    if (response.fields.count("content-length")) {
      const std::size_t length = std::stoul(response.fields["content-length"]);
      while (buffer_.size() < length && read_some()) {
      }
      EXPECT_GE(buffer_.size(), length);
      response.body = take(std::min(length, buffer_.size()));
    } else if (response.fields.count("transfer-encoding")) {
      read_chunks(response);
    } else {
      while (read_some()) {
      }
      response.body = take(buffer_.size());
    }
    return response;
  }

  // True once the server has closed, and no byte came before that.
  bool closed_without_a_byte() {
    const bool more = read_some();
    return !more && buffer_.empty();
  }

 private:
  std::string take(std::size_t bytes) {
    std::string taken = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes);
    return taken;
  }

  static void read_fields(RawResponse& response) {
    std::size_t at = response.head.find("\r\n") + 2;
    while (at < response.head.size() - 2) {
      const std::size_t end = response.head.find("\r\n", at);
      const std::size_t colon = response.head.find(": ", at);
      std::string name = response.head.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      EXPECT_EQ(response.fields.count(name), 0u) << name << " twice";
      response.fields[name] = response.head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
  }

  void read_chunks(RawResponse& response) {
    for (;;) {
      const std::string line = read_until("\r\n");
      if (line.empty()) return;
      const std::size_t size = std::stoul(line, nullptr, 16);
      while (buffer_.size() < size + 2 && read_some()) {
      }
      response.body += take(size);
      EXPECT_EQ(take(2), "\r\n");
      if (size == 0) return;
    }
  }

  int fd_;
  bool connected_ = false;
  std::string buffer_;
};

inline std::string post(std::string_view path, std::string_view json, std::string_view extra_fields = {}) {
  std::string request = "POST ";
  request.append(path).append(" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
  request.append(extra_fields).append("Content-Length: ").append(std::to_string(json.size())).append("\r\n\r\n");
  return request.append(json);
}

inline std::string post_completion(std::string_view json, std::string_view extra_fields = {}) {
  return post("/v1/completions", json, extra_fields);
}

inline std::string get(std::string_view path) {
  return std::string("GET ").append(path).append(" HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

}  // namespace quire::api::test
