#include "core/model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/base/float_bits.h"
#include "tests/core/model/fake_ops.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::weights_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;  // the tiny checkpoints

ModelSpec config_with(const std::string& extra = "") {
  return parse_config(extra.empty() ? kTinyLlama : "{" + extra + ", " + kTinyLlama.substr(1), "config.json");
}

TestTensor& named(std::vector<TestTensor>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TestTensor& t) { return t.name == name; });
  if (found == tensors.end()) throw std::logic_error("no tensor " + name);
  return *found;
}
void drop(std::vector<TestTensor>& tensors, const std::string& name) {
  named(tensors, name);
  std::erase_if(tensors, [&](const TestTensor& t) { return t.name == name; });
}

// The refusal of this checkpoint; "" where it is accepted. Refused checkpoints must not have been packed in part.
std::string load_refusal(const ModelSpec& config, const std::vector<TestTensor>& tensors) {
  const TempDir dir;
  dir.write("model.safetensors", safetensors_file(tensors));
  FakeOps ops;
  const std::string message = refusal([&] { load_weights(ops, config, *ModelFiles::directory(dir.path())); });
  EXPECT_TRUE(message.empty() || ops.packs.empty()) << "packed before everything was checked";
  return message;
}

// Files that remember what was given back.
class CountingFiles final : public ModelFiles {
 public:
  explicit CountingFiles(std::unique_ptr<ModelFiles> inner) : inner_(std::move(inner)) {}
  std::optional<FileBytes> find(std::string_view name) const override { return inner_->find(name); }
  std::string describe(std::string_view name) const override { return inner_->describe(name); }
  void release(FileBytes bytes) const override {
    ++times[bytes.data()];
    inner_->release(bytes);
  }
  mutable std::map<const std::byte*, int> times;  // by where the bytes begin

 private:
  std::unique_ptr<ModelFiles> inner_;
};

TEST(Weights, EveryTensorsPagesAreGivenBackOnceItIsPacked) {
  const TempDir dir;
  const ModelSpec config = parse_config(kTinyLlama, "config.json");
  dir.write("config.json", kTinyLlama);
  dir.write("model.safetensors", safetensors_file(fitting_tensors(config)));
  const CountingFiles files(ModelFiles::directory(dir.path()));
  FakeOps ops;
  (void)load_weights(ops, config, files);
  const Checkpoint checkpoint = Checkpoint::open(files);
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    EXPECT_EQ(files.times[tensor.data.data()], 1) << name;
  }
  EXPECT_EQ(files.times.size(), checkpoint.tensors().size());
}

TEST(Weights, SayHowManyBytesArePackedUpToAllOfThem) {
  const TempDir dir;
  for (const std::string tied : {"true", "false"}) {
    const ModelSpec config = config_with("\"tie_word_embeddings\": " + tied);
    dir.write("config.json", kTinyLlama);
    dir.write("model.safetensors", safetensors_file(fitting_tensors(config)));
    const auto files = ModelFiles::directory(dir.path());
    FakeOps ops;
    std::vector<std::uint64_t> done;
    const auto say = [&](std::uint64_t bytes, std::uint64_t size) {
      EXPECT_EQ(size, Checkpoint::open(*files).bytes());
      done.push_back(bytes);
    };
    (void)load_weights(ops, config, *files, {.on_packed = say});
    EXPECT_GT(done.size(), ops.packs.size());
    EXPECT_TRUE(std::ranges::is_sorted(done));
    EXPECT_EQ(done.front(), 0u) << "before the first";
    EXPECT_EQ(done.back(), Checkpoint::open(*files).bytes());
  }
}

TEST(Weights, AreForgottenByTheHostOncePackedOrWhenTheirFileIsWritten) {
  const TempDir dir;
  const ModelSpec config = parse_config(kTinyLlama, "config.json");
  dir.write("config.json", kTinyLlama);
  dir.write("model.safetensors", safetensors_file(fitting_tensors(config)));
  const auto files = ModelFiles::directory(dir.path());
  FakeOps ops;
  for (const std::string& path : {std::string(), dir.path() + "/model.packed"}) {
    const Weights weights = load_weights(ops, config, *files, {.packed_file = path});
    EXPECT_EQ(std::filesystem::exists(dir.path() + "/model.packed"), !path.empty());
    for (const backend::Weight* weight : weights.matrices()) {
      EXPECT_TRUE(static_cast<const FakeWeight&>(*weight).is_forgotten);
    }
  }
}

TEST(Weights, EveryKindOfCheckpointThatFitsIsAccepted) {
  for (const std::string extra :
       {"\"tie_word_embeddings\": true", "\"attention_bias\": true", "\"mlp_bias\": true", "\"head_dim\": 6"}) {
    for (const std::string dtype : {"F32", "BF16", "F16"}) {
      const ModelSpec config = config_with(extra);
      EXPECT_EQ(load_refusal(config, fitting_tensors(config, dtype)), "") << extra << " " << dtype;
    }
  }
}

TEST(Weights, PacksQkvAndGateUpAsOneListEachWithTheirBiases) {
  const ModelSpec config = config_with("\"attention_bias\": true");
  const TempDir dir;
  std::vector<TestTensor> tensors = fitting_tensors(config, "BF16");
  dir.write("model.safetensors", safetensors_file(tensors));
  FakeOps ops;
  const Weights weights = load_weights(ops, config, *ModelFiles::directory(dir.path()));
  ASSERT_EQ(ops.packs.size(), 1u + 2 * 4 + 1);
  const PackCall& qkv = ops.packs[1];
  ASSERT_EQ(qkv.matrices.size(), 3u);
  EXPECT_EQ(qkv.matrices[0].n, 8u);
  EXPECT_EQ(qkv.matrices[1].n, 4u);
  EXPECT_EQ(qkv.matrices[2].n, 4u);
  EXPECT_EQ(qkv.matrices[0].k, 8u);
  EXPECT_EQ(qkv.matrices[0].format, backend::Format::kBF16);
  ASSERT_EQ(qkv.biases.size(), 3u);
  const std::string& bias = named(tensors, "model.layers.0.self_attn.k_proj.bias").data;
  ASSERT_EQ(qkv.biases[1].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bias.data() + 2 * i, 2);
    EXPECT_EQ(qkv.biases[1][i], f32_of_bf16(bits));
  }
  EXPECT_EQ(ops.packs[2].biases.size(), 1u) << "o_proj";
  EXPECT_EQ(ops.packs[3].matrices.size(), 2u) << "gate and up";
  EXPECT_TRUE(ops.packs[3].biases.empty());
  EXPECT_EQ(weights.list(Role::kQkv, 1).n(), 16u);
  EXPECT_GT(weights.packed_bytes(), 0u);
}

TEST(Weights, ATiedHeadIsTheEmbeddingItself) {
  const ModelSpec config = config_with("\"tie_word_embeddings\": true");
  const TempDir dir;
  dir.write("model.safetensors", safetensors_file(fitting_tensors(config)));
  FakeOps ops;
  const Weights weights = load_weights(ops, config, *ModelFiles::directory(dir.path()));
  EXPECT_FALSE(weights.has(Role::kHead));
  EXPECT_EQ(&weights.output(), &weights.weight(Role::kEmbedding));
}

// What load_weights() asks of every weight, in the order packed: embedding, four a layer, the head where there is one.
std::vector<std::optional<backend::Format>> asked_of_packs(const ModelSpec& config,
                                                           std::optional<backend::Format> quantize) {
  const TempDir dir;
  dir.write("model.safetensors", safetensors_file(fitting_tensors(config)));
  FakeOps ops;
  load_weights(ops, config, *ModelFiles::directory(dir.path()), {.quantize = quantize});
  std::vector<std::optional<backend::Format>> out;
  for (const PackCall& call : ops.packs) out.push_back(call.quantize);
  return out;
}

TEST(Weights, QuantisesLayersAsAskedTheHeadToEightBitsAndAnUntiedEmbeddingNotAtAll) {
  using backend::Format;
  using Quantize = std::optional<Format>;
  for (const auto& [kind, head] : {std::pair<Quantize, Quantize>{},
                                   {Format::kInt8, Format::kInt8},
                                   {Format::kInt4, Format::kInt8},
                                   {Format::kW8A8, Format::kW8A8},
                                   {Format::kW4A8, Format::kW8A8},
                                   {Format::kW16A16, Format::kW16A16},
                                   {Format::kFp8, Format::kFp8}}) {
    std::vector<Quantize> expected = {std::nullopt, kind, kind, kind, kind, kind, kind, kind, kind, head};
    EXPECT_EQ(asked_of_packs(config_with(), kind), expected);
    expected.front() = head;  // there is one table for both
    expected.pop_back();
    EXPECT_EQ(asked_of_packs(config_with("\"tie_word_embeddings\": true"), kind), expected);
  }
}

TEST(PackedFormat, KeepsBlocksTimesTheFormThatIsAskedButForRoutersAndTables) {
  using backend::Format;
  constexpr auto kType = backend::BlockType::kQ4_K;
  constexpr auto kF32 = BlockActivation::kF32;
  constexpr auto kInt8 = BlockActivation::kInt8;
  Tensor blocks;
  blocks.set_coded(Format::of_blocks(kType), nullptr);
  Tensor plain;
  plain.dtype = "BF16";
  const ModelSpec untied = config_with();
  const ModelSpec tied = config_with("\"tie_word_embeddings\": true");
  const auto all = [](Format) { return true; };
  const auto plain_ones = [](Format format) { return !format.is_blocks(); };
  for (const auto form : {kF32, kInt8}) {
    for (const Role role : {Role::kQkv, Role::kOut, Role::kGateUp, Role::kDown, Role::kHead, Role::kPerLayerGate}) {
      EXPECT_EQ(packed_format(role, untied, blocks, std::nullopt, form, all), Format::of_blocks(kType, form));
      EXPECT_EQ(packed_format(role, untied, blocks, Format::kInt8, form, all), Format::kInt8);
      EXPECT_EQ(packed_format(role, untied, blocks, std::nullopt, form, plain_ones), Format::kF32);
      EXPECT_EQ(packed_format(role, untied, plain, std::nullopt, form, all), Format::kBF16);
    }
    for (const Role role : {Role::kRouter, Role::kPrediction, Role::kCorrection, Role::kEmbedding,
                            Role::kPerLayerEmbedding, Role::kPositionEmbedding}) {
      EXPECT_EQ(packed_format(role, untied, blocks, std::nullopt, form, all), Format::of_blocks(kType, kF32));
    }
    EXPECT_EQ(packed_format(Role::kEmbedding, tied, blocks, std::nullopt, form, all), Format::of_blocks(kType, form));
  }
}

TEST(PackedFormat, WidensRoutersOfExpertsWhoseRowsWouldBeRounded) {
  using backend::Format;
  Tensor plain;
  plain.dtype = "BF16";
  const ModelSpec spec = config_with();
  const auto packed = [&](Role role, bool rounds) {
    return packed_format(
        role, spec, plain, std::nullopt, BlockActivation::kInt8, [](Format) { return true; }, false,
        [rounds](Format) { return rounds; });
  };
  for (const Role role : {Role::kExpertRouter, Role::kSharedExpertGate}) {
    EXPECT_EQ(packed(role, true), Format::kF32);
    EXPECT_EQ(packed(role, false), Format::kBF16);
  }
  EXPECT_EQ(packed(Role::kDown, true), Format::kBF16);
}

TEST(PackedFormat, MultipliesStoredIntegersInIntegersAndFloatsInF32) {
  using backend::Format;
  const ModelSpec spec = config_with();
  const auto all = [](Format) { return true; };
  const auto none = [](Format) { return false; };
  const auto packed = [&](Format stored, BlockActivation form, const auto& takes) {
    Tensor tensor;
    tensor.set_coded(stored, nullptr);
    return packed_format(Role::kDown, spec, tensor, std::nullopt, form, takes);
  };
  const Format integers = Format::of_blocks(backend::BlockType::kInt4G128);
  EXPECT_EQ(packed(Format::kInt8, BlockActivation::kInt8, all), Format::kW8A8);
  EXPECT_EQ(packed(Format::kInt8, BlockActivation::kF32, all), Format::kInt8);
  class OfRows final : public CodedMatrix {
   public:
    OfRows() : CodedMatrix({}) {}
    void read(std::uint64_t, Format, std::span<std::byte>) const override {}
    bool takes_int8_rows() const override { return true; }
  };
  Tensor declared;
  declared.set_coded(Format::kInt8, std::make_shared<OfRows>());
  const auto declared_as = [&](BlockActivation form, Role role = Role::kDown) {
    return packed_format(role, spec, declared, std::nullopt, form, all);
  };
  EXPECT_EQ(declared_as(BlockActivation::kInt8PerRow), Format::kW8A8PerRow);
  EXPECT_EQ(declared_as(BlockActivation::kInt8), Format::kW8A8);
  EXPECT_EQ(packed(Format::kInt8, BlockActivation::kInt8PerRow, all), Format::kW8A8);
  EXPECT_EQ(packed(integers, BlockActivation::kInt8PerRow, all).activation, BlockActivation::kInt8);
  EXPECT_EQ(declared_as(BlockActivation::kF32), Format::kInt8);
  EXPECT_EQ(declared_as(BlockActivation::kInt8PerRow, Role::kRouter), Format::kInt8);
  const auto in_f32 = [&](Format format) { return format == integers; };
  EXPECT_EQ(packed(integers, BlockActivation::kInt8, all).activation, BlockActivation::kInt8);
  EXPECT_EQ(packed(integers, BlockActivation::kInt8, in_f32), integers);
  const Format in_floats = Format::of_blocks(backend::BlockType::kNf4G64);
  for (const auto form : {BlockActivation::kF32, BlockActivation::kInt8}) {
    EXPECT_EQ(packed(Format::kFp8, form, all), Format::kFp8);
    EXPECT_EQ(packed(in_floats, form, all), in_floats);
    EXPECT_EQ(packed(in_floats, form, none), Format::kF32);
  }
}

TEST(Weights, AStepReadsAllButAnUntiedEmbedding) {
  for (const bool tied : {false, true}) {
    const ModelSpec config = tied ? config_with("\"tie_word_embeddings\": true") : config_with();
    const TempDir dir;
    dir.write("model.safetensors", safetensors_file(fitting_tensors(config)));
    FakeOps ops;
    const Weights weights =
        load_weights(ops, config, *ModelFiles::directory(dir.path()), {.quantize = backend::Format::kInt8});
    EXPECT_EQ(weights.step_bytes(), weights.packed_bytes() - (tied ? 0 : weights.weight(Role::kEmbedding).bytes()));
  }
}

TEST(Weights, RefusesAMissingTensorOfEveryNameByFileAndName) {
  const ModelSpec config = config_with("\"attention_bias\": true");
  const std::vector<TestTensor> whole = fitting_tensors(config);
  for (const TestTensor& tensor : whole) {
    std::vector<TestTensor> tensors = whole;
    drop(tensors, tensor.name);
    EXPECT_THAT(
        load_refusal(config, tensors),
        AllOf(HasSubstr("/model.safetensors: tensor '" + tensor.name + "' is missing"), HasSubstr("1 problem")));
  }
}

TEST(Weights, RefusesAWrongShapeOfEveryTensor) {
  const ModelSpec config = config_with();
  const std::vector<TestTensor> whole = fitting_tensors(config);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::vector<TestTensor> tensors = whole;
    tensors[i].shape.insert(tensors[i].shape.begin(), 1);
    EXPECT_THAT(load_refusal(config, tensors),
                AllOf(HasSubstr("'" + whole[i].name + "' has shape " + shape_text(tensors[i].shape)),
                      HasSubstr("expects " + shape_text(whole[i].shape))));
  }
}

TEST(Weights, RefusesATransposedMatrix) {
  const ModelSpec config = config_with();
  std::vector<TestTensor> tensors = fitting_tensors(config);
  named(tensors, "model.layers.1.mlp.down_proj.weight").shape = {12, 8};
  EXPECT_THAT(load_refusal(config, tensors),
              HasSubstr("'model.layers.1.mlp.down_proj.weight' has shape [12, 8]; config.json expects [8, 12]"));
}

TEST(Weights, RefusesATensorThatDoesNotBelongButToleratesRopeBuffers) {
  const ModelSpec config = config_with();
  std::vector<TestTensor> tensors = fitting_tensors(config);
  tensors.push_back(filled("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {2}));
  EXPECT_EQ(load_refusal(config, tensors), "");
  tensors.push_back(filled("model.layers.2.input_layernorm.weight", "BF16", {8}));
  EXPECT_THAT(load_refusal(config, tensors),
              HasSubstr("'model.layers.2.input_layernorm.weight' is not part of a LlamaForCausalLM"));
}

TEST(Weights, RefusesABiasThatTheConfigDoesNotAnnounce) {
  const ModelSpec config = config_with();
  std::vector<TestTensor> tensors = fitting_tensors(config_with("\"mlp_bias\": true"));
  EXPECT_THAT(load_refusal(config, tensors),
              AllOf(HasSubstr("'model.layers.0.mlp.up_proj.bias' is not part"), HasSubstr("6 problems")));
}

TEST(Weights, RefusesOtherDtypesByName) {
  const ModelSpec config = config_with();
  std::vector<TestTensor> tensors = fitting_tensors(config);
  TestTensor& norm = named(tensors, "model.norm.weight");
  norm.dtype = "F64";
  norm.data = std::string(8 * 8, '\0');
  EXPECT_THAT(load_refusal(config, tensors), HasSubstr("'model.norm.weight' has dtype F64; expected F32, BF16 or F16"));
}

TEST(Weights, PartsOfDifferentTypesArePackedApart) {
  const ModelSpec config = config_with();
  std::vector<TestTensor> tensors = fitting_tensors(config);
  named(tensors, "model.layers.0.self_attn.k_proj.weight") =
      filled("model.layers.0.self_attn.k_proj.weight", "F32", {4, 8});
  const TempDir dir;
  dir.write("model.safetensors", safetensors_file(tensors));
  FakeOps ops;
  const Weights weights = load_weights(ops, config, *ModelFiles::directory(dir.path()));
  const backend::WeightList apart = weights.list(Role::kQkv, 0);
  ASSERT_EQ(apart.size(), 3u);
  EXPECT_EQ(apart[0].format(), backend::Format::kBF16);
  EXPECT_EQ(apart[1].format(), backend::Format::kF32);
  EXPECT_EQ(apart[1].n(), 4u);
  EXPECT_EQ(apart.n(), 16u);
  EXPECT_EQ(weights.list(Role::kQkv, 1).size(), 1u);
}

TEST(Weights, ATiedConfigTakesAHeadOnlyIfItIsTheEmbedding) {
  const ModelSpec config = config_with("\"tie_word_embeddings\": true");
  std::vector<TestTensor> tensors = fitting_tensors(config);
  TestTensor head = named(tensors, "model.embed_tokens.weight");
  head.name = "lm_head.weight";
  tensors.push_back(head);
  EXPECT_EQ(load_refusal(config, tensors), "");
  tensors.back().data[7] ^= 1;
  EXPECT_THAT(load_refusal(config, tensors),
              AllOf(HasSubstr("'lm_head.weight' differs"), HasSubstr("tie_word_embeddings")));
}

TEST(Weights, AnUntiedConfigWithoutAHeadSaysWhichKeyToLookAt) {
  const ModelSpec config = config_with();
  std::vector<TestTensor> tensors = fitting_tensors(config);
  drop(tensors, "lm_head.weight");
  EXPECT_THAT(load_refusal(config, tensors),
              AllOf(HasSubstr("'lm_head.weight' is missing"), HasSubstr("tie_word_embeddings")));
}

TEST(Weights, ReportsEveryProblemAtOnceButNoMoreThanTwenty) {
  const ModelSpec config = config_with();
  std::vector<TestTensor> tensors = fitting_tensors(config);
  drop(tensors, "model.norm.weight");
  named(tensors, "lm_head.weight").shape = {8, 20};
  tensors.push_back(filled("surplus", "F32", {1}));
  EXPECT_THAT(load_refusal(config, tensors), AllOf(HasSubstr("3 problems"), HasSubstr("'model.norm.weight'"),
                                                   HasSubstr("'lm_head.weight'"), HasSubstr("'surplus'")));

  for (const int extra : {20, 21}) {
    std::vector<TestTensor> many = fitting_tensors(config);
    for (int i = 0; i < extra; ++i) many.push_back(filled("surplus" + std::to_string(i), "F32", {1}));
    const std::string message = load_refusal(config, many);
    EXPECT_THAT(message, HasSubstr(std::to_string(extra) + " problems"));
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), extra == 20 ? 20 : 21);
    if (extra == 21) {
      EXPECT_THAT(message, HasSubstr("and 1 more"));
    } else {
      EXPECT_THAT(message, Not(HasSubstr("more")));
    }
  }
}

TEST(Weights, RefusesATruncatedFileNamingTheTensorThatIsCutOff) {
  const ModelSpec config = config_with();
  const std::string whole = safetensors_file(fitting_tensors(config));
  const TempDir dir;
  FakeOps ops;
  for (const std::size_t bytes : {whole.size() - 1, whole.size() / 2, std::size_t{20}, std::size_t{0}}) {
    dir.write("model.safetensors", whole.substr(0, bytes));
    const std::string message = refusal([&] { load_weights(ops, config, *ModelFiles::directory(dir.path())); });
    EXPECT_THAT(message, HasSubstr("/model.safetensors")) << bytes;
  }
  EXPECT_TRUE(ops.packs.empty());
}

TEST(Weights, WidensEveryDtypeOfANormExactly) {
  const ModelSpec config = config_with();
  for (const std::string dtype : {"F32", "BF16", "F16"}) {
    const std::vector<TestTensor> tensors = fitting_tensors(config, dtype);
    const TempDir dir;
    dir.write("model.safetensors", safetensors_file(tensors));
    FakeOps ops;
    const Weights weights = load_weights(ops, config, *ModelFiles::directory(dir.path()));
    const auto& norm = dynamic_cast<const FakeVector&>(*weights.vector(Role::kFinalNorm));
    std::vector<TestTensor> copy = tensors;
    const std::string& data = named(copy, "model.norm.weight").data;
    ASSERT_EQ(norm.values.size(), 8u);
    for (std::size_t i = 0; i < 8; ++i) {
      float expected = 0;
      std::uint16_t bits = 0;
      if (dtype == "F32") {
        std::memcpy(&expected, data.data() + 4 * i, 4);
      } else {
        std::memcpy(&bits, data.data() + 2 * i, 2);
        expected = dtype == "BF16" ? f32_of_bf16(bits) : f32_of_f16(bits);
      }
      EXPECT_EQ(norm.values[i], expected);
    }
  }
}

}  // namespace
}  // namespace quire::model::weights_test
