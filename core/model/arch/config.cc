#include "core/model/arch/config.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/start_error.h"
#include "core/model/arch/architecture.h"
#include "core/model/source/json_fields.h"

namespace quire::model {
namespace {

constexpr std::size_t kMostLetters = 64;  // of a type whose nearest is sought

// Types that are known and not served, and what of them is missing.
struct Unserved {
  std::string_view model_type;
  std::string_view missing;
};
constexpr std::string_view kIndexer = "attention to positions that an indexer chooses";
constexpr std::string_view kRecurrent = "layers with a recurrent state";
constexpr Unserved kUnserved[] = {{"deepseek_v32", kIndexer},
                                  {"glm_moe_dsa", kIndexer},
                                  {"longcat_flash", "layers of two attentions, and experts that return their input"},
                                  {"llama4", "attention within chunks of positions"},
                                  {"llama4_text", "attention within chunks of positions"},
                                  {"mimo_v2_flash", "keys that are wider than values"},
                                  {"qwen3_next", kRecurrent},
                                  {"qwen3_5", kRecurrent},
                                  {"qwen3_5_moe", kRecurrent},
                                  {"mamba", kRecurrent},
                                  {"mamba2", kRecurrent}};

const Architecture* find_architecture(std::string_view model_type) {
  const auto all = architectures();
  const auto found = std::ranges::find(all, model_type, &Architecture::model_type);
  return found == all.end() ? nullptr : &*found;
}

std::string known_types() {
  std::string names;
  for (const Architecture& one : architectures()) names += (names.empty() ? "" : ", ") + std::string(one.model_type);
  for (const Wrapper& one : wrappers()) names += ", " + std::string(one.model_type);
  return names;
}

// Letters to insert, take out or replace to get from one name to the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

// The known type whose name is nearest, with which a model of an unknown one may share most.
std::string_view nearest_type(std::string_view type) {
  std::string_view nearest;
  const auto consider = [&](std::string_view known) {
    if (nearest.empty() || distance(type, known) < distance(type, nearest)) nearest = known;
  };
  for (const Architecture& one : architectures()) consider(one.model_type);
  for (const Wrapper& one : wrappers()) consider(one.model_type);
  return nearest;
}

const Architecture& require_architecture(const JsonFields& fields) {
  const std::string type = fields.optional_string("model_type").value_or("");
  const Architecture* architecture = find_architecture(type);
  if (architecture == nullptr) {
    if (const auto* unserved = std::ranges::find(kUnserved, type, &Unserved::model_type);
        unserved != std::end(kUnserved)) {
      fields.mismatch("model_type", "quire has no " + std::string(unserved->missing) + ", which this model needs");
    }
    const std::string nearest = type.empty() || type.size() > kMostLetters ? "" : std::string(nearest_type(type));
    fields.mismatch("model_type", "expected one of " + known_types() +
                                      (nearest.empty() ? "" : "; the nearest of them is " + nearest));
  }
  return *architecture;
}

void check_class(const JsonFields& fields, std::string_view class_name, std::string_view other_class) {
  const auto names = fields.optional_strings("architectures");
  if (!names || names->empty()) return;
  if (names->size() != 1 || (names->front() != class_name && names->front() != other_class)) {
    fields.mismatch("architectures", "expected [\"" + std::string(class_name) + "\"]");
  }
}

// A wrapper's text_config may leave out the sizes that transformers' configuration class of its type has.
boost::json::object with_sizes(const boost::json::object& text) {
  boost::json::object whole = text;
  const boost::json::value* type = text.if_contains("model_type");
  if (type == nullptr || (*type != "llama" && *type != "mistral")) return whole;
  whole.emplace("hidden_size", 4096);
  whole.emplace("intermediate_size", *type == "llama" ? 11008 : 14336);
  whole.emplace("num_hidden_layers", 32);
  whole.emplace("num_attention_heads", 32);
  whole.emplace("vocab_size", 32000);
  return whole;
}

ModelSpec read_text(const JsonFields& fields, const Wrapper& wrapper) {
  if (const auto text = fields.optional_object("text_config")) {
    const boost::json::object whole = with_sizes(text->object());
    const JsonFields all = text->with(whole);
    return require_architecture(all).read(all);
  }
  if (wrapper.own_text.empty()) fields.refuse("text_config", "is missing; expected the config of the text model");
  return find_architecture(wrapper.own_text)->read(fields);
}

// The text part of a model with images. The outer config says if the output matrix is the embedding.
ModelSpec read_wrapped(const JsonFields& fields, const Wrapper& wrapper) {
  check_class(fields, wrapper.class_name, wrapper.class_name);
  ModelSpec spec = read_text(fields, wrapper);
  spec.architecture = wrapper.class_name;
  spec.tied_by_default = !fields.has("tie_word_embeddings");
  spec.tied_head = fields.optional_bool("tie_word_embeddings").value_or(wrapper.tied);
  if (!wrapper.caps_logits) spec.logit_softcap = 0.0f;
  for (const char* part : {"vision_tower", "multi_modal_projector", "embed_vision", "audio_tower", "embed_audio",
                           "visual", "vision_model", "connector", "image_newline"}) {
    spec.names.skipped.push_back(std::string(part) + ".*");
    spec.names.skipped.push_back("model." + std::string(part) + ".*");
    spec.names.skipped.emplace_back(part);
    spec.names.skipped.push_back("model." + std::string(part));
  }
  return spec;
}

}  // namespace

ModelSpec load_config(const ModelFiles& files) {
  const FileBytes bytes = files.require("config.json");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string name = files.describe("config.json");
  if (!parse_object(text, name).contains("model_type")) {  // a directory of another program
    const std::string known = files.explain_missing("model.safetensors");
    if (!known.empty()) throw StartError(name + ": key 'model_type' is missing: " + known);
  }
  ModelSpec spec = parse_config(text, name);
  files.fit(spec);
  return spec;
}

ModelSpec parse_config(std::string_view text, const std::string& name) {
  const boost::json::object object = parse_object(text, name);
  const JsonFields fields(object, name);
  const std::string type = fields.optional_string("model_type").value_or("");
  for (const Wrapper& wrapper : wrappers()) {
    if (type == wrapper.model_type) return read_wrapped(fields, wrapper);
  }
  const Architecture& architecture = require_architecture(fields);
  check_class(fields, architecture.class_name, architecture.other_class);
  ModelSpec spec = architecture.read(fields);
  spec.architecture = architecture.class_name;
  return spec;
}

}  // namespace quire::model
