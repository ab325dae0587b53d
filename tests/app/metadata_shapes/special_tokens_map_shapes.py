"""special_tokens_map.json, which transformers reads where tokenizer_config.json has no added_tokens_decoder. Here tokenizer_config.json names
no token, if a shape says nothing else; config.json ends with OTHER_END, and the chat template begins with bos_token."""

from metadata_shapes import shape
from metadata_shapes.shape import Shape, without
from metadata_shapes.tiny_checkpoints import OTHER_END, TOKENIZER_CONFIG
from metadata_shapes.tokenizer_config_shapes import E_TEXT, IM_END, IM_START, NEITHER, decoder, marked, token

NAMELESS = without(TOKENIZER_CONFIG, "bos_token", "eos_token")
PLAIN = {"bos_token": E_TEXT, "eos_token": IM_END}
LLAMA = {name: token(content, normalized=True) for name, content in
         {"bos_token": E_TEXT, "eos_token": IM_END, "unk_token": E_TEXT}.items()}
QWEN = {"additional_special_tokens": [IM_START, IM_END], "eos_token": token(IM_END), "pad_token": token(E_TEXT)}


def beside(**more):
    return {"tokenizer_config.json": NAMELESS | more}


SHAPES = [
    Shape("plain texts", PLAIN),
    Shape("transformers 4.28, Llama: objects that are normalized", LLAMA),
    Shape("transformers 4.28, Llama: a pad beside", LLAMA | {"pad_token": E_TEXT}),
    Shape("transformers 4.31: pad_token the unk", LLAMA | {"pad_token": "<pad>", "unk_token": token("<pad>")}),
    Shape("transformers 4.34: objects that are not normalized", {name: token(told["content"]) for name, told in LLAMA.items()}),
    Shape("Qwen2: additional_special_tokens", QWEN),
    Shape("Qwen2.5: a longer list", QWEN | {"additional_special_tokens": [IM_START, IM_END, "<pad>", "<tool_call>", "</tool_call>"]}),
    Shape("Qwen3: a pad as text", QWEN | {"pad_token": "<pad>"}),
    Shape("Llama 3: no pad", {"bos_token": token(E_TEXT), "eos_token": token(IM_END)}),
    Shape("Llama 3.2 of unsloth: a pad of its own", {"bos_token": token(E_TEXT), "eos_token": token(IM_END), "pad_token": token("<pad>")}),
    Shape("Mistral: bos, eos, unk as texts", {"bos_token": E_TEXT, "eos_token": IM_END, "unk_token": E_TEXT}),
    Shape("Mistral: objects, unk first", {"unk_token": token(E_TEXT), "bos_token": token(E_TEXT), "eos_token": token(IM_END)}),
    Shape("axolotl: eos of ChatML as an object, the rest as texts",
          {"bos_token": E_TEXT, "eos_token": token(IM_END), "pad_token": IM_END, "unk_token": E_TEXT}),
    Shape("trl's setup_chat_format",
          {"additional_special_tokens": [IM_START, IM_END], "bos_token": IM_START, "eos_token": IM_END, "pad_token": IM_END}),
    Shape("llama-factory: additional_special_tokens as objects",
          PLAIN | {"additional_special_tokens": [token(IM_START), token(IM_END)]}, others_read_it=False),
    Shape("mergekit: the first parent's, the last first", shape.backwards(LLAMA)),
    Shape("sentence-transformers: cls, mask and sep", PLAIN | {"cls_token": E_TEXT, "mask_token": "<pad>", "sep_token": IM_START}),
    Shape("cls, mask and sep as objects",
          PLAIN | {"cls_token": token(E_TEXT), "mask_token": token("<pad>", lstrip=True), "sep_token": token(IM_START)}),
    Shape("a processor's image_token", PLAIN | {"image_token": "<pad>", "boi_token": "<tool_call>"}),
    Shape("transformers 4.48: extra_special_tokens an object's members, flat", PLAIN | {"audio_token": "<pad>", "vision_bos_token": IM_START}),
    Shape("transformers 5: extra_special_tokens a list", PLAIN | {"extra_special_tokens": ["<pad>", IM_START]}),
    Shape("transformers 5: extra_special_tokens an object", PLAIN | {"extra_special_tokens": {"image_token": "<pad>"}}),
    Shape("an object that says it is special", PLAIN | {"eos_token": token(IM_END, special=True)}),
    Shape("an object that names its class", PLAIN | {"eos_token": marked(IM_END)}, others_read_it=False),
    Shape("eos_token alone", {"eos_token": IM_END}),
    Shape("eos_token alone, as an object with blanks around taken in", {"eos_token": token(IM_END, lstrip=True, rstrip=True)}),
    Shape("bos_token alone", {"bos_token": E_TEXT}),
    Shape("pad_token alone", {"pad_token": "<pad>"}),
    Shape("pad_token alone, one that no file numbers: its spelling is text", {"pad_token": "[PAD]"}, NEITHER, others_read_it=False),
    Shape("eos_token null", PLAIN | {"eos_token": None}),
    Shape("bos_token null", PLAIN | {"bos_token": None}),
    Shape("additional_special_tokens empty", PLAIN | {"additional_special_tokens": []}),
    Shape("empty tokens, of decapoda's times: there are none", {"bos_token": "", "eos_token": "", "unk_token": ""}, NEITHER, others_read_it=False),
    Shape("nothing", {}),
    Shape("a bos that tokenizer.json lacks", PLAIN | {"bos_token": "<s>"}),
    Shape("an end that tokenizer.json lacks: no number ends an answer", PLAIN | {"eos_token": "</s>"}, {"ends": {OTHER_END}}),
    Shape("a token with blanks in its name", PLAIN | {"pad_token": "< pad of mine >"}),

    # ---- beside a tokenizer_config.json that names tokens
    Shape("the same tokens in both", PLAIN | {"pad_token": "<pad>"}, beside=beside(**PLAIN)),
    Shape("another end, beside added_tokens_decoder: tokenizer_config.json counts", {"eos_token": "<pad>"},
          beside=beside(**PLAIN, added_tokens_decoder=decoder())),
    Shape("another end, without added_tokens_decoder: this file counts", {"eos_token": token("<pad>")}, beside=beside(**PLAIN)),
    Shape("another bos, without added_tokens_decoder: this file counts", {"bos_token": token(IM_START), "unk_token": E_TEXT}, beside=beside(**PLAIN)),
    Shape("null in tokenizer_config.json, a token here", {"bos_token": token(E_TEXT), "eos_token": token(IM_END), "sep_token": token("<pad>")},
          beside=beside(bos_token=None, eos_token=None)),

    # ---- how it is written
    Shape("eos_token twice, of which the later counts", shape.edited_twice(PLAIN, eos_token="<pad>")),
    Shape("an unknown member of Python's json", shape.with_raw_members(PLAIN, '"weight_token_limit": Infinity')),
    Shape("a number beyond 64 bits", shape.with_raw_members(PLAIN, '"model_max_length": 1000000000000000019884624838656')),
    Shape("angle brackets escaped", shape.bytes_of(LLAMA).decode().replace("<", "\\u003c").replace(">", "\\u003e")),
    Shape("every letter escaped", shape.all_escaped(PLAIN)),
    Shape("an editor's CR LF", shape.crlf(PLAIN)),
    Shape("an editor's byte order mark", shape.byte_order_mark(PLAIN), others_read_it=False),
    Shape("no line break at the end", shape.no_line_break(PLAIN)),
    Shape("one line without blanks", shape.one_line(PLAIN)),
    Shape("tabs", shape.tabs(LLAMA)),
    Shape("blank lines around, four blanks a level", shape.blank_lines(PLAIN)),
    Shape("keys in the other order", shape.backwards(QWEN)),
]
