// Result rows of a stage. Each is printed on its own line at once, so that a stage that is ended early loses none.
// Thread  main.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace quire::gpu::measure {

class Rows {
 public:
  void add(boost::json::object row) {
    if (const boost::json::value* ok = row.if_contains("ok"); ok != nullptr && !ok->as_bool()) ++num_failed_;
    std::printf("{\"row\": %s}\n", boost::json::serialize(row).c_str());
    std::fflush(stdout);
    all_.push_back(std::move(row));
  }
  std::uint32_t num_failed() const { return num_failed_; }
  boost::json::array take() { return std::move(all_); }

 private:
  boost::json::array all_;
  std::uint32_t num_failed_ = 0;
};

}  // namespace quire::gpu::measure
