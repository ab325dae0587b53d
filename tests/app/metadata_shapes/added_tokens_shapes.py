"""added_tokens.json, an older file: a name and a number of each. tokenizer.json has the tokens as well where it is of the same time;
transformers takes this file into account where tokenizer_config.json has no added_tokens_decoder. `other_readers.ids` of texts that
spell every token of the file say what each must mean."""

import json

from metadata_shapes import shape
from metadata_shapes.shape import Shape
from metadata_shapes.tiny_checkpoints import FREE, SPECIAL, TOKENIZER, TOKENIZER_CONFIG, WORDS, added_token
from metadata_shapes.tokenizer_config_shapes import decoder

KNOWN = {"<|im_end|>": SPECIAL["<|im_end|>"], "<|im_start|>": SPECIAL["<|im_start|>"]}
ALL = SPECIAL | WORDS
DECODER = {"tokenizer_config.json": TOKENIZER_CONFIG | {"added_tokens_decoder": decoder()}}
QWEN25 = ["<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
          "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
QWEN3 = ["<think>", "</think>", "<tool_response>", "</tool_response>"]


def new(*names):
    """As add_tokens() numbers them."""
    return {name: FREE + at for at, name in enumerate(names)}


def added(name, file, written=lambda file: file):
    """Beside a tokenizer.json that has them, too, as save_pretrained writes both."""
    by_number = sorted((number, token) for token, number in file.items() if number >= FREE)
    lacking = [added_token(token, number, special=False) for number, token in by_number]
    return Shape(name, written(file), beside={"tokenizer.json": TOKENIZER | {"added_tokens": TOKENIZER["added_tokens"] + lacking}})


def both(name, file, **more):
    """Beside a tokenizer_config.json with added_tokens_decoder, which is read instead."""
    return Shape(name + ", beside added_tokens_decoder", file, beside=DECODER, **more)


SHAPES = [
    # ---- tokens that tokenizer.json has, too
    Shape("ChatML's two", KNOWN),
    Shape("ChatML's two, by number", dict(sorted(KNOWN.items(), key=lambda item: item[1]))),
    Shape("one", {"<pad>": SPECIAL["<pad>"]}),
    Shape("Mistral-7B-OpenOrca: those of the vocabulary among them", {"<|endoftext|>": 0} | KNOWN),
    Shape("all of them, by name", dict(sorted(ALL.items()))),
    Shape("all of them, by number", ALL),
    Shape("all of them, the last first", shape.backwards(ALL)),
    Shape("those that are not special", WORDS),
    Shape("nothing", {}),
    Shape("no such file", None),
    both("ChatML's two", dict(shape.backwards(KNOWN))),
    both("Qwen2: three",
         {"<|endoftext|>": 0, "<|im_end|>": KNOWN["<|im_end|>"], "<|im_start|>": KNOWN["<|im_start|>"]} | {"<pad>": SPECIAL["<pad>"]}),
    both("all of them", dict(sorted(ALL.items(), key=lambda item: item[0].lower(), reverse=True))),

    # ---- tokens that were added behind the vocabulary, to both files
    added("alpaca's pad", new("[PAD]")),
    added("vicuna 0's pad, in one line", new("<unk_pad>"), shape.one_line),
    added("a user and an assistant", new("<|user|>", "<|assistant|>")),
    added("a new one beside known ones", KNOWN | new("<|eot_id|>")),
    added("OpenAssistant's", new("<|prefix_begin|>", "<|prefix_end|>", "<|prompter|>", "<|system|>", "<|assistant|>")),
    added("Qwen2.5's list", dict(sorted((KNOWN | new(*QWEN25)).items()))),
    added("Qwen3's list", dict(sorted((KNOWN | new(*QWEN25, *QWEN3)).items()))),
    added("Phi-2's runs of blanks", new("\t\t\t", "\t\t", "      ", "    ")),
    added("letters of other scripts", new("<\uff5cUser\uff5c>", "\u7528\u6237\uff1a", "<\u00e9t\u00e9>")),
    added("letters not escaped", new("<\uff5cAssistant\uff5c>"), lambda file: json.dumps(file, ensure_ascii=False)),
    added("words without brackets", new("Human:", "Assistant:")),
    added("numbers in the other order", new("<a>", "<b>", "<c>"), shape.backwards),
    added("internlm's", new("<|action_end|>", "<|action_start|>", "<|interpreter|>", "<|plugin|>")),
    added("Hermes's tool tokens", new("<tools>", "</tools>", "<scratch_pad>", "</scratch_pad>")),
    added("Llama 3's first reserved ones", new(*(f"<|reserved_special_token_{number}|>" for number in range(12)))),
    added("code models' middle", new("<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>")),
    added("quotes and backslashes", new('<"said">', "<\\n>")),

    # ---- tokens that tokenizer.json lacks
    Shape("a pad that only this file has", new("<pad_of_here>")),
    Shape("ChatML over a base that lacks it: two that only this file has", new("<|sot|>", "<|eot|>")),
    both("a pad that only this file has", new("[PAD]")),
    both("Qwen2.5's list, which only this file has", dict(sorted((KNOWN | new(*QWEN25)).items(), reverse=True))),

    # ---- how it is written
    Shape("a name twice, of which the later counts", shape.edited_twice(KNOWN, **{"<|im_end|>": 5})),
    Shape("angle brackets escaped", shape.bytes_of(KNOWN).decode().replace("<", "\\u003c").replace(">", "\\u003e")),
    Shape("every letter escaped", shape.all_escaped(KNOWN)),
    Shape("an editor's CR LF", shape.crlf(KNOWN)),
    Shape("an editor's byte order mark", shape.byte_order_mark(KNOWN), others_read_it=False),
    Shape("no line break at the end", shape.no_line_break(KNOWN)),
    Shape("one line without blanks", shape.one_line(KNOWN)),
    Shape("tabs", shape.tabs(KNOWN)),
    Shape("blank lines around, four blanks a level", shape.blank_lines(KNOWN)),
]
