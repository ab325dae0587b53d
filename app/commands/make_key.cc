// quire key: creates an API key, prints it once, and writes the line that the server needs, with the key's hash.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "api/limits/key_file.h"
#include "api/limits/secret.h"
#include "app/commands/commands.h"
#include "app/config/api_keys.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

std::string text_before(const std::string& path) {
  if (std::error_code error; !std::filesystem::exists(path, error)) return {};
  Result<KeyFileText> read = read_key_file(path);
  if (!read) throw StartError(fmt::format("--file {}: {}", path, read.error().message));
  return std::move(read->text);
}

// Appends in one write: a server that reads at the same time sees the whole line or none of it.
void append(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool whole = written && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!whole) throw StartError(fmt::format("--file {}: cannot be written: {}", path, std::strerror(error)));
}

}  // namespace

int make_key(const KeyOptions& options) {
  const std::string secret = api::keys::new_secret();
  const std::string line = api::keys::line_of({.name = options.name,
                                               .digest = api::keys::digest_of(secret),
                                               .role = options.role,
                                               .limits = options.limits,
                                               .tenant = options.tenant,
                                               .weight = options.weight});
  const std::string before = options.file.empty() ? std::string() : text_before(options.file);
  const std::string addition = (before.empty() || before.ends_with('\n') ? "" : "\n") + line + "\n";
  const api::keys::KeyFile whole = api::keys::parse_key_file(before + addition);
  if (!whole.problems.empty()) throw StartError(fmt::format("--file {}: {}", options.file, whole.problems.front()));
  if (options.file.empty()) {
    fmt::print("{}\n{}\n", secret, line);
    std::fputs("API key (shown once; store it now) and its line for --api-key-file.\n", stderr);
    return 0;
  }
  append(options.file, addition);
  fmt::print("{}\n", secret);
  fmt::print(stderr,
             "API key for {} (shown once; store it now). Its hash was added to {}. Send SIGHUP to a running server to "
             "load it.\n",
             options.name, options.file);
  return 0;
}

}  // namespace quire::app
