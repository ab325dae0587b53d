// The keys of the server: those of --api-key-file and of --api-key, read at start and again when asked.
// Owner   the command; outlives the Server.
// Thread  the constructor: main. reload(): one at a time, any. table(): any.
// Fails   StartError from the constructor, with every problem of the file, its line and its field. reload(): the keys stay as they
//         were, and the log says why. Nothing that is said holds a key or a hash.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/keys/key_table.h"
#include "core/base/result.h"
#include "core/bridge/latest.h"

namespace quire::app {

class ApiKeys {
 public:
  // Both may be empty: then nobody needs a key.
  ApiKeys(std::string file, const std::vector<std::string>& plain);

  // Null where nobody needs a key.
  const bridge::Latest<api::keys::KeyTable>* table() const { return table_.get(); }

  // True: the file was read, and counts from now on. Requests under way go on either way.
  bool reload();

 private:
  Result<std::vector<api::keys::KeyEntry>> read() const;

  const std::string file_;
  std::vector<api::keys::KeyEntry> plain_;
  std::unique_ptr<bridge::Latest<api::keys::KeyTable>> table_;
};

// The text of a file of keys, and whether others than its owner and group may read or change it.
struct KeyFileText {
  std::string text;
  bool open_to_others = false;
};
Result<KeyFileText> read_key_file(const std::string& path);

}  // namespace quire::app
