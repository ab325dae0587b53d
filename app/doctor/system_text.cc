#include "app/doctor/system_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

namespace quire::app::doctor {
namespace {

template <typename T, typename... Base>
std::optional<T> parsed(std::string_view text, Base... base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::vector<std::string> words_in(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

// The rest of the first line that begins with `key`, behind blanks and a colon; empty if there is none.
std::string_view line_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(key)) continue;
    const std::size_t start = line.find_first_not_of(" \t:", key.size());
    return start == line.npos || start == key.size() ? std::string_view() : line.substr(start);
  }
  return {};
}

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, text.find(mark)));
    text.remove_prefix(std::min(text.size(), out.back().size() + 1));
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// "http://user:password@host:3128" → "http://host:3128".
std::string without_user(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t host = scheme == url.npos ? 0 : scheme + 3;
  const std::size_t at = url.substr(0, url.find('/', host)).rfind('@');
  if (at == url.npos) return std::string(url);
  return std::string(url.substr(0, host)) + std::string(url.substr(at + 1));
}

}  // namespace

std::vector<std::string> instruction_sets_in(std::string_view cpuinfo) {
  constexpr std::string_view kKnown[] = {"avx",      "avx2",     "fma",      "f16c",        "avx512f",
                                         "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
                                         "avx_vnni", "amx_int8", "amx_bf16", "asimd",       "sve"};
  std::vector<std::string> flags = words_in(line_of(cpuinfo, "flags"));
  if (flags.empty()) flags = words_in(line_of(cpuinfo, "Features"));  // on ARM
  std::vector<std::string> out;
  for (const std::string_view known : kKnown) {
    if (std::ranges::find(flags, known) != flags.end()) out.emplace_back(known);
  }
  return out;
}

std::optional<std::uint64_t> bytes_in(std::string_view meminfo, std::string_view key) {
  constexpr std::uint64_t kKibi = 1024;
  const std::vector<std::string> words = words_in(line_of(meminfo, std::string(key) + ":"));
  const auto kib = words.empty() ? std::nullopt : parsed<std::uint64_t>(words.front());
  return kib ? std::optional(*kib * kKibi) : std::nullopt;
}

std::string chosen_in(std::string_view setting) {
  const std::size_t open = setting.find('[');
  const std::size_t close = setting.find(']', open == setting.npos ? 0 : open);
  if (open == setting.npos || close == setting.npos) return {};
  return std::string(setting.substr(open + 1, close - open - 1));
}

std::vector<std::uint32_t> numbers_in(std::string_view list) {
  constexpr std::uint32_t kMost = 1u << 16;
  std::vector<std::uint32_t> out;
  while (!list.empty() && std::isspace(static_cast<unsigned char>(list.back())) != 0) list.remove_suffix(1);
  for (const std::string_view range : split(list, ',')) {
    const std::size_t dash = range.find('-');
    const auto first = parsed<std::uint32_t>(range.substr(0, dash));
    const auto last = dash == range.npos ? first : parsed<std::uint32_t>(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMost) return {};
    for (std::uint32_t one = *first; one <= *last; ++one) out.push_back(one);
  }
  return out;
}

std::vector<std::vector<std::uint32_t>> node_cpus(const ReadText& read, const std::vector<std::uint32_t>& usable) {
  std::vector<std::vector<std::uint32_t>> out;
  const std::string root = "/sys/devices/system/node/";
  for (const std::uint32_t node : numbers_in(read(root + "online"))) {
    std::vector<std::uint32_t> cpus = numbers_in(read(root + "node" + std::to_string(node) + "/cpulist"));
    std::erase_if(cpus, [&usable](std::uint32_t cpu) { return std::ranges::find(usable, cpu) == usable.end(); });
    if (!cpus.empty()) out.push_back(std::move(cpus));
  }
  return out;
}

std::optional<double> load_in(std::string_view loadavg) {
  const std::vector<std::string> words = words_in(loadavg);
  return words.empty() ? std::nullopt : parsed<double>(words.front());
}

std::string driver_in(std::string_view version) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 …"
  for (const std::string& word : words_in(line_of(version, "NVRM version"))) {
    if (word.find('.') != word.npos && std::isdigit(static_cast<unsigned char>(word.front())) != 0) return word;
  }
  return {};
}

std::vector<std::uint64_t> listeners_in(std::string_view sockets, std::uint16_t port) {
  constexpr std::size_t kLocalAddress = 1;
  constexpr std::size_t kState = 3;
  constexpr std::size_t kInode = 9;
  constexpr std::string_view kListen = "0A";
  std::vector<std::uint64_t> out;
  for (const std::string_view line : split(sockets, '\n')) {
    const std::vector<std::string> fields = words_in(line);
    if (fields.size() <= kInode || fields[kState] != kListen) continue;
    const std::string_view address = fields[kLocalAddress];
    const auto its_port = parsed<std::uint16_t>(address.substr(std::min(address.size(), address.rfind(':') + 1)), 16);
    const auto inode = parsed<std::uint64_t>(fields[kInode]);
    if (its_port == port && inode) out.push_back(*inode);
  }
  return out;
}

bool Proxies::has_http() const {
  return std::ranges::any_of(variables, [](const auto& one) {
    const std::string name = lower(one.first);
    return name == "http_proxy" || name == "all_proxy";
  });
}

bool Proxies::excepts_loopback() const {
  constexpr std::string_view kLoopback[] = {"*", "127.0.0.1", "127.0.0.0/8", "127.", "localhost"};
  return std::ranges::any_of(split(excepted, ','), [&kLoopback](std::string_view host) {
    const std::size_t start = std::min(host.find_first_not_of(' '), host.size());
    host.remove_prefix(start);
    while (host.ends_with(' ')) host.remove_suffix(1);
    return std::ranges::find(kLoopback, host) != std::end(kLoopback);
  });
}

Proxies proxies_in(const char* const* environment) {
  constexpr std::string_view kNames[] = {"http_proxy", "https_proxy", "all_proxy"};
  Proxies out;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() + 1 >= entry.size()) continue;  // without a value
    const std::string_view value = entry.substr(name.size() + 1);
    if (std::ranges::find(kNames, lower(name)) != std::end(kNames)) {
      out.variables.emplace(name, without_user(value));
    } else if (lower(name) == "no_proxy") {
      out.excepted += (out.excepted.empty() ? "" : ",") + std::string(value);
    }
  }
  return out;
}

}  // namespace quire::app::doctor
