#include "core/model/source/other_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <tuple>
#include <vector>

#include "core/base/log.h"

namespace quire::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOriginal =
    "use the original, a directory with config.json, tokenizer.json and safetensors, and let quire quantise it while "
    "loading: --quantize int4";

// True if the name matches the pattern, which has at most one '*'.
bool fits(std::string_view name, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return name == pattern;
  return name.size() + 1 >= pattern.size() && name.starts_with(pattern.substr(0, star)) &&
         name.ends_with(pattern.substr(star + 1));
}

// Files of one format and the explanation; {0} is the file that was found, {1} the directory, {2} is kOriginal.
// patterns: one of them matches a file.
struct Format {
  std::vector<std::string_view> patterns;
  std::string_view text;
};

const std::vector<Format>& formats_of_models() {
  static const std::vector<Format> formats = {
      {{"*.gguf"}, "holds GGUF ({0}): give that file"},
      {{"*.ggml", "ggml-model-*.bin"}, "holds GGML ({0}), an old format of llama.cpp, which quire does not read; {2}"},
      {{"*.llamafile"},
       "holds a llamafile ({0}), a program with GGUF inside, which quire does not read; give the GGUF file itself"},
      {{"mlc-chat-config.json", "params_shard_0.bin"}, "is a model of MLC ({0}), compiled for one device; {2}"},
      {{"*.engine"}, "is an engine of TensorRT-LLM ({0}), compiled for one GPU; {2}"},
      {{"genai_config.json", "*.onnx"}, "is a model of ONNX Runtime ({0}), which quire does not read; {2}"},
      {{"openvino_model.xml", "openvino_language_model.xml"},
       "is a model of OpenVINO ({0}), which quire does not read; {2}"},
      {{"*.mlpackage", "*.mlmodelc"}, "is a model of Core ML ({0}), which quire does not read; {2}"},
      {{"*.nemo", "model_config.yaml"},
       "is a model of NeMo ({0}); export it to Hugging Face's layout with NeMo's export, and give that directory"},
      {{"model_index.json"}, "is a pipeline of diffusers ({0}), which makes images; quire serves language models"},
      {{"consolidated*.pth"},
       "is in Meta's own layout ({0}), in pickles, which can run programs; download the same model in Hugging Face's "
       "layout (config.json, tokenizer.json, model*.safetensors)"},
      {{"consolidated*.safetensors"},
       "is in Mistral's own layout ({0}); download the same model in Hugging Face's (config.json, tokenizer.json, "
       "model*.safetensors)"},
      {{"zero_to_fp32.py"},
       "is a training state, split by DeepSpeed; join it: `cd {1} && python zero_to_fp32.py . OUT "
       "--safe_serialization`, and give OUT with config.json and tokenizer.json beside it"},
      {{"*.distcp", "pytorch_model_fsdp_*"},
       "is a training state, split by FSDP ({0}); join it: `accelerate merge-weights {1} OUT`, and give OUT with "
       "config.json and tokenizer.json beside it"},
      {{"tf_model*.h5", "flax_model*.msgpack"},
       "holds weights of TensorFlow or Flax ({0}); load them with transformers 4 (from_tf=True or from_flax=True) and "
       "write safetensors with save_pretrained()"},
  };
  return formats;
}

const std::vector<Format>& formats_of_weights() {
  static const std::vector<Format> formats = {
      {{"*.incomplete", "*.part", "*.crdownload", "*.aria2"},
       "holds an incomplete download ({0}); continue it, or let quire download the model by its name: `quire serve "
       "ORG/NAME`"},
      {{"model-0*.safetensors"},
       "holds a part of the weights ({0}) without model.safetensors.index.json, which names the file of each tensor; "
       "download it, too"},
      {{"*.safetensors"}, "holds weights under another name ({0}); rename the file to model.safetensors"},
      {{"*_lm_head.pt"},
       "holds a draft head's weights in a pickle ({0} is a pickle), which can run programs and is never opened; write "
       "safetensors beside them: `python models/convert_head.py {1}/{0}`"},
      {{"pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt", "*.bin"},
       "holds pickled weights ({0} is a pickle), which can run programs and are never opened; write safetensors beside "
       "them: `python -c \"from transformers import AutoModelForCausalLM as M; "
       "M.from_pretrained('{1}').save_pretrained('{1}')\"`"},
  };
  return formats;
}

const std::vector<Format>& formats_of_tokenizers() {
  constexpr std::string_view kConvert =
      "holds its tokenizer in an older form ({0}); write tokenizer.json beside it: `python -c \"from transformers "
      "import "
      "AutoTokenizer as T; T.from_pretrained('{1}').save_pretrained('{1}')\"`";
  static const std::vector<Format> formats = {
      {{"tekken.json"}, "holds its tokenizer in Mistral's own form ({0}); download the same model's tokenizer.json"},
      {{"tokenizer.model", "*.tiktoken", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece*.model"}, kConvert},
  };
  return formats;
}

struct Directory {
  std::string path;
  std::vector<std::string> names;  // sorted

  bool has(std::string_view name) const { return std::ranges::binary_search(names, name); }
  const std::string* first(std::string_view pattern) const {
    const auto found = std::ranges::find_if(names, [&](const std::string& name) { return fits(name, pattern); });
    return found == names.end() ? nullptr : &*found;
  }
};

Directory list(const std::string& path) {
  Directory directory{path, {}};
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    directory.names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(directory.names);
  return directory;
}

std::string first_of(const std::vector<Format>& formats, const Directory& directory) {
  for (const Format& format : formats) {
    for (const std::string_view pattern : format.patterns) {
      const std::string* name = directory.first(pattern);
      if (name != nullptr) {
        return fmt::format(fmt::runtime(format.text), log_safe(*name), directory.path, kOriginal);
      }
    }
  }
  return {};
}

std::string text_of_key(const std::string& file, std::string_view key) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return {};
  std::ifstream stream(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(text, error);
  const auto* object = error ? nullptr : value.if_object();
  const auto* found = object == nullptr ? nullptr : object->if_contains(key);
  const auto* string = found == nullptr ? nullptr : found->if_string();
  return string == nullptr ? std::string() : log_safe(std::string(*string));
}

std::string explain_adapter(const Directory& directory) {
  constexpr std::string_view kFile = "adapter_config.json";
  if (!directory.has(kFile)) return {};
  const std::string file = directory.path + "/" + std::string(kFile);
  const std::string kind = text_of_key(file, "peft_type");
  const std::string base = text_of_key(file, "base_model_name_or_path");
  return fmt::format(
      "is {} adapter{}, not a whole model; merge it: `python -c \"from peft import AutoPeftModelForCausalLM as M; "
      "M.from_pretrained('{}').merge_and_unload().save_pretrained('OUT')\"`, and give OUT with the tokenizer.json of "
      "its "
      "base beside it",
      kind.empty() || kind == "LORA" ? "a LoRA" : "a PEFT " + kind, base.empty() ? "" : " for " + base, directory.path);
}

std::string newest_in(const std::string& path, std::string_view prefix) {
  std::error_code error;
  std::string newest;
  fs::file_time_type time{};
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (!entry->path().filename().string().starts_with(prefix) || !entry->is_directory(unknown)) continue;
    const auto changed = entry->last_write_time(unknown);
    const std::string one = entry->path().string();
    const bool is_newer = std::tuple(changed, one.size(), one) > std::tuple(time, newest.size(), newest);
    if (newest.empty() || is_newer) newest = one, time = changed;
  }
  return newest;
}

// Explains directories that hold models one or two levels further down.
std::string explain_parent(const Directory& directory) {
  if (directory.has("snapshots")) {
    const std::string snapshot = newest_in(directory.path + "/snapshots", "");
    const std::string kind = "is a model's directory in the cache of the Hugging Face hub; ";
    return kind +
           (snapshot.empty() ? "it has no snapshot yet: `quire pull ORG/NAME`" : "give its snapshot: " + snapshot);
  }
  if (const std::string* model = directory.first("models--*")) {
    const std::string snapshot = newest_in(directory.path + "/" + *model + "/snapshots", "");
    return "is the cache of the Hugging Face hub; give a snapshot of one model" +
           (snapshot.empty() ? "" : ", for example " + snapshot);
  }
  if (directory.has("blobs") && directory.has("manifests")) {
    return "is the store of ollama: give the model's own file, the largest of its blobs (`ollama show --modelfile "
           "NAME` "
           "names it after FROM)";
  }
  if (directory.first("checkpoint-*") != nullptr) {
    const std::string checkpoint = newest_in(directory.path, "checkpoint-");
    if (!checkpoint.empty()) return "is the output of a training run; give one of its checkpoints: " + checkpoint;
  }
  std::string models;
  std::error_code error;
  for (const std::string& name : directory.names) {
    if (!fs::exists(directory.path + "/" + name + "/config.json", error)) continue;
    models += (models.empty() ? "" : ", ") + directory.path + "/" + log_safe(name);
    if (models.size() > 200) break;
  }
  return models.empty() ? std::string() : "holds directories of models; give one of them: " + models;
}

bool is_name(std::string_view text) {
  const auto is_sign = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 96 && text[0] != '.' && text[0] != '-' && std::ranges::all_of(text, is_sign);
}

// "ORG/NAME"
bool is_name_of_hub(std::string_view path) {
  const std::size_t slash = path.find('/');
  return slash != path.npos && is_name(path.substr(0, slash)) && is_name(path.substr(slash + 1));
}

// "https://huggingface.co/ORG/NAME/tree/main" → "ORG/NAME"
std::string_view name_in_url(std::string_view path) {
  for (const std::string_view start : {"https://", "http://", "www.", "huggingface.co/", "hf.co/"}) {
    const bool is_host = start.ends_with('/') && !start.ends_with("//");
    if (!path.starts_with(start)) continue;
    path.remove_prefix(start.size());
    if (!is_host) continue;
    const std::size_t slash = path.find('/');
    return slash == path.npos ? path : path.substr(0, path.find_first_of("/?#:", slash + 1));
  }
  return {};
}

// "llama3.2:3b", "someone/llama3.2:3b"
bool is_name_of_ollama(std::string_view path) {
  const std::size_t colon = path.rfind(':');
  if (colon == path.npos || !is_name(path.substr(colon + 1))) return false;
  const std::string_view name = path.substr(0, colon);
  return is_name(name) || is_name_of_hub(name);
}

std::string explain_no_path(const std::string& path) {
  std::error_code error;
  if (fs::is_symlink(path, error)) {
    return fmt::format(" is a symbolic link to {}, which does not exist", fs::read_symlink(path, error).string());
  }
  const std::string_view linked = name_in_url(path);
  const std::string_view name = linked.empty() ? std::string_view(path) : linked;
  if (is_name_of_hub(name)) {
    return fmt::format(": there is no such directory; a model of the Hugging Face hub is given by its name alone: {}",
                       name);
  }
  if (is_name_of_ollama(path)) {
    return ": there is no such directory; if this is a name of ollama, give the model's own file (`ollama show "
           "--modelfile "
           "NAME` names it after FROM), or a name of the Hugging Face hub: ORG/NAME:Q4_K_M";
  }
  return ": there is no such directory; give one with config.json, tokenizer.json and model.safetensors, or the name "
         "of a "
         "model of the Hugging Face hub: ORG/NAME";
}

bool begins_with(FileBytes bytes, std::string_view text) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(text);
}

}  // namespace

std::optional<std::string> explain_bytes(FileBytes bytes) {
  if (begins_with(bytes, "version https://git-lfs.github.com/spec/")) {
    return "is a Git LFS pointer, not the file itself; fetch it: `git lfs pull` in its directory";
  }
  for (const std::string_view tag : {"<!DOCTYPE", "<!doctype", "<html", "<HTML"}) {
    if (begins_with(bytes, tag)) return "is a web page, not the file itself; download it again";
  }
  if (begins_with(bytes, "GGUF")) {
    return "is a GGUF file in place of another; give it as MODEL";
  }
  // A pickle is a Python program, stored bare or in PyTorch's zip archive.
  const bool is_pickle = begins_with(bytes, "PK\x03\x04") || begins_with(bytes, "\x80\x02") ||
                         begins_with(bytes, "\x80\x03") || begins_with(bytes, "\x80\x04");
  if (is_pickle) {
    return "is a pickle or an archive, which quire does not open: pickles can run programs; load it with transformers "
           "and write safetensors with save_pretrained(), and give that directory";
  }
  return std::nullopt;
}

std::string explain_path(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return path + explain_no_path(path);
  const fs::path whole(path);
  const std::string parent = whole.parent_path().empty() ? "." : whole.parent_path().string();
  if (fs::exists(whole.parent_path() / "config.json", error)) {
    return path + " is a file, not a directory; give its directory: " + parent;
  }
  if (auto mapped = MappedFile::open(path)) {
    if (const auto known = explain_bytes((*mapped)->bytes())) return path + " " + *known;
  }
  const std::string known = first_of(formats_of_models(), {parent, {whole.filename().string()}});
  if (!known.empty()) return path + " is not a directory; " + parent + " " + known;
  if (path.ends_with(".safetensors")) {
    return path +
           " is only a file of weights; put config.json and tokenizer.json of its model beside it, rename it to "
           "model.safetensors and give the directory: " +
           parent;
  }
  return path + " is not a directory; give one with config.json, tokenizer.json and model.safetensors";
}

std::string explain_directory(const std::string& path, std::string_view missing) {
  const Directory directory = list(path);
  std::error_code error;
  if (directory.has(missing) && !fs::exists(path + "/" + std::string(missing), error)) {
    return fmt::format("has a broken symbolic link of that name; download the model again, or remove {}", path);
  }
  if (missing == "tokenizer.json") return first_of(formats_of_tokenizers(), directory);
  if (directory.names.empty()) return "is empty; a model of the Hugging Face hub is given by its name: ORG/NAME";
  std::string text = explain_adapter(directory);
  if (text.empty()) text = explain_parent(directory);
  if (text.empty()) text = first_of(formats_of_models(), directory);
  const bool has_weights = directory.has("model.safetensors") || directory.has("model.safetensors.index.json");
  if (text.empty() && !has_weights) text = first_of(formats_of_weights(), directory);
  return text;
}

std::string explain_tensors(std::string_view name, bool has_config) {
  if (name.ends_with(".trellis")) {
    return fmt::format("'{}' is part of a quantised matrix: {}", log_safe(name), explain_quantization("exl3", 0));
  }
  for (const std::string_view end :
       {".qweight", ".qzeros", ".weight_packed", ".weight_scale", ".weight_scale_inv", ".absmax", ".SCB"}) {
    if (!name.ends_with(end)) continue;
    return fmt::format("'{}' is part of a quantised matrix, but {}", log_safe(name),
                       has_config
                           ? "its codes are missing: the download is incomplete"
                           : "config.json has no quantization_config that says how: take it from the model's page");
  }
  if (name.find(".lora_A.") != name.npos || name.find(".lora_B.") != name.npos) {
    return fmt::format("'{}' is part of an adapter: merge it into its base first, with peft's merge_and_unload()",
                       log_safe(name));
  }
  return {};
}

std::string explain_quantization(std::string_view method, std::uint64_t bits) {
  struct Name {
    std::string_view method, name;
  };
  constexpr std::array kNames = {Name{"gptq", "GPTQ"},
                                 Name{"awq", "AWQ"},
                                 Name{"exl2", "ExLlamaV2"},
                                 Name{"exl3", "ExLlamaV3"},
                                 Name{"aqlm", "AQLM"},
                                 Name{"hqq", "HQQ"},
                                 Name{"mxfp4", "MXFP4"},
                                 Name{"fp8", "FP8"},
                                 Name{"fbgemm_fp8", "FP8"},
                                 Name{"modelopt", "NVIDIA's ModelOpt"},
                                 Name{"mlx", "MLX"},
                                 Name{"compressed-tensors", "llm-compressor"},
                                 Name{"auto-round", "AutoRound"}};
  const auto* known = std::ranges::find(kNames, method, &Name::method);
  const std::string name = known != kNames.end() ? std::string(known->name) : log_safe(std::string(method));
  const std::string by = name.empty() ? "the weights are quantised" : "the weights are quantised by " + name;
  const std::string width = bits == 0 || bits > 64 ? "" : fmt::format(" to {} bits", bits);
  const std::string_view type = name == "FP8" ? "fp8" : bits == 8 ? "int8" : "int4";
  return fmt::format(
      "{}{}, which quire does not read; use the original in bf16, f16 or f32, and let quire quantise it while loading: "
      "--quantize {}",
      by, width, type);
}

}  // namespace quire::model
