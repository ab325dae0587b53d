// Values of a checkpoint after loading: rows of rope by neighbours in halves, offsets of norms, vectors of
// several tensors, output matrices that a config.json leaves open, models with images, and packed files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/cpu/cpu_ops.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/weight_checks.h"
#include "core/model/weights.h"
#include "tests/core/model/fake_ops.h"
#include "tests/core/model/family_configs.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::weights_order_test {
namespace {

using testing::FakeOps;
using testing::FakeVector;
using testing::family;
using testing::fitting_tensors;
using testing::PackCall;
using testing::safetensors_file;
using testing::TempDir;
using testing::TestTensor;
using testing::wrapped;

// An F32 tensor whose values are first, first + 1, ... by row: all of a row are the same.
TestTensor numbered(const std::string& name, const std::vector<std::uint64_t>& shape, float first) {
  TestTensor tensor{name, "F32", shape, {}};
  std::uint64_t width = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) width *= shape[i];
  for (std::uint64_t i = 0; i < shape[0] * width; ++i) {
    const float value = first + static_cast<float>(i / width);
    tensor.data.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return tensor;
}

// A checkpoint in which tensor number i of the table has rows 1000 i, 1000 i + 1, ...
std::vector<TestTensor> numbered_tensors(const ModelSpec& spec) {
  std::vector<TestTensor> tensors;
  for (const TensorPart& part : tensor_table(spec).tensors()) {
    tensors.push_back(numbered(part.name, part.shape, 1000.0f * static_cast<float>(tensors.size())));
  }
  return tensors;
}

// A checkpoint of its own kind, and what FakeOps was given of it.
struct Loaded {
  explicit Loaded(const ModelSpec& spec) : Loaded(spec, numbered_tensors(spec)) {}
  Loaded(const ModelSpec& spec, const std::vector<TestTensor>& given) : table(tensor_table(spec)) {
    const TempDir dir;
    dir.write("model.safetensors", safetensors_file(given));
    weights = load_weights(ops, spec, *ModelFiles::directory(dir.path()));
  }

  // The call that packed this matrix.
  const PackCall& packed(Role role, std::uint32_t layer = TensorEntry::kTop) const {
    std::size_t index = 0;
    for (const TensorEntry& entry : table.entries) {
      if (entry.kind != TensorEntry::Kind::kMatrix) continue;
      if (entry.role == role && entry.layer == layer) return ops.packs.at(index);
      ++index;
    }
    throw std::logic_error("no such matrix");
  }
  const std::vector<float>& vector(Role role, std::uint32_t layer) const {
    return dynamic_cast<const FakeVector&>(*weights.vector(role, layer)).values;
  }
  const std::vector<float>& bias(Role role, std::uint32_t layer) const {
    return dynamic_cast<const FakeVector&>(*weights.bias(role, layer)).values;
  }

  TensorTable table;
  FakeOps ops;
  Weights weights;
};

// By `order`, every head's rows: numbers of one head, repeated for each, without what stands before.
std::vector<float> ordered(std::uint32_t heads, const std::vector<float>& order) {
  std::vector<float> all;
  for (std::uint32_t head = 0; head < heads; ++head) {
    for (const float row : order) all.push_back(static_cast<float>(head * order.size()) + row);
  }
  return all;
}
std::vector<float> upwards(std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<float>(i);
  return all;
}
// Numbers within their tensor.
std::vector<float> within(std::vector<float> values) {
  for (float& value : values) value = std::fmod(value, 1000.0f);
  return values;
}
std::vector<float> part(const std::vector<float>& values, std::size_t first, std::size_t count) {
  return within({values.begin() + first, values.begin() + first + count});
}

// Of pairs (2i, 2i+1), the firsts and then the seconds; all 12 rows of a head turn, or the first 6.
const std::vector<float> kWholeHead = {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11};
const std::vector<float> kHalfOfAHead = {0, 2, 4, 1, 3, 5, 6, 7, 8, 9, 10, 11};

ModelSpec spec_of(const std::string& config) { return parse_config(config, "config.json"); }

TEST(WeightsOrder, RowsOfQAndKOfARopeByNeighboursAreInHalvesAndThoseOfVAsTheyWere) {
  const Loaded loaded(spec_of(family("cohere")));
  const std::vector<float>& rows = loaded.packed(Role::kQkv, 1).row_starts;
  ASSERT_EQ(rows.size(), 96u);
  EXPECT_EQ(part(rows, 0, 48), ordered(4, kWholeHead));
  EXPECT_EQ(part(rows, 48, 24), ordered(2, kWholeHead));
  EXPECT_EQ(part(rows, 72, 24), upwards(24));
  EXPECT_EQ(within(loaded.packed(Role::kOut, 1).row_starts), upwards(32));
}

TEST(WeightsOrder, OnlyTheRowsThatTurnAreReordered) {
  const Loaded loaded(spec_of(family("glm4")));
  const std::vector<float>& rows = loaded.packed(Role::kQkv, 0).row_starts;
  EXPECT_EQ(part(rows, 0, 48), ordered(4, kHalfOfAHead));
  EXPECT_EQ(part(rows, 48, 24), ordered(2, kHalfOfAHead));
  EXPECT_EQ(part(rows, 72, 24), upwards(24));
}

TEST(WeightsOrder, BiasesFollowTheirRows) {
  const Loaded loaded(spec_of(family("glm4")));
  const std::vector<std::vector<float>>& biases = loaded.packed(Role::kQkv, 0).biases;
  ASSERT_EQ(biases.size(), 3u);
  EXPECT_EQ(within(biases[0]), ordered(4, kHalfOfAHead));
  EXPECT_EQ(within(biases[1]), ordered(2, kHalfOfAHead));
  EXPECT_EQ(within(biases[2]), upwards(24));
}

TEST(WeightsOrder, OfOneTensorForQAndKAndVIsThatOfThree) {
  ModelSpec spec = spec_of(family("phi3"));
  EXPECT_EQ(within(Loaded(spec).packed(Role::kQkv, 1).row_starts), upwards(96));
  for (LayerSpec& layer : spec.layers) layer.attention.interleaved = true;
  const std::vector<float> rows = Loaded(spec).packed(Role::kQkv, 1).row_starts;
  EXPECT_EQ(part(rows, 0, 72), ordered(6, kWholeHead));
  EXPECT_EQ(part(rows, 72, 24), part(upwards(96), 72, 24));
}

// Two kv heads, in the file each with its two query heads of 12 rows, k and v.
TEST(WeightsOrder, OfOneTensorByKvHeadIsQAndKAndVOfAllHeads) {
  const Loaded loaded(spec_of(family("internlm2")));
  std::vector<float> q, k, v;
  for (const float group : {0.0f, 48.0f}) {
    for (float row = 0.0f; row < 24.0f; ++row) q.push_back(group + row);
    for (float row = 24.0f; row < 36.0f; ++row) k.push_back(group + row), v.push_back(group + row + 12.0f);
  }
  const PackCall& packed = loaded.packed(Role::kQkv, 1);
  ASSERT_EQ(packed.row_starts.size(), 96u);
  EXPECT_EQ(part(packed.row_starts, 0, 48), q);
  EXPECT_EQ(part(packed.row_starts, 48, 24), k);
  EXPECT_EQ(part(packed.row_starts, 72, 24), v);
  ASSERT_EQ(packed.biases.size(), 3u);
  EXPECT_EQ(within(packed.biases[0]), q);
  EXPECT_EQ(within(packed.biases[1]), k);
  EXPECT_EQ(within(packed.biases[2]), v);
}

// Value i of the file's row r, in the matrix [96, 32] value r of row i.
TEST(WeightsOrder, RowsOfTransposedMatricesAreTheFilesColumns) {
  const ModelSpec spec = spec_of(
      R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 30, "n_positions": 64})");
  std::vector<TestTensor> tensors = numbered_tensors(spec);
  for (TestTensor& tensor : tensors) {
    if (tensor.name != "model.h.1.attn.c_attn.weight") continue;
    auto* const values = reinterpret_cast<float*>(tensor.data.data());
    for (std::size_t i = 0; i < std::size_t{32} * 96; ++i) values[i] = static_cast<float>(i % 96);
  }
  const Loaded loaded(spec, tensors);
  EXPECT_EQ(loaded.packed(Role::kQkv, 1).row_starts, upwards(96));
}

TEST(WeightsOrder, OfALayerWithoutRopeIsThatOfTheFile) {
  const Loaded loaded(spec_of(family("cohere2", "\"num_hidden_layers\": 4")));
  EXPECT_EQ(part(loaded.packed(Role::kQkv, 2).row_starts, 0, 48), ordered(4, kWholeHead));
  EXPECT_EQ(part(loaded.packed(Role::kQkv, 3).row_starts, 0, 48), upwards(48));
}

TEST(WeightsOrder, NormsOfEachHeadFollowTheRowsOfTheirHead) {
  const ModelSpec cohere = spec_of(family("cohere", "\"use_qk_norm\": true"));
  // A tensor [H, D]: "row" h is a head.
  std::vector<TestTensor> tensors = numbered_tensors(cohere);
  for (TestTensor& tensor : tensors) {
    if (tensor.name.ends_with("_norm.weight") && tensor.shape.size() == 2) {
      tensor.data = numbered("", {tensor.shape[0] * tensor.shape[1]}, 0.0f).data;
    }
  }
  const Loaded loaded(cohere, tensors);
  EXPECT_EQ(loaded.vector(Role::kQNorm, 1), ordered(4, kWholeHead));
  EXPECT_EQ(loaded.vector(Role::kKNorm, 1), ordered(2, kWholeHead));
}

TEST(WeightsOrder, NormsOfATensorForEachHeadLieSideBySide) {
  ModelSpec spec = spec_of(family("stablelm", "\"qk_layernorm\": true, \"partial_rotary_factor\": 0.5"));
  const auto heads = [](const std::vector<float>& values) {
    std::vector<std::vector<float>> all;
    for (std::size_t head = 0; head < values.size() / 8; ++head) all.push_back(part(values, head * 8, 8));
    return all;
  };
  const auto are = [](std::size_t count, const std::vector<float>& order) {
    return std::vector<std::vector<float>>(count, order);
  };
  EXPECT_EQ(heads(Loaded(spec).vector(Role::kQNorm, 0)), are(4, upwards(8)));
  EXPECT_EQ(heads(Loaded(spec).vector(Role::kKNorm, 0)), are(2, upwards(8)));
  for (LayerSpec& layer : spec.layers) layer.attention.interleaved = true;
  EXPECT_EQ(heads(Loaded(spec).vector(Role::kQNorm, 0)), are(4, {0, 2, 1, 3, 4, 5, 6, 7}));
}

TEST(WeightsOrder, NormsThatHeadsShareAndOfRowsFollowTheRowsToo) {
  for (const auto& [over, repeats] : {std::pair{HeadNormSpec::Over::kHead, 1u}, {HeadNormSpec::Over::kRow, 4u}}) {
    ModelSpec spec = spec_of(family("qwen3"));
    for (LayerSpec& layer : spec.layers) {
      layer.attention.interleaved = true;
      layer.attention.q_norm->over = over;
      layer.attention.q_norm->norm.bias = true;
    }
    const Loaded loaded(spec);
    EXPECT_EQ(within(loaded.vector(Role::kQNorm, 1)), ordered(repeats, kWholeHead));
    EXPECT_EQ(within(loaded.bias(Role::kQNorm, 1)), ordered(repeats, kWholeHead));
  }
}

TEST(WeightsOrder, NormsOfEachHeadMayHaveBiases) {
  ModelSpec spec = spec_of(family("stablelm", "\"qk_layernorm\": true"));
  for (LayerSpec& layer : spec.layers) layer.attention.k_norm->norm.bias = true;
  const Loaded loaded(spec);
  EXPECT_EQ(loaded.bias(Role::kKNorm, 1).size(), 16u);
  EXPECT_EQ(loaded.weights.bias(Role::kQNorm, 1), nullptr);
}

TEST(WeightsOrder, NormsThatMultiplyByOnePlusWHaveTheOneAddedAndOthersNot) {
  for (const auto& [type, one] : {std::pair{"gemma2", 1.0f}, {"gemma3_text", 1.0f}, {"glm4", 0.0f}}) {
    const Loaded loaded(spec_of(family(type)));
    for (const Role role : {Role::kInputNorm, Role::kAttentionNorm, Role::kMlpNorm, Role::kMlpOutNorm}) {
      const std::vector<float>& values = loaded.vector(role, 1);
      for (std::size_t i = 0; i < 32; ++i) {
        ASSERT_EQ(std::fmod(values[i], 1000.0f), static_cast<float>(i) + one) << type;
      }
    }
    EXPECT_EQ(std::fmod(loaded.vector(Role::kFinalNorm, TensorEntry::kTop)[5], 1000.0f), 5.0f + one) << type;
  }
  EXPECT_EQ(std::fmod(Loaded(spec_of(family("gemma3_text"))).vector(Role::kKNorm, 0)[5], 1000.0f), 6.0f);
}

// Of a model that ties by default, with an output matrix of its own, with a copy of the embedding, or none.
TEST(FittedSpec, HasTheCheckpointsOutputMatrixOnlyIfTheConfigLeavesThatOpen) {
  enum Head { kOwn, kCopy, kNoHead };
  const auto is_tied = [](const ModelSpec& spec, Head head) {
    std::vector<TestTensor> tensors = fitting_tensors(spec);
    std::erase_if(tensors, [](const TestTensor& tensor) { return tensor.name == "lm_head.weight"; });
    TestTensor matrix = tensors.front();
    matrix.name = "lm_head.weight";
    if (head == kOwn) matrix.data[9] ^= 1;
    if (head != kNoHead) tensors.push_back(matrix);
    const TempDir dir;
    dir.write("model.safetensors", safetensors_file(tensors));
    const auto files = ModelFiles::directory(dir.path());
    return fitted(spec, open_decoder(*files)).tied_head;
  };
  const ModelSpec open = spec_of(family("gemma2"));
  EXPECT_FALSE(is_tied(open, kOwn));
  EXPECT_TRUE(is_tied(open, kCopy));
  EXPECT_TRUE(is_tied(open, kNoHead));
  const ModelSpec tied = spec_of(family("gemma2", "\"tie_word_embeddings\": true"));
  EXPECT_TRUE(is_tied(tied, kOwn)) << "loading refuses it by name";
  const ModelSpec untied = spec_of(family("gemma2", "\"tie_word_embeddings\": false"));
  EXPECT_FALSE(is_tied(untied, kCopy));
  EXPECT_FALSE(is_tied(untied, kNoHead)) << "loading refuses it by name";
}

// As transformers writes them, and as it did once: deeper inside, beside the part that sees.
TEST(Weights, OfAModelWithImagesAreItsTextModels) {
  const ModelSpec text = spec_of(family("gemma3_text", "\"tie_word_embeddings\": false"));
  const ModelSpec outer = spec_of(wrapped("gemma3", family("gemma3_text"), "\"tie_word_embeddings\": false"));
  const Loaded alone(text);
  for (const auto& [prefix, head] :
       {std::pair{"language_model.model.", "language_model.lm_head."}, {"model.language_model.", "lm_head."}}) {
    std::vector<TestTensor> tensors = numbered_tensors(text);
    for (TestTensor& tensor : tensors) {
      const bool is_head = tensor.name.starts_with("lm_head.");
      tensor.name = (is_head ? head : prefix) + tensor.name.substr(is_head ? 8 : 6);
    }
    tensors.push_back(numbered("vision_tower.head.layernorm.weight", {3}, 0.0f));
    tensors.push_back(numbered("model.multi_modal_projector.norm.weight", {3}, 0.0f));
    const Loaded inside(outer, tensors);
    ASSERT_EQ(inside.ops.packs.size(), alone.ops.packs.size());
    for (std::size_t i = 0; i < alone.ops.packs.size(); ++i) {
      EXPECT_EQ(inside.ops.packs[i].row_starts, alone.ops.packs[i].row_starts) << i;
    }
    EXPECT_EQ(inside.vector(Role::kKNorm, 1), alone.vector(Role::kKNorm, 1));
  }
}

// One tensor that is not of the others' type: q, k and v are a weight each, and the file has them so.
TEST(PackedFile, GivesBackReorderedRowsBiasesAndPartsOfDifferentTypes) {
  for (const std::string apart : {"", "k_proj.weight"}) {
    const std::string config = family("glm4");
    const ModelSpec spec = spec_of(config);
    std::vector<TestTensor> tensors = fitting_tensors(spec, "BF16");
    for (TestTensor& tensor : tensors) {
      if (!apart.empty() && tensor.name.ends_with(apart)) tensor = testing::filled(tensor.name, "F32", tensor.shape);
    }
    const TempDir dir;
    dir.write("config.json", config);
    dir.write("model.safetensors", safetensors_file(tensors));
    const auto files = ModelFiles::directory(dir.path());
    const auto ops = cpu::make_cpu_ops({.num_threads = 1});
    const auto load = [&](const std::string& path) { return load_weights(*ops, spec, *files, {.packed_file = path}); };
    const Weights packed = load("");
    const Weights written = load(dir.path() + "/model.packed");
    const Weights read = load(dir.path() + "/model.packed");
    EXPECT_FALSE(written.from_packed_file());
    EXPECT_TRUE(read.from_packed_file());
    EXPECT_EQ(read.list(Role::kQkv, 1).size(), apart.empty() ? 1u : 3u);
    EXPECT_EQ(read.digest(), packed.digest());
    ASSERT_EQ(read.matrices().size(), packed.matrices().size());
    for (std::size_t i = 0; i < packed.matrices().size(); ++i) {
      const backend::Weight &a = *read.matrices()[i], &b = *packed.matrices()[i];
      EXPECT_TRUE(a.n() == b.n() && a.k() == b.k() && a.format() == b.format()) << i;
      EXPECT_TRUE(std::ranges::equal(a.packed(), b.packed())) << i;
    }
  }
}

}  // namespace
}  // namespace quire::model::weights_order_test
