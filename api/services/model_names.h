// The names of the served model: those that clients are told, and those that requests may also use.
// Shape   listed: at least one; the first stands for a request without a name. `path`: the model's path on the server,
//         which clients that were configured for vLLM send; it is accepted and never told. Empty: none.
// Owner   a value.
// Thread  any; immutable.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace quire::api {

class ModelNames {
 public:
  ModelNames(std::initializer_list<std::string> listed) : ModelNames(std::vector(listed)) {}
  explicit ModelNames(std::vector<std::string> listed, std::string path = {})
      : listed_(std::move(listed)), path_(std::move(path)) {
    CHECK(!listed_.empty());
  }

  const std::vector<std::string>& listed() const { return listed_; }
  const std::string& front() const { return listed_.front(); }
  bool accepts(std::string_view name) const {
    return std::ranges::find(listed_, name) != listed_.end() || (!path_.empty() && name == path_);
  }

 private:
  std::vector<std::string> listed_;
  std::string path_;
};

}  // namespace quire::api
