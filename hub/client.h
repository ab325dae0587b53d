// The hub's protocol: the files of a revision with their sizes and hashes, and the files themselves.
// Shape   list(): the commit of a branch or tag, then the pages of its tree. fetch(): one file of a commit, from an
//         offset on.
// Owner   the caller; one object for each thread.
// Thread  one at a time, which blocks.
// Fails   a Failure with the next step: gated or missing repositories, missing revisions, a refused token, an answer
//         that is none of the hub's. list() repeats what may pass; fetch() is one try.
// Source  the Hugging Face hub's /api/models and /resolve, as huggingface_hub uses them.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "hub/model_name.h"
#include "hub/settings.h"
#include "hub/transfer.h"

namespace quire::hub {

struct RepoFile {
  std::string path;  // is_safe_path()
  std::uint64_t size = 0;
  std::string blob;  // is_blob(): names its bytes
};

struct Listing {
  std::string commit;
  std::vector<RepoFile> files;  // sorted by path, each once

  const RepoFile* find(std::string_view path) const;
};

// Counts failures in a row and waits between tries.
class Retries {
 public:
  Retries(const Settings& settings, std::stop_token stop, int max_attempts);

  // Waits for the next try; false: there is none.
  bool again(const Failure& failure);
  void begin_anew() { failures_ = 0; }  // something arrived

 private:
  const Settings& settings_;
  const std::stop_token stop_;
  const int max_attempts_;
  int failures_ = 0;
};

class Client {
 public:
  Client(const Settings& settings, std::stop_token stop);

  // `max_attempts`: of each request.
  Got<Listing> list(const ModelName& name, int max_attempts);
  Got<Answer> fetch(const ModelName& name, const std::string& commit, const RepoFile& file, std::uint64_t offset,
                    Sink& sink);

 private:
  Got<Answer> get(const std::string& url, const ModelName& name, int max_attempts);
  Failure refusal(const Answer& answer, const ModelName& name) const;
  std::string page_of(const ModelName& name) const { return settings_.endpoint + "/" + name.repo; }

  const Settings& settings_;
  const std::stop_token stop_;
  Transfer transfer_;
};

}  // namespace quire::hub
