"""What real checkpoints bring that the program does not run, and by which words it is refused: each of them would otherwise answer wrongly."""

import json

from metadata_shapes.shape import Refused, bytes_of, without
from metadata_shapes.tiny_checkpoints import KINDS, LLAMA, TOKENIZER, TOKENIZER_CONFIG, safetensors
from metadata_shapes.tokenizer_shapes import metaspace, of
from metadata_shapes.weights_shapes import INDEX, old_index

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0000000000000000000000000000000000000000000000000000000000000000\nsize 12345\n"
HQQ = {"quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64, "axis": 1}}, "quant_method": "hqq", "skip_modules": ["lm_head"]}


def config(name, says, why, *, leave=(), kind="llama", **more):
    return Refused(name, {"config.json": without(KINDS[kind], *leave) | more}, ("config.json", *says), why, kind)


def weights(name, change, says, why, kind="llama"):
    files = {"model.safetensors": lambda tensors: safetensors(change(dict(tensors)), {"format": "pt"})}
    return Refused(name, files, ("model.safetensors", *says), why, kind)


def tokenizer(name, file, says, why):
    return Refused(name, {"tokenizer.json": file}, ("tokenizer.json", *says), why)


SHAPES = [
    # ---- config.json
    config("HQQ", ["quantization_config", "quantised by HQQ", "--quantize int4"], "its packed integers are not read", quantization_config=HQQ),
    config("AQLM", ["quantization_config", "quantised by AQLM to 2 bits"], "likewise", quantization_config={"quant_method": "aqlm", "bits": 2}),
    config("longrope", ["rope_scaling.long_factor"], "a factor for each frequency is not computed",
           rope_scaling={"type": "longrope", "long_factor": [1.0] * 8, "short_factor": [1.0] * 8}),
    config("heads rotated in part", ["partial_rotary_factor", "expected 1"], "the rest of a head would be rotated, too", partial_rotary_factor=0.5),
    config("DeepSeek-V3.2",
           ["model_type", "deepseek_v32", "positions that an indexer chooses"], "all positions would be attended to",
           model_type="deepseek_v32", architectures=["DeepseekV32ForCausalLM"]),
    config("Qwen2-Audio",
           ["model_type", "qwen2_audio"], "sounds are not read", kind="qwen2",
           model_type="qwen2_audio", architectures=["Qwen2AudioForConditionalGeneration"]),
    config("no model_type", ["'model_type' is missing"], "transformers does not know such a file either", leave=["model_type"]),
    config("a classifier", ["architectures", "Qwen2ForSequenceClassification"], "its head scores, and says no tokens", kind="qwen2",
           architectures=["Qwen2ForSequenceClassification"]),
    config("another function between the matrices", ["hidden_act", "quick_gelu"], "it is not computed",
           hidden_act="quick_gelu"),
    Refused("marks of a merge of git",
            {"config.json": "<<<<<<< HEAD\n" + json.dumps(LLAMA) + "\n"}, ("config.json", "not valid JSON"), "it holds two configurations"),
    Refused("an empty file", {"config.json": ""}, ("config.json", "not valid JSON"), "an upload broke off"),
    Refused("an adapter alone",
            {"config.json": None, "model.safetensors": None, "adapter_config.json": {"peft_type": "LORA", "r": 8}, "adapter_model.safetensors": b"x"},
            ("config.json is missing",), "it is no model without its base"),

    # ---- weights
    weights("tied, with another head in the file",
            lambda tensors: tensors | {"lm_head.weight": (*tensors["model.embed_tokens.weight"][:2], bytes(4 * 320 * 64))},
            ["'lm_head.weight' differs from 'model.embed_tokens.weight'", "tie_word_embeddings"],
            "transformers 4 drops the head, 5 keeps it", "llama_tied"),
    weights("not tied, without a head",
            lambda tensors: without(tensors, "lm_head.weight"), ["'lm_head.weight' is missing", "set it to true"],
            "transformers draws one at random"),
    weights("trl's value head",
            lambda tensors: tensors | {"v_head.summary.weight": ("F32", [1, 64], bytes(256))}, ["'v_head.summary.weight' is not part of"],
            "weights that were trained and are not used change what was meant"),
    weights("names of an adapter's merge that was not finished", lambda tensors: {"base_model.model." + name: told for name, told in tensors.items()},
            ["'model.embed_tokens.weight' is missing"], "transformers draws all of them at random"),
    weights("torch.compile's names",
            lambda tensors: {"_orig_mod." + name: told for name, told in tensors.items()}, ["'model.norm.weight' is missing"], "likewise"),
    weights("a layer fewer in config.json than in the file",
            lambda tensors: tensors | {"model.layers.2.input_layernorm.weight": tensors["model.layers.1.input_layernorm.weight"]},
            ["'model.layers.2.input_layernorm.weight' is not part of"], "which of both is true cannot be told"),
    weights("doubles",
            lambda tensors: tensors | {"model.norm.weight": ("F64", [64], bytes(512))},
            ["'model.norm.weight' has dtype F64", "expected F32, BF16 or F16"],
            "they are not computed with"),
    Refused("PyTorch's file alone",
            {"model.safetensors": None, "pytorch_model.bin": b"PK"}, ("model.safetensors is missing", "pytorch_model.bin is a pickle"), "pickles run code"),
    Refused("git without LFS: a pointer for the weights",
            {"model.safetensors": LFS}, ("model.safetensors is a Git LFS pointer", "git lfs pull"), "there are no weights"),
    Refused("a download that broke off",
            {"model.safetensors": lambda tensors: safetensors(tensors, {"format": "pt"})[:-1000]}, ("model.safetensors", "truncated"),
            "weights are missing"),
    Refused("an index, and none of its files",
            {"model.safetensors": None, INDEX: old_index}, ("model-00001-of-00009.safetensors is missing", "names it"),
            "weights are missing"),

    # ---- the tokenizer's files
    tokenizer("Unigram", TOKENIZER | {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["\u2581a", -1.5]], "byte_fallback": True}},
              ["the type 'Unigram' is not supported; expected BPE"], "its words are found another way"),
    tokenizer("WordPiece",
              TOKENIZER | {"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                                   "vocab": {"[UNK]": 0}}},
              ["the type 'WordPiece' is not supported"], "likewise"),
    tokenizer("WordLevel of a test's tiny model",
              TOKENIZER | {"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0}}},
              ["is not supported"], "likewise"),
    tokenizer("BERT's words",
              of(pre_tokenizer={"type": "BertPreTokenizer"}), ["the type 'BertPreTokenizer' is not supported"], "words would be cut elsewhere"),
    tokenizer("SentencePiece's own normalizer",
              of(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}), ["the type 'Precompiled' is not supported"],
              "letters would be other ones"),
    tokenizer("RoBERTa's tokens around a text",
              of(post_processor={"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0],
                                  "trim_offsets": True, "add_prefix_space": False}),
              ["the type 'RobertaProcessing' is not supported"], "a prompt would begin otherwise"),
    tokenizer("dropout", of(model={"dropout": 0.1}), ["dropout", "not supported"], "the same text would have other tokens each time"),
    tokenizer("Metaspace that contradicts itself",
              of(pre_tokenizer=metaspace(add_prefix_space=False, prepend_scheme="always")), ["add_prefix_space contradicts prepend_scheme"],
              "tokenizers refuses it, too"),
    tokenizer("git without LFS: a pointer for the tokenizer", LFS, ["tokenizer.json is a Git LFS pointer"], "there is no tokenizer"),
    Refused("mistral-common: tekken.json alone",
            {"tokenizer.json": None, "tekken.json": {"config": {"pattern": "x"}, "vocab": []}}, ("tokenizer.json is missing",),
            "it is another format"),
    Refused("SentencePiece's model alone", {"tokenizer.json": None, "tokenizer.model": b"\n\x0e"}, ("tokenizer.json is missing",), "likewise"),
    Refused("an end that is a text",
            {"generation_config.json": {"eos_token_id": "<|im_end|>"}}, ("generation_config.json", "eos_token_id", "expected a token's id or a list of them"),
            "answers would not end"),

    # ---- chat templates
    Refused("a tag that is not closed",
            {"chat_template.jinja": "{% for message in messages %}{{ message.content }}"}, ("chat_template.jinja", "--chat-template"),
            "no prompt can be made"),
    Refused("a tag of Jinja that templates must not use",
            {"chat_template.jinja": None, "tokenizer_config.json": TOKENIZER_CONFIG | {"chat_template": "{% include 'x' %}"}},
            ("tokenizer_config.json", "--chat-template"), "there is no file to take in"),
    Refused("a template that is a number", {"chat_template.jinja": None, "tokenizer_config.json": bytes_of(TOKENIZER_CONFIG | {"chat_template": 1})},
            ("tokenizer_config.json", "chat_template must be a string or a list of objects with name and template"), "it is none"),
]
