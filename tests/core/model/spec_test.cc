// ModelSpec::describe() keeps caches of different arithmetic apart: every field that changes a number is in it. And the
// lengths that a model's RoPE tables reach.
#include "core/model/spec.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/model/arch/config.h"
#include "tests/core/model/family_configs.h"

namespace quire::model::spec_test {
namespace {

using testing::family;

// Three layers, the last with a table of its own.
ModelSpec model() {
  LayerSpec layer;
  layer.attention.num_heads = 4;
  layer.attention.num_kv_heads = 2;
  layer.attention.head_dim = 16;
  layer.attention.scale = 0.25f;
  layer.mlp.width = 96;
  ModelSpec spec;
  spec.model_type = "any";
  spec.hidden = spec.embedding = 64;
  spec.vocab = 100;
  spec.max_positions = 512;
  spec.ropes.resize(2);
  spec.ropes[1].theta = 5e5;
  spec.layers.assign(3, layer);
  spec.layers[2].attention.rope = 1;
  return spec;
}

MixtureSpec mixture() {
  MixtureSpec mixture;
  mixture.rule.num_experts = 8;
  mixture.rule.top_k = 2;
  mixture.expert.width = 32;
  return mixture;
}

template <typename Target>
struct Change {
  const char* name;
  std::function<void(Target&)> apply;
};

const std::vector<Change<ModelSpec>> kOfModel = {
    {"model_type", [](ModelSpec& s) { s.model_type = "other"; }},
    {"hidden", [](ModelSpec& s) { s.hidden = s.embedding = 72; }},
    {"vocab", [](ModelSpec& s) { s.vocab = 101; }},
    {"embedding_scale", [](ModelSpec& s) { s.embedding_scale = 8.0f; }},
    {"fewer layers", [](ModelSpec& s) { s.layers.pop_back(); }},
    {"embedding", [](ModelSpec& s) { s.embedding = 32; }},
    {"no final_norm", [](ModelSpec& s) { s.final_norm.reset(); }},
    {"final_norm.kind", [](ModelSpec& s) { s.final_norm->kind = backend::NormKind::kLayer; }},
    {"final_norm.eps", [](ModelSpec& s) { s.final_norm->eps = 1e-5f; }},
    {"final_norm.bias", [](ModelSpec& s) { s.final_norm->bias = true; }},
    {"norm_offset", [](ModelSpec& s) { s.norm_offset = 1.0f; }},
    {"tied_head", [](ModelSpec& s) { s.tied_head = true; }},
    {"position_embedding", [](ModelSpec& s) { s.position_embedding = PositionEmbedding{}; }},
    {"position_embedding.offset", [](ModelSpec& s) { s.position_embedding = PositionEmbedding{2}; }},
    {"head_bias", [](ModelSpec& s) { s.head_bias = true; }},
    {"logit_scale", [](ModelSpec& s) { s.logit_scale = 0.5f; }},
    {"logit_softcap", [](ModelSpec& s) { s.logit_softcap = 30.0f; }},
};

HeadNormSpec heads(HeadNormSpec::Over over, NormSpec norm = {}) { return {norm, over}; }

const std::vector<Change<LayerSpec>> kOfLayer = {
    {"placement post", [](LayerSpec& l) { l.placement = Placement::kPost; }},
    {"placement sandwich", [](LayerSpec& l) { l.placement = Placement::kSandwich; }},
    {"placement parallel", [](LayerSpec& l) { l.placement = Placement::kParallel; }},
    {"placement post sum", [](LayerSpec& l) { l.placement = Placement::kPostSum; }},
    {"placement parallel with two norms", [](LayerSpec& l) { l.placement = Placement::kParallelNorms; }},
    {"norms_after_rope", [](LayerSpec& l) { l.attention.norms_after_rope = true; }},
    {"norm.kind", [](LayerSpec& l) { l.norm.kind = backend::NormKind::kLayer; }},
    {"norm.eps", [](LayerSpec& l) { l.norm.eps = 1e-5f; }},
    {"norm.bias", [](LayerSpec& l) { l.norm.bias = true; }},
    {"norm.kind and bias",
     [](LayerSpec& l) {
       l.norm = {backend::NormKind::kLayer, l.norm.eps, true};
     }},
    {"residual_scale", [](LayerSpec& l) { l.residual_scale = 0.5f; }},
    {"num_heads", [](LayerSpec& l) { l.attention.num_heads = 8; }},
    {"num_kv_heads", [](LayerSpec& l) { l.attention.num_kv_heads = 1; }},
    {"head_dim", [](LayerSpec& l) { l.attention.head_dim = 64, l.attention.scale = 0.125f; }},
    {"scale", [](LayerSpec& l) { l.attention.scale = 0.3f; }},
    {"window", [](LayerSpec& l) { l.attention.window = 8; }},
    {"softcap", [](LayerSpec& l) { l.attention.softcap = 50.0f; }},
    {"rope", [](LayerSpec& l) { l.attention.rope = 1 - l.attention.rope; }},
    {"no rope", [](LayerSpec& l) { l.attention.rope = AttentionLayer::kNoRope; }},
    {"interleaved", [](LayerSpec& l) { l.attention.interleaved = true; }},
    {"q_norm", [](LayerSpec& l) { l.attention.q_norm = heads(HeadNormSpec::Over::kHead); }},
    {"k_norm", [](LayerSpec& l) { l.attention.k_norm = heads(HeadNormSpec::Over::kHead); }},
    {"both norms", [](LayerSpec& l) { l.attention.q_norm = l.attention.k_norm = heads(HeadNormSpec::Over::kHead); }},
    {"q_norm over each head",
     [](LayerSpec& l) {
       l.attention.q_norm = heads(HeadNormSpec::Over::kEachHead);
       l.attention.k_norm = heads(HeadNormSpec::Over::kHead);
     }},
    {"k_norm over the row",
     [](LayerSpec& l) {
       l.attention.q_norm = heads(HeadNormSpec::Over::kHead);
       l.attention.k_norm = heads(HeadNormSpec::Over::kRow);
     }},
    {"both over each head",
     [](LayerSpec& l) { l.attention.q_norm = l.attention.k_norm = heads(HeadNormSpec::Over::kEachHead); }},
    {"both over the row",
     [](LayerSpec& l) { l.attention.q_norm = l.attention.k_norm = heads(HeadNormSpec::Over::kRow); }},
    {"kind of the norms of heads",
     [](LayerSpec& l) {
       l.attention.q_norm = l.attention.k_norm = heads(HeadNormSpec::Over::kHead, {.kind = backend::NormKind::kLayer});
     }},
    {"eps of the norms of heads",
     [](LayerSpec& l) { l.attention.q_norm = l.attention.k_norm = heads(HeadNormSpec::Over::kHead, {.eps = 1e-5f}); }},
    {"bias of the norms of heads",
     [](LayerSpec& l) { l.attention.q_norm = l.attention.k_norm = heads(HeadNormSpec::Over::kHead, {.bias = true}); }},
    {"q_scale",
     [](LayerSpec& l) {
       l.attention.q_scale = PositionScale{0.1, 32};
     }},
    {"q_scale.beta",
     [](LayerSpec& l) {
       l.attention.q_scale = PositionScale{0.2, 32};
     }},
    {"q_scale.original",
     [](LayerSpec& l) {
       l.attention.q_scale = PositionScale{0.1, 64};
     }},
    {"alibi", [](LayerSpec& l) { l.attention.alibi = AlibiSpec{}; }},
    {"alibi.max", [](LayerSpec& l) { l.attention.alibi = AlibiSpec{16.0}; }},
    {"alibi in bf16",
     [](LayerSpec& l) {
       l.attention.alibi = AlibiSpec{8.0, true};
     }},
    {"sinks", [](LayerSpec& l) { l.attention.sinks = true; }},
    {"qkv_clip", [](LayerSpec& l) { l.attention.qkv_clip = 8.0f; }},
    {"qkv_clip behind the norms",
     [](LayerSpec& l) {
       l.attention.qkv_clip = 8.0f;
       l.attention.clips_normed = true;
     }},
    {"qkv_bias", [](LayerSpec& l) { l.attention.qkv_bias = true; }},
    {"out_bias", [](LayerSpec& l) { l.attention.out_bias = true; }},
    {"mlp.width", [](LayerSpec& l) { l.mlp.width = 128; }},
    {"mlp.activation", [](LayerSpec& l) { l.mlp.activation = backend::Activation::kGeluTanh; }},
    {"mlp.activation by erf", [](LayerSpec& l) { l.mlp.activation = backend::Activation::kGelu; }},
    {"mlp.activation relu", [](LayerSpec& l) { l.mlp.activation = backend::Activation::kRelu; }},
    {"mlp.activation xielu", [](LayerSpec& l) { l.mlp.activation = backend::Activation::kXielu; }},
    {"mlp.activation squared", [](LayerSpec& l) { l.mlp.activation = backend::Activation::kRelu2; }},
    {"mlp.gated", [](LayerSpec& l) { l.mlp.gated = false; }},
    {"mlp.cutoff", [](LayerSpec& l) { l.mlp.cutoff = 1.5f; }},
    {"mlp.cutoff of another height", [](LayerSpec& l) { l.mlp.cutoff = 0.0f; }},
    {"mlp.bias", [](LayerSpec& l) { l.mlp.bias = true; }},
    {"experts", [](LayerSpec& l) { l.experts = mixture(); }},
};

// Of a layer that has experts.
const std::vector<Change<MixtureSpec>> kOfMixture = {
    {"nothing", [](MixtureSpec&) {}},
    {"num_experts", [](MixtureSpec& m) { m.rule.num_experts = 9; }},
    {"top_k", [](MixtureSpec& m) { m.rule.top_k = 3; }},
    {"score", [](MixtureSpec& m) { m.rule.score = backend::RouteScore::kSigmoid; }},
    {"score of logits", [](MixtureSpec& m) { m.rule.score = backend::RouteScore::kLogit; }},
    {"score by sparsemixer", [](MixtureSpec& m) { m.rule.score = backend::RouteScore::kSparsemixer; }},
    {"num_groups", [](MixtureSpec& m) { m.rule.num_groups = 4; }},
    {"top_groups",
     [](MixtureSpec& m) {
       m.rule.num_groups = 4;
       m.rule.top_groups = 2;
     }},
    {"normed", [](MixtureSpec& m) { m.rule.normed = true; }},
    {"norm_eps",
     [](MixtureSpec& m) {
       m.rule.normed = true;
       m.rule.norm_eps = 1e-6f;
     }},
    {"norm_least",
     [](MixtureSpec& m) {
       m.rule.normed = true;
       m.rule.norm_least = 1e-6f;
     }},
    {"scale", [](MixtureSpec& m) { m.rule.scale = 2.5f; }},
    {"margin", [](MixtureSpec& m) { m.rule.margin = 0.02f; }},
    {"router_bias", [](MixtureSpec& m) { m.router_bias = true; }},
    {"choice_bias", [](MixtureSpec& m) { m.choice_bias = true; }},
    {"router_norm", [](MixtureSpec& m) { m.router_norm = true; }},
    {"expert_scales", [](MixtureSpec& m) { m.expert_scales = true; }},
    {"own_norms", [](MixtureSpec& m) { m.own_norms = true; }},
    {"shared_gate", [](MixtureSpec& m) { m.shared_gate = true; }},
    {"expert.width", [](MixtureSpec& m) { m.expert.width = 40; }},
    {"expert.activation", [](MixtureSpec& m) { m.expert.activation = backend::Activation::kGelu; }},
    {"expert.gated", [](MixtureSpec& m) { m.expert.gated = false; }},
    {"expert.clamp",
     [](MixtureSpec& m) {
       m.expert.clamp = backend::Clamp{1.702f, 7.0f};
     }},
    {"expert.clamp.alpha",
     [](MixtureSpec& m) {
       m.expert.clamp = backend::Clamp{1.5f, 7.0f};
     }},
    {"expert.clamp.limit",
     [](MixtureSpec& m) {
       m.expert.clamp = backend::Clamp{1.702f, 8.0f};
     }},
    {"expert.bias", [](MixtureSpec& m) { m.expert.bias = true; }},
};

// Fails if two specs have one description.
class Descriptions {
 public:
  void add(const ModelSpec& spec, const std::string& name) {
    const auto [known, is_new] = names_.emplace(spec.describe(), name);
    EXPECT_TRUE(is_new) << name << " has the description of " << known->second << ": " << known->first;
  }

 private:
  std::map<std::string, std::string> names_;
};

TEST(ModelSpecDescription, DiffersWhereverTheArithmeticDoes) {
  Descriptions all;
  all.add(model(), "no change");
  for (const auto& [name, apply] : kOfModel) {
    ModelSpec spec = model();
    apply(spec);
    all.add(spec, name);
  }
  for (const auto& [name, apply] : kOfLayer) {
    for (std::size_t layer = 0; layer < 3; ++layer) {
      ModelSpec spec = model();
      apply(spec.layers[layer]);
      all.add(spec, std::string(name) + " of layer " + std::to_string(layer));
    }
    ModelSpec spec = model();
    for (LayerSpec& layer : spec.layers) apply(layer);
    all.add(spec, std::string(name) + " of all layers");
  }
}

TEST(ModelSpecDescription, DiffersWhereverTheArithmeticOfExpertsDoes) {
  Descriptions all;
  for (const auto& [name, apply] : kOfMixture) {
    for (std::size_t layer = 0; layer < 3; ++layer) {
      ModelSpec spec = model();
      spec.layers[layer].experts = mixture();
      apply(*spec.layers[layer].experts);
      all.add(spec, std::string(name) + " of layer " + std::to_string(layer));
    }
  }
}

RopeConfig rope_of(RopeKind kind) {
  RopeConfig rope;
  rope.kind = kind;
  rope.factor = 4.0;
  rope.original_positions = 64;
  rope.short_factors = {1.0, 1.5, 2.0, 2.5};
  rope.long_factors = {2.0, 3.0, 4.0, 5.0};
  return rope;
}

std::vector<Change<RopeConfig>> changes_of(RopeKind kind) {
  std::vector<Change<RopeConfig>> changes = {
      {"nothing", [](RopeConfig&) {}},
      {"theta", [](RopeConfig& r) { r.theta = 2e4; }},
      {"rotary_fraction", [](RopeConfig& r) { r.rotary_fraction = 0.5; }},
  };
  const auto add = [&](const char* name, const std::function<void(RopeConfig&)>& apply) {
    changes.push_back({name, apply});
  };
  const bool is_yarn = kind == RopeKind::kYarn, is_long = kind == RopeKind::kLongRope;
  const bool is_llama3 = kind == RopeKind::kLlama3;
  if (kind != RopeKind::kDefault && kind != RopeKind::kDynamic) add("factor", [](RopeConfig& r) { r.factor = 8.0; });
  if (is_llama3) add("low_freq_factor", [](RopeConfig& r) { r.low_freq_factor = 2.0; });
  if (is_llama3) add("high_freq_factor", [](RopeConfig& r) { r.high_freq_factor = 8.0; });
  if (is_llama3 || is_yarn || is_long) add("original_positions", [](RopeConfig& r) { r.original_positions = 32; });
  if (is_yarn || is_long) add("attention_factor", [](RopeConfig& r) { r.attention_factor = 1.2; });
  if (is_yarn) {
    add("beta_fast", [](RopeConfig& r) { r.beta_fast = 16.0; });
    add("beta_slow", [](RopeConfig& r) { r.beta_slow = 2.0; });
    add("mscale", [](RopeConfig& r) { r.mscale = 1.0; });
    add("mscale_all_dim", [](RopeConfig& r) { r.mscale_all_dim = 1.0; });
    add("truncate", [](RopeConfig& r) { r.truncate = false; });
  }
  if (is_long) {
    add("short_factors", [](RopeConfig& r) { r.short_factors[3] = 2.75; });
    add("is_long", [](RopeConfig& r) { r.is_long = true; });
    add("long_factors", [](RopeConfig& r) { r.is_long = true, r.long_factors[3] = 6.0; });
  }
  return changes;
}

TEST(ModelSpecDescription, DiffersWhereverARopeTableDoes) {
  Descriptions all;
  for (const RopeKind kind : {RopeKind::kDefault, RopeKind::kLinear, RopeKind::kLlama3, RopeKind::kYarn,
                              RopeKind::kDynamic, RopeKind::kLongRope}) {
    for (const auto& [name, apply] : changes_of(kind)) {
      for (const std::size_t table : {0, 1}) {
        ModelSpec spec = model();
        spec.ropes[table] = rope_of(kind);
        apply(spec.ropes[table]);
        all.add(spec, std::string(name_of(kind)) + " " + name + " of table " + std::to_string(table));
      }
    }
  }
}

// Saved caches carry these texts: a change makes every one of them useless.
TEST(ModelSpecDescription, OfTheFirstFourFamiliesIsAsItWasWhenCachesWereSaved) {
  const auto described = [](const char* type, const char* extra) {
    return parse_config(family(type, extra), "").describe();
  };
  EXPECT_EQ(described("llama", R"("attention_bias": true, "mlp_bias": true, "rope_scaling": {"rope_type": "llama3",
              "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32})"),
            "llama E=32 F=28 L=2 H=4 G=2 D=12 V=30 eps=1e-06 window=0*2 qkv_bias out_bias mlp_bias "
            "rope=llama3(theta=10000,factor=8,low=1,high=4,original=32)");
  EXPECT_EQ(described("mistral", R"("sliding_window": 9, "tie_word_embeddings": true)"),
            "mistral E=32 F=28 L=2 H=4 G=2 D=12 V=30 eps=1e-06 window=9*2 tied rope=default(theta=10000)");
  EXPECT_EQ(described("qwen2", R"("use_sliding_window": true, "sliding_window": 9, "max_window_layers": 1)"),
            "qwen2 E=32 F=28 L=2 H=4 G=2 D=12 V=30 eps=1e-06 window=0*1,9*1 qkv_bias rope=default(theta=10000)");
  EXPECT_EQ(described("qwen3", R"("rope_scaling": {"rope_type": "yarn", "factor": 4, "truncate": false})"),
            "qwen3 E=32 F=28 L=2 H=4 G=2 D=12 V=30 eps=1e-06 window=0*2 qk_norm "
            "rope=yarn(theta=10000,factor=4,original=64,beta=32:1,untruncated)");
}

TEST(ModelSpecDescription, NamesLayersThatDifferFromTheOneBefore) {
  ModelSpec spec = model();
  spec.layers[1].mlp.gated = false;
  EXPECT_EQ(spec.describe(),
            "any E=64 F=96 L=3 H=4 G=2 D=16 V=100 eps=1e-06 window=0*3 layer1(eps=1e-06 ungated) layer2(eps=1e-06) "
            "rope=default(theta=10000)+default(theta=5e+05) ropes=001");
}

// Longrope of 64 positions, trained for 512 in all; beside it a table that does not change.
ModelSpec longrope_model() {
  ModelSpec spec = model();
  spec.ropes[0] = rope_of(RopeKind::kLongRope);
  return spec;
}

TEST(ModelSpec, ServesSequencesUpToTheOriginalLengthByShortFactorsAndLongerOnesByLongOnes) {
  for (const auto& [positions, is_long] : {std::pair{63u, false}, {64u, false}, {65u, true}}) {
    for (const bool before : {false, true}) {
      ModelSpec spec = longrope_model();
      spec.ropes[0].is_long = before;
      spec.serve_up_to(positions);
      EXPECT_EQ(spec.ropes[0].is_long, is_long) << positions;
      EXPECT_EQ(spec.ropes[1], model().ropes[1]) << positions;
    }
  }
}

TEST(ModelSpec, ReachesTheOriginalLengthByShortFactorsAndAllItsPositionsByLongOnes) {
  ModelSpec spec = longrope_model();
  EXPECT_EQ(spec.max_model_len(), 64u);
  spec.ropes[0].is_long = true;
  EXPECT_EQ(spec.max_model_len(), 512u);
  spec.max_positions = 63;
  EXPECT_EQ(spec.max_model_len(), 63u);
  spec.ropes[0].is_long = false;
  EXPECT_EQ(spec.max_model_len(), 63u);
}

TEST(ModelSpec, ReadsLongFactorsIfItsPositionsExceedTheOriginalLength) {
  const auto read = [](const char* original) {
    return parse_config(family("phi3", std::string("\"original_max_position_embeddings\": ") + original +
                                           R"(, "rope_scaling": {"type": "longrope",
      "short_factor": [1, 1, 1, 1, 1, 1], "long_factor": [2, 2, 2, 2, 2, 2]})"),
                        "");
  };
  EXPECT_TRUE(read("63").ropes[0].is_long);
  EXPECT_EQ(read("63").max_model_len(), 64u);
  EXPECT_FALSE(read("64").ropes[0].is_long);
  EXPECT_FALSE(read("65").ropes[0].is_long);
}

TEST(ModelSpec, ReachesNoFurtherThanItsShortestTable) {
  ModelSpec spec = model();
  spec.ropes[0] = rope_of(RopeKind::kLinear);
  EXPECT_EQ(spec.max_model_len(), 512u) << "the other table is not stretched";
  spec.ropes[1] = rope_of(RopeKind::kLinear);
  EXPECT_EQ(spec.max_model_len(), 2048u);
}

}  // namespace
}  // namespace quire::model::spec_test
