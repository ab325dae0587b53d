"""tokenizer_config.json. `other_readers.ids`, `end_of_tokenizer` and `chat` say what each must mean. config.json ends with OTHER_END, and the
chat template, a file of its own, begins with bos_token."""

from metadata_shapes import shape
from metadata_shapes.shape import Shape, with_first, without
from metadata_shapes.tiny_checkpoints import CHATML, END, FREE, OTHER_END, PAD, START, STOP, TOKENIZER_CONFIG, WORDS

UNLIMITED = 1000000000000000019884624838656  # int(1e30)
PLAIN = TOKENIZER_CONFIG
E_TEXT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"


def token(content, **more):
    return {"content": content, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False} | more


def marked(content, **more):
    return {"__type": "AddedToken"} | token(content, **more)


def decoder(**more):
    """added_tokens_decoder, as transformers has written it since 4.34."""
    numbers = {END: E_TEXT, START: IM_START, STOP: IM_END, PAD: "<pad>"}
    special = {str(number): token(content, special=True) for number, content in numbers.items()}
    return special | {str(number): token(content, special=False) | {"normalized": True} for content, number in WORDS.items()} | more


QWEN = {"add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": decoder(), "additional_special_tokens": [IM_START, IM_END],
        "bos_token": None, "clean_up_tokenization_spaces": False, "eos_token": IM_END, "errors": "replace", "model_max_length": 131072,
        "pad_token": E_TEXT, "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}
LLAMA2 = {"add_bos_token": True, "add_eos_token": False, "bos_token": marked(E_TEXT, normalized=True), "clean_up_tokenization_spaces": False,
          "eos_token": marked(IM_END, normalized=True), "legacy": False, "model_max_length": UNLIMITED, "pad_token": None, "padding_side": "right",
          "sp_model_kwargs": {}, "tokenizer_class": "LlamaTokenizer", "unk_token": marked(E_TEXT, normalized=True)}
V5 = {"backend": "tokenizers", "bos_token": E_TEXT, "clean_up_tokenization_spaces": False, "eos_token": IM_END,
      "extra_special_tokens": [IM_START, "<pad>"], "is_local": False, "local_files_only": False, "model_max_length": UNLIMITED,
      "pad_token": "<pad>", "tokenizer_class": "TokenizersBackend"}

# The prompt where there is no bos, and the ends where there is no eos.
NEITHER = {"ends": {OTHER_END}, "chat": "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello there<|im_end|>\n<|im_start|>assistant\n"}

SHAPES = [
    # ---- transformers
    Shape("transformers 4.28, Llama: tokens as objects that name their class", without(LLAMA2, "legacy", "padding_side")),
    Shape("transformers 4.31, Llama 2: legacy, use_default_system_prompt", LLAMA2 | {"use_default_system_prompt": True}),
    Shape("transformers 4.35: added_tokens_decoder", PLAIN | {"added_tokens_decoder": decoder(), "eos_token": IM_END}),
    Shape("transformers 4.40, Llama 3: model_input_names", PLAIN | {
        "added_tokens_decoder": decoder(), "clean_up_tokenization_spaces": True, "model_input_names": ["input_ids", "attention_mask"],
        "eos_token": IM_END}),
    Shape("transformers 4.48: extra_special_tokens an empty object", QWEN | {"extra_special_tokens": {}}),
    Shape("transformers 4.48: extra_special_tokens with names",
          QWEN | {"extra_special_tokens": {"image_token": IM_START, "boi_token": "<pad>"},
                  "image_token": IM_START, "boi_token": "<pad>"}),
    Shape("transformers 5: backend, extra_special_tokens a list, no added_tokens_decoder", V5),
    Shape("transformers 5: model_specific_special_tokens",
          without(V5, "extra_special_tokens") | {"model_specific_special_tokens": {"image_token": IM_START}}),
    Shape("transformers 5, unsloth: what from_pretrained was called with",
          V5 | {"resume_download": True, "add_prefix_space": None, "max_length": None,
          "pad_to_multiple_of": None, "pad_token_type_id": 0, "padding_side": "left"}),
    Shape("transformers 5 of Qwen: extra_special_tokens an object of tokens by themselves", V5 | {
        "tokenizer_class": "Qwen2Tokenizer", "bos_token": None, "extra_special_tokens": {IM_START: IM_START, IM_END: IM_END}, "errors": "replace"}),
    Shape("transformers 4.57: response_schema", QWEN | {"response_schema": {
        "type": "object", "properties": {"role": {"const": "assistant"}, "content": {"type": "string", "x-regex": "<\\|im_end\\|>([\\s\\S]*)"}}}}),
    Shape("transformers 4.57 of Mistral: fix_mistral_regex", V5 | {"fix_mistral_regex": True}),

    # ---- Qwen, Llama and their tools
    Shape("Qwen2: bos null, errors, split_special_tokens", QWEN),
    Shape("Qwen2: all of one line", shape.one_line(QWEN)),
    Shape("Qwen3: the longest list of additional_special_tokens", QWEN | {"additional_special_tokens": [IM_START, IM_END, "<pad>", "<tool_call>"]}),
    Shape("decapoda: LLaMATokenizer and empty tokens, which are none",
          {"bos_token": "", "eos_token": "", "model_max_length": UNLIMITED, "tokenizer_class": "LLaMATokenizer",
           "unk_token": ""}, NEITHER, others_read_it=False),
    Shape("llama-factory: the way texts were cut, padding_side",
          QWEN | {"max_length": 2048, "padding_side": "right", "stride": 0, "truncation_side": "right",
                  "truncation_strategy": "longest_first"}),
    Shape("llama-factory with transformers 5: extra_special_tokens a list beside added_tokens_decoder",
          QWEN | {"extra_special_tokens": [IM_START, IM_END]}),
    Shape("axolotl: an end of ChatML over Llama's",
          LLAMA2 | {"added_tokens_decoder": decoder(), "eos_token": IM_END, "trust_remote_code": False,
                    "use_fast": True, "chat_template": CHATML}),
    Shape("trl: a pad that is the end", PLAIN | {"pad_token": IM_END, "eos_token": IM_END}),
    Shape("unsloth: padding_side left, unk_token null", QWEN | {"padding_side": "left", "pad_token": "<pad>", "chat_template": CHATML}),
    Shape("mergekit with a tokenizer of its own: name_or_path and files of the maker",
          with_first(PLAIN, name_or_path="/tmp/merge", special_tokens_map_file="/tmp/hub/x/special_tokens_map.json", tokenizer_file=None)),
    Shape("mistral-common in transformers 5", V5 | {"tokenizer_class": "MistralCommonBackend", "mode": "finetuning"}),
    Shape("sentence-transformers: max_length, model_input_names",
          PLAIN | {"max_length": 512, "do_lower_case": False, "model_input_names": ["input_ids"]}),
    Shape("a processor's: processor_class and image tokens", QWEN | {"processor_class": "LlavaProcessor", "image_token": "<pad>"}),
    Shape("code of its own: auto_map", PLAIN | {"auto_map": {"AutoTokenizer": ["tokenization_own.OwnTokenizer", None]}}),
    Shape("code of its own, older: auto_map a list", PLAIN | {"auto_map": ["tokenization_own.OwnTokenizer", None]}),

    # ---- tokens
    Shape("eos_token an object without its class", PLAIN | {"eos_token": token(IM_END)}, {"ends": {OTHER_END, STOP}}, others_read_it=False),
    Shape("eos_token an object that says it is special", PLAIN | {"eos_token": marked(IM_END, special=True)}),
    Shape("eos_token null", PLAIN | {"eos_token": None}),
    Shape("eos_token absent", without(PLAIN, "eos_token")),
    Shape("bos_token null", PLAIN | {"bos_token": None}),
    Shape("bos_token absent", without(PLAIN, "bos_token")),
    Shape("bos_token another one", PLAIN | {"bos_token": IM_START}),
    Shape("no tokens at all", {"tokenizer_class": "PreTrainedTokenizerFast"}),
    Shape("pad_token null", PLAIN | {"pad_token": None}),
    Shape("pad_token an object", PLAIN | {"pad_token": token("<pad>")}, others_read_it=False),
    Shape("a pad that no file numbers: its spelling is text", PLAIN | {"pad_token": "[PAD]", "added_tokens_decoder": decoder()},
          others_read_it=False),
    Shape("a bos that tokenizer.json lacks", PLAIN | {"bos_token": "<s>"}),
    Shape("an end that tokenizer.json lacks: no number ends an answer", PLAIN | {"eos_token": "</s>"}, {"ends": {OTHER_END}}),
    Shape("an end that only added_tokens_decoder has", PLAIN | {
        "eos_token": "<|eot_id|>", "added_tokens_decoder": decoder(**{str(FREE): token("<|eot_id|>", special=True)})}),
    Shape("additional_special_tokens as objects", QWEN | {"additional_special_tokens": [marked(IM_START), marked(IM_END)]}),
    Shape("additional_special_tokens empty", QWEN | {"additional_special_tokens": []}),
    Shape("added_tokens_decoder in the other order", QWEN | {"added_tokens_decoder": shape.backwards(decoder())}),
    Shape("added_tokens_decoder of the special ones only",
          QWEN | {"added_tokens_decoder": {"0": token(E_TEXT, special=True), "258": token(IM_END, special=True)}}),

    # ---- lengths
    Shape("model_max_length as transformers writes no limit: int(1e30)", PLAIN | {"model_max_length": UNLIMITED}),
    Shape("model_max_length as a fraction", shape.with_raw_members(without(PLAIN, "model_max_length"), '"model_max_length": 1e+30')),
    Shape("model_max_length Infinity, as Python's json writes it",
          shape.with_raw_members(without(PLAIN, "model_max_length"), '"model_max_length": Infinity')),
    Shape("model_max_length null", PLAIN | {"model_max_length": None}),
    Shape("model_max_length absent", without(PLAIN, "model_max_length")),
    Shape("model_max_length shorter than the model's", PLAIN | {"model_max_length": 32}),
    Shape("model_max_length longer than the model's", PLAIN | {"model_max_length": 16777216}),

    # ---- how it is written
    Shape("eos_token twice, of which the later counts", shape.edited_twice(PLAIN | {"eos_token": IM_END}, eos_token="<pad>")),
    Shape("bos_token twice, of which the later counts", shape.edited_twice(PLAIN, bos_token="<pad>")),
    Shape("angle brackets escaped", shape.bytes_of(PLAIN).decode().replace("<", "\\u003c").replace(">", "\\u003e")),
    Shape("every letter escaped", shape.all_escaped(PLAIN)),
    Shape("an editor's CR LF", shape.crlf(PLAIN)),
    Shape("an editor's byte order mark", shape.byte_order_mark(PLAIN), others_read_it=False),
    Shape("no line break at the end", shape.no_line_break(PLAIN)),
    Shape("tabs", shape.tabs(PLAIN)),
    Shape("blank lines around, four blanks a level", shape.blank_lines(PLAIN)),
    Shape("no such file", None),
]
