// API keys of the server, from --api-key-file and --api-key: read at start, and again by reload().
// Owner   the command; outlives the Server.
// Thread  the constructor: main. reload(): any, one call at a time. table(): any.
// Fails   the constructor: StartError with all problems of the file, each with its line and field. reload(): the keys
//         stay as they were, and the reason is logged. No message contains a key or a hash.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/limits/key_table.h"
#include "core/base/result.h"
#include "core/concurrent/latest.h"

namespace quire::app {

class ApiKeys {
 public:
  // If both are empty, no request needs a key.
  ApiKeys(std::string file, const std::vector<std::string>& plain);

  // Null: no request needs a key.
  const concurrent::Latest<api::keys::KeyTable>* table() const { return table_.get(); }

  // Reads the file again. True: the new keys hold from now on. Running requests continue in either case.
  bool reload();

 private:
  Result<std::vector<api::keys::KeyEntry>> read() const;

  const std::string file_;
  std::vector<api::keys::KeyEntry> plain_;
  std::unique_ptr<concurrent::Latest<api::keys::KeyTable>> table_;
};

// Contents of a key file, and whether users other than its owner and group have any access to it.
struct KeyFileText {
  std::string text;
  bool open_to_others = false;
};
Result<KeyFileText> read_key_file(const std::string& path);

}  // namespace quire::app
