#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "app/model/embedded_model.h"
#include "app/model/loaded_model.h"
#include "core/base/start_error.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/weight_checks.h"
#include "core/model/weights.h"
#include "tests/support/temporary_folder.h"

namespace quire::app::model_source_test {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& model) {
  try {
    open_model(model);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(EmbeddedModel, IsAWholeModel) {
  const auto files = embedded_model();
  const model::ModelSpec config = model::load_config(*files);
  EXPECT_NO_THROW(model::check_weights(config, model::Checkpoint::open(*files)));
  EXPECT_TRUE(files->find("tokenizer.json"));
  EXPECT_TRUE(files->find("tokenizer_config.json"));
  EXPECT_TRUE(files->find("generation_config.json"));
}

TEST(ModelSource, WithoutAModelTheEmbeddedOneServes) {
  for (const char* model : {"stories", ""}) {
    EXPECT_EQ(open_model(model).name, "stories");
    EXPECT_EQ(open_model(model).path, "");
  }
}

TEST(ModelSource, ADirectoryIsKnownByItsNameAndAsGiven) {
  const test::TemporaryFolder folder;
  const std::string name = std::filesystem::path(folder.path()).filename();
  const ModelSource source = open_model(folder.path() + "/");
  EXPECT_EQ(source.name, name);
  EXPECT_EQ(source.path, folder.path() + "/");
}

TEST(ModelSource, WhatIsNoDirectoryIsRefusedWithWhatToDo) {
  EXPECT_THAT(refusal("someone/some-model"), HasSubstr("there is no such directory"));
  EXPECT_THAT(refusal("someone/some-model"), HasSubstr("without MODEL"));
  EXPECT_THAT(refusal("/proc/self/exe"), HasSubstr("not a directory"));
}

TEST(ModelSource, AutoKvFollowsTheWeightsAndTheDeclaredCache) {
  using backend::Format;
  using backend::KvType;
  Config config;
  config.kv_cache_dtype = "auto";
  EXPECT_EQ(kv_dtype_of(config, Format::kBF16, false), KvType::kBF16);
  EXPECT_EQ(kv_dtype_of(config, Format::kF16, false), KvType::kF32);
  EXPECT_EQ(kv_dtype_of(config, Format::kF32, false), KvType::kF32);
  EXPECT_EQ(kv_dtype_of(config, Format::kBF16, true), KvType::kFp8);
  EXPECT_EQ(kv_dtype_of(config, Format::kF32, true), KvType::kFp8);
  config.kv_cache_dtype = "f32";
  for (const bool declared : {false, true}) EXPECT_EQ(kv_dtype_of(config, Format::kBF16, declared), KvType::kF32);
  for (const KvType type : backend::kAllKvTypes) {
    config.kv_cache_dtype = backend::name_of(type);
    EXPECT_EQ(kv_dtype_of(config, Format::kBF16, false), type);
  }
}

TEST(ModelSource, AnotherTypeThanTheCheckpointsIsRefused) {
  Config config;
  config.dtype = "f32";
  config.isa = "auto";
  config.kv_cache_dtype = "auto";
  try {
    load_model(config, open_model("stories"), 16);
    FAIL() << "no error";
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--dtype f32: the checkpoint stores bf16"));
  }
}

TEST(ModelSource, ReadsWithoutPackingAndPacksForTheLengthPlanned) {
  Config config;
  config.dtype = "auto";
  config.isa = "auto";
  config.kv_cache_dtype = "auto";
  ReadModel read = read_model(config, open_model("stories"));
  EXPECT_EQ(read.kv_dtype, backend::KvType::kBF16);
  EXPECT_EQ(read.weight_bytes, 2 * read.num_parameters);
  EXPECT_EQ(pack_model(config, std::move(read), 16, 100).decoder->max_model_len(), 100u);
}

Config quiet_config(const std::string& quantize) {
  Config config;
  config.dtype = "auto";
  config.quantize = quantize;
  config.isa = "auto";
  config.kv_cache_dtype = "auto";
  return config;
}

TEST(ModelSource, QuantisedWeightsTakeThePlannedMemoryAndAreNamed) {
  struct Case {
    std::string quantize, named, mode;
    double of_stored;  // at most
  };
  for (const Case& c :
       {Case{"none", ", bf16, ", "bf16", 1.01}, Case{"int8", ", bf16 quantised to int8, ", "int8", 0.52},
        Case{"int4", ", bf16 quantised to int4, ", "int4", 0.34}, Case{"fp8", ", bf16 quantised to fp8, ", "fp8", 0.52},
        Case{"w8a8", ", bf16 quantised to w8a8, ", "w8a8", 0.52},
        Case{"w4a8", ", bf16 quantised to w4a8, ", "w4a8", 0.34},
        Case{"w16a16", ", bf16 quantised to w16a16, ", "w16a16", 1.01}}) {
    const LoadedModel model = load_model(quiet_config(c.quantize), open_model("stories"), 16);
    EXPECT_EQ(model.packed_bytes, model.decoder->packed_bytes()) << c.quantize;
    const PackedSize planned = packed_size_of(model::open_decoder(*model.source.files), model.config,
                                              quantize_of(quiet_config(c.quantize)), *model.device);
    EXPECT_EQ(planned.bytes, model.decoder->packed_bytes()) << c.quantize;
    EXPECT_EQ(planned.step_bytes, model.decoder->step_bytes()) << c.quantize;
    EXPECT_LT(static_cast<double>(model.packed_bytes), c.of_stored * static_cast<double>(model.weight_bytes));
    EXPECT_THAT(model_line(model), HasSubstr(c.named));
    EXPECT_EQ(backend::name_of(model.decoder->weight_format()), c.mode);
    EXPECT_EQ(model.kv_dtype, backend::KvType::kBF16);  // follows the checkpoint
  }
}

TEST(ModelSource, WhatIsFreeIsReckonedFromThePackedWeightsNotTheStoredOnes) {
  Config config = quiet_config("int4");
  config.block_size = 16;
  ReadModel read = read_model(config, open_model("stories"));
  read.weight_bytes = ~std::uint64_t{0};
  EXPECT_GT(request_before_packing(config, read).free_bytes, 0u);
  read.packed_bytes = ~std::uint64_t{0};
  EXPECT_EQ(request_before_packing(config, read).free_bytes, 0u);
}

}  // namespace
}  // namespace quire::app::model_source_test
