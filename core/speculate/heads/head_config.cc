#include "core/speculate/heads/head_config.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <set>

#include "core/base/log.h"
#include "core/model/rope/rope_config.h"
#include "core/model/source/json_fields.h"
#include "core/speculate/problems.h"

namespace quire::speculate {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMaxWidth = 1u << 22;
constexpr std::uint64_t kMaxVocab = 1u << 20;
constexpr std::uint64_t kMaxAttentionHeads = 1u << 12;
constexpr std::uint64_t kMaxHeadDim = 1u << 10;
constexpr std::uint64_t kMaxLayers = 16;
constexpr std::uint64_t kMaxPositions = (1u << 31) - 1;

// Key in `eagle_config`; true: the head reads several states through an fc.
constexpr const char* kTakesSeveral = "use_aux_hidden_state";

// Keys that the reader below uses.
constexpr std::array kKnown = {"hidden_size",
                               "intermediate_size",
                               "num_hidden_layers",
                               "num_attention_heads",
                               "num_key_value_heads",
                               "head_dim",
                               "vocab_size",
                               "draft_vocab_size",
                               "max_position_embeddings",
                               "rms_norm_eps",
                               "rope_theta",
                               "rope_scaling",
                               "rope_parameters",
                               "original_max_position_embeddings",
                               "attention_bias",
                               "mlp_bias",
                               "bias",
                               "hidden_act",
                               "target_hidden_size",
                               "logit_scale",
                               "tie_word_embeddings",
                               "eagle_aux_hidden_state_layer_ids",
                               "eagle_config",
                               "norm_before_residual",
                               "norm_before_fc",
                               "fc_norm",
                               "norm_output",
                               "num_aux_hidden_states",
                               "speculators_model_type",
                               "architectures",
                               "model_type",
                               "method",
                               "truncated_vocab_size",
                               "use_sliding_window",
                               "sliding_window",
                               "layer_types",
                               "pretraining_tp"};

// Keys of training, generation and bookkeeping: the forward pass does not use them.
constexpr std::array kHarmlessOfDraft = {
    "_name_or_path", "attention_dropout",   "attn_implementation", "_attn_implementation", "auto_map",
    "bos_token_id",  "eos_token_id",        "pad_token_id",        "unk_token_id",         "dtype",
    "torch_dtype",   "embed_requires_grad", "hidden_dropout",      "initializer_range",    "max_window_layers",
    "name_or_path",  "speculators_config",  "speculators_version", "target_model_type",    "transformers_version",
    "use_cache"};

bool among(std::string_view key, std::span<const char* const> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Keys of an object with the layer's own keys: of `speculators`, and of vLLM's EAGLE checkpoints.
constexpr const char* kWrappers[] = {"transformer_layer_config", "model"};

// The config with the wrapped keys moved up beside the head's own.
json::object flattened(json::object object, const std::string& name) {
  const auto* wrapper = std::ranges::find_if(kWrappers, [&](const char* key) { return object.contains(key); });
  if (wrapper == std::end(kWrappers)) return object;
  const json::value& layer = object.at(*wrapper);
  if (!layer.is_object()) throw StartError(name + ": key '" + *wrapper + "' is not an object");
  const json::object inner = layer.get_object();
  object.erase(*wrapper);
  for (const auto& [key, value] : inner) {
    const json::value* outer = object.if_contains(key);
    if (outer == nullptr || outer->is_null() || key == "architectures" || key == "model_type") object[key] = value;
  }
  return object;
}

class Reader {
 public:
  Reader(const model::JsonFields& fields, const model::ModelSpec& target) : fields_(fields), target_(target) {}

  HeadConfig read(const std::string& name) {
    check_keys();
    HeadConfig config;
    config.kind = kind();
    read_shapes(config);
    read_flags(config);
    read_states(config);
    check_against_target(config);
    problems_.throw_if_any(name + " is not the config of a supported draft head");
    return config;
  }

 private:
  void check_keys() {
    for (const std::string& key : fields_.keys()) {
      if (among(key, kKnown) || among(key, kHarmlessOfDraft)) continue;
      refuse(key, "is an unknown key; it may change what the head computes");
    }
    if (const auto type = value<std::string>([&] { return fields_.optional_string("speculators_model_type"); });
        type && *type != "eagle3") {
      mismatch("speculators_model_type", "expected \"eagle3\"");
    }
    if (const auto method = value<std::string>([&] { return fields_.optional_string("method"); });
        method && *method != "eagle" && *method != "eagle3") {
      mismatch("method", "expected \"eagle\" or \"eagle3\"");
    }
    if (fields_.has("truncated_vocab_size") && uint("truncated_vocab_size", 1, kMaxVocab, 0) != target_.vocab) {
      mismatch("truncated_vocab_size", "expected the target's vocab_size, " + std::to_string(target_.vocab));
    }
    if (const auto act = value<std::string>([&] { return fields_.optional_string("hidden_act"); });
        act && *act != "silu" && *act != "swish") {
      mismatch("hidden_act", "expected \"silu\"");
    }
    if (flag("use_sliding_window"))
      mismatch("use_sliding_window", "expected false: the head's layer attends to all positions");
    if (uint("pretraining_tp", 0, 64, 1) > 1) mismatch("pretraining_tp", "expected 1");
    for (const std::string& type : strings("layer_types")) {
      if (type != "full_attention")
        mismatch("layer_types", "expected full_attention: the head's layer attends to all positions");
    }
  }

  // Kind by the keys that only EAGLE-3 heads have; loading the weights confirms it.
  HeadKind kind() {
    for (const std::string& name : strings("architectures")) {
      for (const char* known : {"eagle3", "Eagle3", "EAGLE3"}) {
        if (name.find(known) != std::string::npos) return HeadKind::kEagle3;
      }
    }
    if (value<std::string>([&] { return fields_.optional_string("method"); }) == "eagle3") return HeadKind::kEagle3;
    for (const char* key : {"speculators_model_type", "draft_vocab_size", "eagle_aux_hidden_state_layer_ids",
                            "num_aux_hidden_states", "norm_before_residual", "norm_output"}) {
      if (fields_.has(key)) return HeadKind::kEagle3;
    }
    return HeadKind::kEagle;
  }

  void read_shapes(HeadConfig& config) {
    config.hidden = required("hidden_size", kMaxWidth);
    config.ffn = required("intermediate_size", kMaxWidth);
    config.num_layers = uint("num_hidden_layers", 1, kMaxLayers, 1);
    config.num_heads = required("num_attention_heads", kMaxAttentionHeads);
    config.num_kv_heads = uint("num_key_value_heads", 1, config.num_heads, config.num_heads);
    if (config.num_heads % config.num_kv_heads != 0) {
      mismatch("num_key_value_heads",
               "expected a divisor of num_attention_heads = " + std::to_string(config.num_heads));
    }
    config.head_dim = uint("head_dim", 1, kMaxHeadDim, config.hidden / config.num_heads);
    if (config.head_dim % 2 != 0 || config.head_dim == 0) {
      refuse("head_dim", "(given, or hidden_size / num_attention_heads) is " + std::to_string(config.head_dim) +
                             "; expected an even number");
    }
    config.vocab = uint("vocab_size", 1, kMaxVocab, target_.vocab);
    config.draft_vocab = uint("draft_vocab_size", 1, config.vocab, config.vocab);
    config.target_hidden = uint("target_hidden_size", 1, kMaxWidth, target_.hidden);
    config.norm_eps = number("rms_norm_eps", 0.0, 1.0, 1e-6f);
    config.logit_scale = number("logit_scale", 1e-6, 1e6, 1.0f);
    const std::uint32_t max_positions = uint("max_position_embeddings", 1, kMaxPositions, 2048);
    config.rope = problems_.take([&] { return model::read_rope(fields_, max_positions); }, model::RopeConfig{});
  }

  void read_flags(HeadConfig& config) {
    config.attention_bias = flag("attention_bias");
    config.mlp_bias = flag("mlp_bias");
    config.norm_before_fc = flag("norm_before_fc");
    config.fc_norm = flag("fc_norm");
    config.norm_before_residual = flag("norm_before_residual");
    config.norm_output = flag("norm_output");
    flag("bias");                 // of fc; its tensor decides
    flag("tie_word_embeddings");  // its tensor decides
    if (config.kind == HeadKind::kEagle && config.norm_before_fc) mismatch("norm_before_fc", "expected false");
    if (config.kind == HeadKind::kEagle && config.fc_norm) mismatch("fc_norm", "expected false");
    if (config.norm_before_fc && config.fc_norm) {
      mismatch("fc_norm", "expected false: norm_before_fc already normalises the same states");
    }
  }

  // The ids are boundaries (layers whose input is read: usually 2, n / 2, n - 3), or one less (layers whose output is
  // read). A first id of 1 means the latter.
  void read_states(HeadConfig& config) {
    if (config.kind == HeadKind::kEagle) return;
    const std::uint32_t n = target_.num_layers();
    std::vector<std::uint64_t> ids = layer_ids(fields_);
    bool last_alone = false;
    if (const auto inner = value<model::JsonFields>([&] { return fields_.optional_object("eagle_config"); })) {
      if (ids.empty()) ids = layer_ids(*inner);
      check_eagle_config(*inner);
      last_alone = !problems_.take([&] { return inner->optional_bool(kTakesSeveral).value_or(true); }, true);
    }
    if (last_alone) return check_last_alone(config, ids);
    if (ids.empty()) ids = {2, n / 2, n >= 3 ? n - 3 : 0};
    const std::uint64_t more = ids.front() == 1 ? 1 : 0;
    for (const std::uint64_t id : ids) config.boundaries.push_back(static_cast<std::uint32_t>(id + more));
    const bool ascend =
        std::ranges::adjacent_find(config.boundaries, std::greater_equal<>()) == config.boundaries.end();
    if (!ascend || config.boundaries.back() > n) {
      std::string text;
      for (const std::uint32_t boundary : config.boundaries)
        text += (text.empty() ? "" : ", ") + std::to_string(boundary);
      refuse("eagle_aux_hidden_state_layer_ids", "(given, or by default) names the states before layers " + text +
                                                     "; expected ascending layers up to " + std::to_string(n) +
                                                     ", the target's number of layers");
    }
    const std::uint64_t said = uint("num_aux_hidden_states", 1, 64, static_cast<std::uint32_t>(ids.size()));
    if (said != ids.size()) mismatch("num_aux_hidden_states", "expected " + std::to_string(ids.size()));
  }

  std::vector<std::uint64_t> layer_ids(const model::JsonFields& fields) {
    return problems_.take([&] { return fields.uint_or_list("eagle_aux_hidden_state_layer_ids", 1u << 16); },
                          std::vector<std::uint64_t>{});
  }

  // Without an fc, settings of its input states make no sense.
  void check_last_alone(const HeadConfig& config, const std::vector<std::uint64_t>& ids) {
    const std::string because = std::string(kTakesSeveral) + " is false: the head reads only the last state";
    if (!ids.empty()) mismatch("eagle_aux_hidden_state_layer_ids", "expected none; " + because);
    if (uint("num_aux_hidden_states", 1, 64, 1) != 1) mismatch("num_aux_hidden_states", "expected 1; " + because);
    if (config.norm_before_fc) mismatch("norm_before_fc", "expected false; " + because);
    if (config.fc_norm) mismatch("fc_norm", "expected false; " + because);
    if (config.hidden != target_.hidden) {
      mismatch("hidden_size", "expected the target's, " + std::to_string(target_.hidden) + "; " + because);
    }
  }

  void check_eagle_config(const model::JsonFields& inner) {
    struct Expected {
      const char* key;
      bool value;
    };
    // Properties that all supported heads have, as some files state them.
    static constexpr std::array kExpected = {Expected{"use_input_layernorm_in_first_layer", true},
                                             Expected{"use_last_layernorm", true}, Expected{"use_mtp_layernorm", false},
                                             Expected{"next_layer_regular", true}};
    for (const std::string& key : inner.keys()) {
      if (key == "eagle_aux_hidden_state_layer_ids" || key == kTakesSeveral) continue;
      problems_.take(
          [&] {
            const auto* const known = std::ranges::find(kExpected, key, &Expected::key);
            if (known == kExpected.end()) inner.refuse(key, "is an unknown key; it may change what the head computes");
            if (inner.optional_bool(key).value_or(known->value) != known->value) {
              inner.mismatch(key, std::string("expected ") + (known->value ? "true" : "false"));
            }
            return true;
          },
          true);
    }
  }

  void check_against_target(const HeadConfig& config) {
    if (config.vocab != target_.vocab)
      mismatch("vocab_size", "expected the target's, " + std::to_string(target_.vocab));
    if (config.target_hidden != target_.hidden) {
      mismatch("target_hidden_size", "expected the target's hidden_size, " + std::to_string(target_.hidden));
    }
    if (config.kind == HeadKind::kEagle && config.hidden != target_.hidden) {
      mismatch("hidden_size", "expected the target's, " + std::to_string(target_.hidden) +
                                  ": the target's output matrix reads the head's output");
    }
  }

  template <typename Value, typename Read>
  std::optional<Value> value(Read&& read) {
    return problems_.take(read, std::optional<Value>());
  }
  bool flag(const char* key) {
    return value<bool>([&] { return fields_.optional_bool(key); }).value_or(false);
  }
  std::uint32_t uint(const char* key, std::uint64_t low, std::uint64_t high, std::uint32_t otherwise) {
    const auto found = value<std::uint64_t>([&] { return fields_.optional_uint(key, low, high); });
    return found ? static_cast<std::uint32_t>(*found) : otherwise;
  }
  // 1, and a problem, if the key is missing: other checks continue with it.
  std::uint32_t required(const char* key, std::uint64_t high) {
    return problems_.take([&] { return fields_.require_uint(key, 1, high); }, std::uint32_t{1});
  }
  float number(const char* key, double low, double high, float otherwise) {
    const auto found = value<double>([&] { return fields_.optional_number(key, low, high); });
    return found ? static_cast<float>(*found) : otherwise;
  }
  std::vector<std::string> strings(const char* key) {
    return value<std::vector<std::string>>([&] { return fields_.optional_strings(key); })
        .value_or(std::vector<std::string>());
  }
  void refuse(std::string_view key, const std::string& what) {
    problems_.take([&]() -> bool { fields_.refuse(key, what); }, false);
  }
  void mismatch(std::string_view key, const std::string& expected) {
    problems_.take([&]() -> bool { fields_.mismatch(key, expected); }, false);
  }

  const model::JsonFields& fields_;
  const model::ModelSpec& target_;
  Problems problems_;
};

}  // namespace

const char* name_of(HeadKind kind) {
  switch (kind) {
    case HeadKind::kEagle:
      return "eagle";
    case HeadKind::kPrefix:
      return "hydra";
    case HeadKind::kEagle3:
      return "eagle3";
  }
  return "";
}

backend::KvShape HeadConfig::kv_shape(std::uint32_t block_tokens, std::uint32_t num_blocks,
                                      backend::KvType type) const {
  backend::KvShape shape;
  shape.layers = backend::kv_layers(num_layers, num_kv_heads, head_dim);
  shape.block_tokens = block_tokens;
  shape.num_blocks = num_blocks;
  shape.type = type;
  return shape;
}

HeadConfig load_head_config(const model::ModelFiles& files, const model::ModelSpec& target) {
  const model::FileBytes bytes = files.require("config.json");
  return parse_head_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, files.describe("config.json"),
                           target);
}

HeadConfig parse_head_config(std::string_view text, const std::string& name, const model::ModelSpec& target) {
  const json::object object = flattened(model::parse_object(text, name), name);
  const model::JsonFields fields(object, name);
  return Reader(fields, target).read(name);
}

}  // namespace quire::speculate
