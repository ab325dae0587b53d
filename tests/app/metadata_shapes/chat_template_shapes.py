"""chat_template.jinja, chat_template.json, additional_chat_templates/ and the template of tokenizer_config.json. A row's files stand in
`beside`; its text is None, for no one file is the table's. `other_readers.chat` and `chat_with_tools` say what each must mean.
chat_template.json is a processor's, which a tokenizer of transformers does not read: what it must mean is said by `as_if`."""

import json

from metadata_shapes import shape
from metadata_shapes.shape import Shape
from metadata_shapes.tiny_checkpoints import CHATML, TOKENIZER_CONFIG
from metadata_shapes.tokenizer_config_shapes import decoder, token

# Ours, of the constructs that templates of these families are made of.
LLAMA2 = ("{% set rules = messages[0]['content'] if messages[0]['role'] == 'system' else '' %}{% set turns = messages[1:] if rules else messages %}"
          "{% for turn in turns %}{% if (turn['role'] == 'user') == (loop.index0 % 2 == 1) %}{{ raise_exception('turns must alternate') }}{% endif %}"
          "{% if turn['role'] == 'user' %}{{ bos_token + '[INST] ' }}"
          "{% if loop.first and rules %}{{ '<<SYS>>\\n' + rules + '\\n<</SYS>>\\n\\n' }}{% endif %}"
          "{{ turn['content'].strip() + ' [/INST]' }}{% else %}{{ ' ' + turn['content'].strip() + ' ' + eos_token }}{% endif %}{% endfor %}")
LLAMA3 = ("{% for turn in messages %}{% set text = '[' + turn['role'] + ']\n\n' + turn['content'] | trim + '\n' %}"
          "{% if loop.index0 == 0 %}{% set text = bos_token + text %}{% endif %}{{ text }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '[assistant]\n\n' }}{% endif %}")
MISTRAL = ("{%- set first = messages[0] %}\n{%- if first.role == \"system\" %}\n    {%- set rules = first.content + \"\\n\\n\" %}\n"
           "{%- endif %}\n{{- bos_token }}\n"
           "{%- for turn in messages if turn.role != \"system\" %}\n    {{- \"[INST]\" }}\n"
           "    {%- if loop.last and rules is defined %}{{- rules }}{%- endif %}\n"
           "    {{- turn.content + \"[/INST]\" }}\n{%- endfor %}\n")
QWEN = ("{%- if tools %}\n    {{- '<|im_start|>system\\n' + messages[0].content }}\n    {%- for tool in tools %}\n        {{- \"\\n<tool>\" }}\n"
        "        {{- tool | tojson }}\n    {%- endfor %}\n    {{- '<|im_end|>\\n' }}\n{%- endif %}\n{%- for turn in messages %}\n"
        "    {%- if not (tools and loop.first) %}\n"
        "        {{- '<|im_start|>' + turn.role + '\\n' + turn.content + '<|im_end|>\\n' }}\n    {%- endif %}\n"
        "{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n")
TOOL_USE = "{{ bos_token }}TOOLS {{ tools | tojson(indent=2) }} {% for message in messages %}{{ message.content }}{{ eos_token }}{% endfor %}"
RAG = "RAG {{ documents }} {% for message in messages %}{{ message.content }}{% endfor %}"
EMPTY = {"chat": "<|endoftext|>", "chat_with_tools": "<|endoftext|>"}  # a prompt has one token at least
LINES = "{% for message in messages %}\n  {% if message.role == 'user' %}\n  U: {{ message.content }}\n  {% endif %}\n{% endfor %}\nA:"


def jinja(name, text, **more):
    return Shape(name, None, beside={"chat_template.jinja": text} | more)


def in_config(name, template, **more):
    return Shape(name, None, beside={"chat_template.jinja": None, "tokenizer_config.json": TOKENIZER_CONFIG | {"chat_template": template} | more})


def in_json(name, text, as_if):
    return Shape(name, None, {"as_if": as_if}, {"chat_template.jinja": None, "chat_template.json": text})


def named(**templates):
    return [{"name": name, "template": template} for name, template in templates.items()]


SHAPES = [
    # ---- tokenizer_config.json
    in_config("transformers 4.34: ChatML as a text", CHATML),
    in_config("Llama 2's, with raise_exception", LLAMA2),
    in_config("Llama 3's, with real line breaks in its texts", LLAMA3),
    in_config("Mistral's, with blanks taken away", MISTRAL),
    in_config("Qwen2.5's, with tools", QWEN),
    in_config("transformers 4.40: a list of one", named(default=CHATML)),
    in_config("Hermes 2 Pro: default and tool_use", named(default=CHATML, tool_use=TOOL_USE)),
    in_config("Command R's way: default, tool_use and rag", named(default=CHATML, tool_use=TOOL_USE, rag=RAG)),
    in_config("the default not the first", named(rag=RAG, tool_use=TOOL_USE, default=CHATML)),
    in_config("a list with more beside name and template", [named(default=CHATML)[0] | {"description": "plain"}]),
    in_config("tool_use alone", named(tool_use=TOOL_USE)),
    in_config("names that nobody asks for", named(rag=RAG, summary=CHATML)),
    in_config("an empty list", []),
    in_config("null", None),
    Shape("an empty text: the prompt is the token that a model begins with", None, EMPTY,
          {"chat_template.jinja": None, "tokenizer_config.json": TOKENIZER_CONFIG | {"chat_template": ""}}),
    Shape("no template anywhere", None, beside={"chat_template.jinja": None}),
    in_config("a text beside added_tokens_decoder, tokens as objects of older files", LLAMA2, added_tokens_decoder=decoder()),
    in_config("letters of other scripts and an emoji", "{{ '\u7528\u6237\uff1a \U0001f999 ' }}" + CHATML),
    in_config("CR LF inside the text", CHATML.replace("\n", "\r\n")),
    in_config("unsloth's: a long text with a system message of its own",
              "{% set default_system = 'You are helpful.' %}" + CHATML.replace("{{ bos_token }}", "{{ bos_token }}{{ default_system }}")),

    # ---- chat_template.jinja
    jinja("transformers 4.50: ChatML", CHATML),
    jinja("Llama 2's", LLAMA2),
    jinja("Llama 3's", LLAMA3),
    jinja("Mistral's", MISTRAL),
    jinja("Qwen2.5's", QWEN),
    jinja("an editor's line break at the end", CHATML + "\n"),
    Shape("an empty file, over the template of tokenizer_config.json", None, EMPTY,
          {"chat_template.jinja": "", "tokenizer_config.json": TOKENIZER_CONFIG | {"chat_template": CHATML}}),
    jinja("two line breaks at the end", CHATML + "\n\n"),
    jinja("an editor's CR LF", LINES.replace("\n", "\r\n").encode()),
    jinja("an editor's byte order mark", b"\xef\xbb\xbf" + CHATML.encode()),
    jinja("a line break in front", "\n" + CHATML),
    jinja("tags on lines of their own", LINES),
    jinja("comments in front", "{#- Copyright of somebody. -#}\n{# version 2 #}\n" + CHATML),
    jinja("trl: marks of what the assistant says",
          CHATML.replace("{{ message.content }}", "{% generation %}{{ message.content }}{% endgeneration %}")),
    jinja("Llama 3.1: strftime_now",
          "{%- if strftime_now is defined %}{%- set date = strftime_now('%Y') %}{%- else %}{%- set date = '2024' %}{%- endif %}{{ date }} " + CHATML),
    jinja("a macro and a namespace",
          "{%- macro say(m) %}{{ m.role | upper }}: {{ m.content }}\n{% endmacro %}{%- set ns = namespace(last='') %}{% for m in messages %}"
          "{{ say(m) }}{% set ns.last = m.role %}{% endfor %}[{{ ns.last }}]"),
    jinja("break and continue",
          "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.content }}"
          "{% if loop.index > 1 %}{% break %}{% endif %}{% endfor %}"),
    jinja("members by items() and tojson",
          "{% for m in messages %}{% for key, value in m.items() %}{{ key }}={{ value | tojson }};{% endfor %}{% endfor %}"),
    jinja("special tokens by name",
          "{{ bos_token }}{{ eos_token }}{{ pad_token if pad_token is defined else 'no pad' }}{{ messages[-1]['content'] | trim }}"),
    jinja("special tokens of objects", "{{ bos_token }}|{{ eos_token }}|{{ messages | length }}", **{"tokenizer_config.json": TOKENIZER_CONFIG | {
        "bos_token": {"__type": "AddedToken"} | token("<|im_start|>"), "eos_token": {"__type": "AddedToken"} | token("<|im_end|>")}}),
    jinja("beside another one in tokenizer_config.json: the file counts",
          CHATML, **{"tokenizer_config.json": TOKENIZER_CONFIG | {"chat_template": LLAMA2}}),
    jinja("beside a list in tokenizer_config.json: the file counts", QWEN,
          **{"tokenizer_config.json": TOKENIZER_CONFIG | {"chat_template": named(default=CHATML, tool_use=TOOL_USE)}}),
    jinja("beside chat_template.json", CHATML, **{"chat_template.json": {"chat_template": LLAMA3}}),
    jinja("beside a folder of named ones: tool_use", CHATML, **{"additional_chat_templates/tool_use.jinja": TOOL_USE}),
    jinja("beside a folder of named ones: tool_use and rag",
          CHATML, **{"additional_chat_templates/tool_use.jinja": TOOL_USE, "additional_chat_templates/rag.jinja": RAG}),
    jinja("beside a folder of one that nobody asks for", QWEN, **{"additional_chat_templates/rag.jinja": RAG}),

    # ---- chat_template.json
    in_json("a processor's", {"chat_template": CHATML}, CHATML),
    in_json("a processor's, escaped and of one line", json.dumps({"chat_template": QWEN}), QWEN),
    in_json("a processor's, a list of names", {"chat_template": named(default=CHATML, tool_use=TOOL_USE)}, named(default=CHATML, tool_use=TOOL_USE)),
    in_json("a processor's, with an editor's CR LF and no line break at the end", shape.crlf({"chat_template": LLAMA3}).strip(), LLAMA3),
    in_json("a processor's, with an editor's byte order mark", shape.byte_order_mark({"chat_template": CHATML}), CHATML),
    in_json("a processor's, with a number that Python writes beside", shape.with_raw_members({"chat_template": CHATML}, '"limit": Infinity'), CHATML),
    Shape("chat_template.json beside another one in tokenizer_config.json", None, {"as_if": QWEN}, {
        "chat_template.jinja": None, "chat_template.json": {"chat_template": QWEN},
        "tokenizer_config.json": TOKENIZER_CONFIG | {"chat_template": CHATML}}),
]
