// quire list: the models in the cache, and whether each can be served.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/config/units.h"
#include "app/hub/local_models.h"
#include "app/model/loaded_model.h"
#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/arch/config.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/source/safetensors.h"
#include "core/model/weight_checks.h"
#include "core/model/weights.h"
#include "hub/pull.h"
#include "hub/removal.h"

namespace quire::app {
namespace {

struct Row {
  hub::CachedRevision revision;
  std::string family;   // model_type of config.json
  std::string why_not;  // empty: it can be served

  std::string names() const {
    std::string text;
    for (const std::string& name : revision.names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? revision.commit.substr(0, 12) : text;
  }
};

std::string family_of(const model::ModelFiles& files) {
  const auto bytes = files.find("config.json");
  if (!bytes) return "";
  boost::system::error_code error;
  const boost::json::value value =
      boost::json::parse({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, error);
  const auto* object = error ? nullptr : value.if_object();
  const auto* found = object == nullptr ? nullptr : object->if_contains("model_type");
  const auto* text = found == nullptr ? nullptr : found->if_string();
  return text == nullptr ? "" : log_safe(std::string(*text));
}

// As serving it would begin, up to the shapes of its tensors. The path of the snapshot is left out of the reason.
Row row_of(const hub::Settings& settings, hub::CachedRevision revision) {
  Row row{std::move(revision), "", ""};
  try {
    const auto files = model::ModelFiles::directory(row.revision.snapshot.string());
    row.family = family_of(*files);
    if (!files->find("tokenizer.json")) {
      throw StartError(
          "it has no tokenizer.json: a draft head for --speculative-config, or a model with a tokenizer in "
          "another form");
    }
    const model::ModelSpec spec = model::load_config(*files);
    const hub::ModelName name{.repo = row.revision.repo, .revision = row.revision.commit};
    if (!hub::find_usable(settings, name)) throw StartError("it is not whole yet: `quire pull` goes on with it");
    const model::Checkpoint checkpoint = model::open_decoder(*files);
    model::check_weights(model::fitted(spec, checkpoint), checkpoint);
    load_tokenizer(*files);
  } catch (const StartError& error) {
    row.why_not = error.what();
    const std::string path = row.revision.snapshot.string() + "/";
    for (std::size_t at = row.why_not.find(path); at != row.why_not.npos; at = row.why_not.find(path)) {
      row.why_not.erase(at, path.size());
    }
  }
  return row;
}

void print_json(const std::vector<Row>& rows) {
  boost::json::array out;
  for (const Row& row : rows) {
    boost::json::array revisions(row.revision.names.begin(), row.revision.names.end());
    out.push_back({{"name", row.revision.repo},
                   {"revisions", revisions},
                   {"commit", row.revision.commit},
                   {"bytes", row.revision.bytes},
                   {"family", row.family},
                   {"can_be_served", row.why_not.empty()},
                   {"why_not", row.why_not},
                   {"path", row.revision.snapshot.string()}});
  }
  fmt::print("{}\n", boost::json::serialize(out));
}

// The first line, as far as a table has room: --json has all of it.
std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 100;
  const std::string line = text.substr(0, text.find('\n'));
  return line.size() <= kLongest ? line : line.substr(0, line.rfind(' ', kLongest)) + " ...";
}

void print_table(const std::vector<Row>& rows) {
  std::size_t name = 4;
  std::size_t revision = 8;
  std::size_t family = 6;
  for (const Row& row : rows) {
    name = std::max(name, row.revision.repo.size());
    revision = std::max(revision, row.names().size());
    family = std::max(family, row.family.size());
  }
  const auto line = [&](const std::string& a, const std::string& b, const std::string& c, const std::string& d,
                        const std::string& e) {
    fmt::print("{:<{}}  {:<{}}  {:>10}  {:<{}}  {}\n", a, name, b, revision, c, d, family, e);
  };
  line("name", "revision", "size", "family", "served");
  for (const Row& row : rows) {
    const std::string reason = shortened(row.why_not);
    line(row.revision.repo, row.names(), bytes_text(row.revision.bytes), row.family,
         row.why_not.empty() ? "yes" : "no: " + reason);
  }
}

void print_names(const hub::Settings& settings) {
  std::string last;
  for (const hub::CachedRevision& revision : hub::cached_revisions(settings.cache)) {
    if (revision.repo != last) fmt::print("{}\n", revision.repo);
    last = revision.repo;
  }
}

}  // namespace

int list(const Config& config, const ListOptions& options) {
  const hub::Settings settings = hub_settings(config);
  if (options.names) {
    print_names(settings);
    return 0;
  }
  std::vector<Row> rows;
  for (hub::CachedRevision& revision : hub::cached_revisions(settings.cache))
    rows.push_back(row_of(settings, std::move(revision)));
  if (options.json) {
    print_json(rows);
  } else if (rows.empty()) {
    fmt::print("no models in {}; `quire pull ORG/NAME` downloads one\n", settings.cache.string());
  } else {
    print_table(rows);
  }
  return 0;
}

}  // namespace quire::app
