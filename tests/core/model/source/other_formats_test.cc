#include "core/model/source/other_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace quire::model::other_formats_test {
namespace {

using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A directory with these files, and parts of the text that explains it.
struct Kind {
  std::vector<std::string> files;
  std::string missing;
  std::vector<std::string> reported;
};

constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";

const Kind kKinds[] = {
    {{"Qwen3-0.6B-Q4_K_M.gguf"}, kConfig, {"GGUF (Qwen3-0.6B-Q4_K_M.gguf)", "give that file"}},
    {{"config.json", "model.gguf"}, kWeights, {"GGUF (model.gguf)"}},
    {{"ggml-model-q4_0.bin"}, kConfig, {"GGML (ggml-model-q4_0.bin)"}},
    {{"llava.llamafile"}, kConfig, {"llamafile"}},
    {{"adapter_config.json", "adapter_model.safetensors"}, kConfig, {"LoRA adapter", "merge_and_unload()"}},
    {{"adapter_config.json", "adapter_model.bin", "config.json"}, kWeights, {"LoRA adapter"}},
    {{"config.json", "pytorch_model.bin"}, kWeights, {"pytorch_model.bin is a pickle", "save_pretrained("}},
    {{"config.json", "pytorch_model-00001-of-00002.bin"}, kWeights, {"is a pickle"}},
    {{"config.json", "medusa_lm_head.pt"}, kWeights, {"medusa_lm_head.pt is a pickle"}},
    {{"config.json", "hydra_lm_head.pt"}, kWeights, {"hydra_lm_head.pt is a pickle"}},
    {{"params.json", "consolidated.00.pth", "tokenizer.model"}, kConfig, {"Meta's own layout", "pickles"}},
    {{"params.json", "consolidated.safetensors", "tekken.json"}, kConfig, {"Mistral's own layout"}},
    {{"snapshots/0123/config.json", "refs/main", "blobs/x"}, kConfig, {"give its snapshot:", "/snapshots/0123"}},
    {{"refs/main", "snapshots/readme"}, kConfig, {"no snapshot yet", "quire pull"}},
    {{"models--a--b/snapshots/45/config.json", "version.txt"}, kConfig, {"cache", "/models--a--b/snapshots/45"}},
    {{"blobs/sha256-1", "manifests/registry.ollama.ai"}, kConfig, {"store of ollama", "ollama show --modelfile"}},
    {{"checkpoint-90/config.json", "checkpoint-500/config.json"}, kConfig, {"training run", "/checkpoint-"}},
    {{"one/config.json", "two/config.json", "three/readme"}, kConfig, {"give one of them:", "/one, ", "/two"}},
    {{"mlc-chat-config.json", "params_shard_0.bin"}, kConfig, {"MLC"}},
    {{"config.json", "rank0.engine"}, kWeights, {"TensorRT-LLM (rank0.engine)"}},
    {{"genai_config.json", "model.onnx"}, kConfig, {"ONNX Runtime"}},
    {{"config.json", "openvino_model.xml", "openvino_model.bin"}, kWeights, {"OpenVINO"}},
    {{"model.mlpackage/data"}, kConfig, {"Core ML"}},
    {{"model_config.yaml", "model_weights/x"}, kConfig, {"NeMo"}},
    {{"model_index.json", "unet/config.json"}, kConfig, {"give one of them"}},
    {{"model_index.json", "scheduler/x"}, kConfig, {"diffusers"}},
    {{"zero_to_fp32.py", "latest", "global_step10/x"}, kConfig, {"DeepSpeed", "python zero_to_fp32.py"}},
    {{"__0_0.distcp", ".metadata"}, kConfig, {"FSDP", "accelerate merge-weights"}},
    {{"config.json", "tf_model.h5"}, kWeights, {"TensorFlow", "from_tf=True"}},
    {{"config.json", "flax_model.msgpack"}, kWeights, {"Flax"}},
    {{"config.json", "model.safetensors.incomplete"}, kWeights, {"incomplete download", "quire serve ORG/NAME"}},
    {{"config.json", "model-00001-of-00002.safetensors"},
     kWeights,
     {"model.safetensors.index.json", "download it, too"}},
    {{"config.json", "model.fp16.safetensors"}, kWeights, {"another name (model.fp16.safetensors)"}},
    {{}, kConfig, {"is empty", "ORG/NAME"}},
    {{"model.safetensors", "tokenizer.model"}, "tokenizer.json", {"older form (tokenizer.model)", "AutoTokenizer"}},
    {{"vocab.json", "merges.txt", "pytorch_model.bin"}, "tokenizer.json", {"older form (vocab.json)"}},
    {{"qwen.tiktoken"}, "tokenizer.json", {"older form (qwen.tiktoken)"}},
    {{"tekken.json"}, "tokenizer.json", {"Mistral's own form"}},
};

TEST(OtherFormats, AreToldByTheFilesOfADirectory) {
  for (const Kind& kind : kKinds) {
    const TemporaryFolder folder;
    for (const std::string& file : kind.files) folder.write(file, "{}");
    const std::string reported = explain_directory(folder.path(), kind.missing);
    for (const std::string& part : kind.reported) {
      EXPECT_THAT(reported, HasSubstr(part)) << (kind.files.empty() ? "nothing" : kind.files.front());
    }
  }
}

TEST(OtherFormats, AreNotSeenInAModelThatLacksAFileOfItsOwn) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", "x");
  folder.write("pytorch_model.bin", "x");
  EXPECT_THAT(explain_directory(folder.path(), kConfig), IsEmpty());
  EXPECT_THAT(explain_directory(folder.path(), "tokenizer.json"), IsEmpty());
  EXPECT_THAT(explain_directory(folder.path() + "/none", "tokenizer.json"), IsEmpty());
}

TEST(OtherFormats, AnAdapterIsToldWithItsKindAndItsBase) {
  const TemporaryFolder folder;
  const auto reported = [&](const std::string& config) {
    folder.write("adapter_config.json", config);
    return explain_directory(folder.path(), kConfig);
  };
  EXPECT_THAT(reported(R"({"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-3.2-1B"})"),
              HasSubstr("is a LoRA adapter for meta-llama/Llama-3.2-1B, not a whole model"));
  EXPECT_THAT(reported(R"({"peft_type": "IA3"})"), HasSubstr("is a PEFT IA3 adapter, not"));
  for (const char* damaged : {"", "{", "[]", R"({"peft_type": 3, "base_model_name_or_path": null})"}) {
    EXPECT_THAT(reported(damaged), HasSubstr("is a LoRA adapter, not")) << damaged;
  }
}

TEST(OtherFormats, TheNewestCheckpointOfARunIsTold) {
  const TemporaryFolder folder;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const char* name : {"checkpoint-900", "checkpoint-1000", "checkpoint-20"}) {
    folder.write(std::string(name) + "/config.json", "{}");
    std::filesystem::last_write_time(folder.path_of(name), now - std::chrono::hours(1));
  }
  EXPECT_THAT(explain_directory(folder.path(), kConfig),
              HasSubstr("checkpoints: " + folder.path_of("checkpoint-1000")));
  std::filesystem::last_write_time(folder.path_of("checkpoint-20"), now);
  EXPECT_THAT(explain_directory(folder.path(), kConfig), HasSubstr("checkpoints: " + folder.path_of("checkpoint-20")));
}

TEST(OtherFormats, ADirectoryInPlaceOfAFileIsNotRead) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path_of("adapter_config.json"));
  EXPECT_THAT(explain_directory(folder.path(), kConfig), HasSubstr("is a LoRA adapter"));
}

TEST(OtherFormats, ALinkToNothingIsTold) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink(folder.path_of("blob"), folder.path_of("config.json"));
  EXPECT_THAT(explain_directory(folder.path(), kConfig), HasSubstr("broken symbolic link of that name"));
  EXPECT_THAT(explain_path(folder.path_of("config.json")), HasSubstr("symbolic link to " + folder.path_of("blob")));
}

TEST(OtherFormats, AnAddressOfTheHubIsToldWithTheNameToGive) {
  const auto reported = [](const char* path) { return explain_path(path); };
  const auto downloads = [](const char* name) {
    return AllOf(HasSubstr("there is no such directory"), HasSubstr("by its name alone: " + std::string(name)));
  };
  EXPECT_THAT(reported("meta-llama/Llama-3.2-1B"), downloads("meta-llama/Llama-3.2-1B"));
  EXPECT_THAT(reported("https://huggingface.co/Qwen/Qwen3-0.6B"), downloads("Qwen/Qwen3-0.6B"));
  EXPECT_THAT(reported("https://huggingface.co/Qwen/Qwen3-0.6B/tree/main"), downloads("Qwen/Qwen3-0.6B"));
  EXPECT_THAT(reported("http://www.hf.co/a/b?x=1"), downloads("a/b"));
  EXPECT_THAT(reported("hf.co/a/b:Q4_K_M"), downloads("a/b"));
  EXPECT_THAT(reported("llama3.2:3b"), AllOf(HasSubstr("there is no such directory"), HasSubstr("ollama")));
  EXPECT_THAT(reported("someone/llama3.2:latest"), HasSubstr("ollama"));
  const std::string long_name(200, 'a');
  for (const std::string& path :
       std::vector<std::string>{"./some/model", "/no/such", "a/b/c", "gpt2", "", "../a", "a:", ":", "-a/b", "a b/c",
                                long_name + "/b", "https://huggingface.co/"}) {
    EXPECT_THAT(explain_path(path), HasSubstr("there is no such directory; give one with config.json")) << path;
  }
}

TEST(OtherFormats, AFileIsToldByItsBytesAndItsName) {
  const TemporaryFolder folder;
  const auto reported = [&](const std::string& name, const std::string& bytes) {
    folder.write(name, bytes);
    return explain_path(folder.path_of(name));
  };
  EXPECT_THAT(reported("sha256-1", "GGUF\3"), HasSubstr("is a GGUF file"));
  EXPECT_THAT(reported("model.bin", "PK\x03\x04"), HasSubstr("is a pickle or an archive"));
  EXPECT_THAT(reported("model.pt", "\x80\x02}q"), HasSubstr("is a pickle"));
  EXPECT_THAT(reported("pointer", "version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(reported("page", "<!DOCTYPE html>"), HasSubstr("is a web page"));
  EXPECT_THAT(reported("model.engine", "x"), HasSubstr("TensorRT-LLM"));
  EXPECT_THAT(reported("alone.safetensors", "x"), HasSubstr("only a file of weights"));
  EXPECT_THAT(reported("notes.txt", "x"), HasSubstr("is not a directory; give one with config.json"));
  EXPECT_THAT(reported("none", ""), HasSubstr("is not a directory"));
  folder.write("config.json", "{}");
  EXPECT_THAT(reported("model.safetensors", "x"), HasSubstr("give its directory: " + folder.path()));
}

TEST(OtherFormats, BytesOfAModelsFilesAreNone) {
  for (const std::string_view text : {"{}", "", "\x10\0\0\0\0\0\0\0{", "{% if messages %}", "<|im_start|>", "PKG"}) {
    EXPECT_FALSE(explain_bytes(std::as_bytes(std::span(text.data(), text.size())))) << text;
  }
}

TEST(OtherFormats, QuantisedTensorsAndAdaptersAreToldByTheirNames) {
  for (const char* name : {"a.qweight", "a.qzeros", "a.weight_packed", "a.weight_scale", "a.weight_scale_inv"}) {
    EXPECT_THAT(explain_tensors(name), HasSubstr("no quantization_config")) << name;
    EXPECT_THAT(explain_tensors(name, true), HasSubstr("its codes are missing")) << name;
  }
  EXPECT_THAT(explain_tensors("a.lora_A.weight"), HasSubstr("merge"));
  for (const char* name : {"a.weight", "a.bias", "qweight", ""}) EXPECT_THAT(explain_tensors(name), IsEmpty()) << name;
}

TEST(OtherFormats, AQuantisationIsToldWithItsNameAndWhatToTakeInstead) {
  EXPECT_THAT(explain_quantization("gptq", 4), AllOf(HasSubstr("by GPTQ to 4 bits"), HasSubstr("--quantize int4")));
  EXPECT_THAT(explain_quantization("awq", 4), HasSubstr("by AWQ"));
  EXPECT_THAT(explain_quantization("bitsandbytes", 8),
              AllOf(HasSubstr("by bitsandbytes"), HasSubstr("--quantize int8")));
  EXPECT_THAT(explain_quantization("fp8", 0), AllOf(HasSubstr("by FP8,"), HasSubstr("--quantize fp8")));
  EXPECT_THAT(explain_quantization("", 0), HasSubstr("are quantised, which"));
}

}  // namespace
}  // namespace quire::model::other_formats_test
