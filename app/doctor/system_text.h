// Readers of the kernel's text files in /proc and /sys, and of proxy variables: text in, facts out.
// Shape   sizes in bytes. A file that does not exist is empty text.
// Thread  any; pure.
// Fails   never: an unknown fact is empty.
// Source  proc(5); Documentation/admin-guide/mm/transhuge.rst and Documentation/ABI/stable/sysfs-devices-node of Linux.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::app::doctor {

// The text of a file.
using ReadText = std::function<std::string(const std::string& path)>;

// Those of /proc/cpuinfo that kernels could use, as Linux names them.
std::vector<std::string> instruction_sets_in(std::string_view cpuinfo);

// The value of "key: 1234 kB" in /proc/meminfo.
std::optional<std::uint64_t> bytes_in(std::string_view meminfo, std::string_view key);

// The word in brackets: "always [madvise] never".
std::string chosen_in(std::string_view setting);

// "0-3,8" as numbers; empty if it is no such list.
std::vector<std::uint32_t> numbers_in(std::string_view list);

// The usable CPUs of each NUMA node that has any.
std::vector<std::vector<std::uint32_t>> node_cpus(const ReadText& read, const std::vector<std::uint32_t>& usable);

// Average number of runnable tasks over a minute.
std::optional<double> load_in(std::string_view loadavg);

// "535.104.05" of /proc/driver/nvidia/version.
std::string driver_in(std::string_view version);

// Inodes of the sockets that listen on a port: /proc/net/tcp or tcp6.
std::vector<std::uint64_t> listeners_in(std::string_view sockets, std::uint16_t port);

// Proxies of http and https requests in the environment, and the hosts that are asked without one.
struct Proxies {
  std::map<std::string, std::string> variables;  // names as set; values without user and password
  std::string excepted;                          // no_proxy

  bool has_http() const;          // of plain http
  bool excepts_loopback() const;  // 127.0.0.1 is asked without one
};
Proxies proxies_in(const char* const* environment);

}  // namespace quire::app::doctor
