"""What transformers and tokenizers make of a model's directory, in the words of program_reading."""

import functools

from metadata_shapes.program_reading import CONVERSATION, NUM_ANSWER, PROMPT, TOOL
from metadata_shapes.tiny_checkpoints import TEXTS, V


@functools.cache
def transformers():
    import torch
    import transformers as package

    torch.set_num_threads(1)
    package.logging.set_verbosity_error()
    package.logging.disable_progress_bar()
    return package


# ---- config.json and weights


def config_of(folder):
    return transformers().AutoConfig.from_pretrained(folder)


def windows_of(config):
    """The width of each layer's window, 0 where it has none."""
    num_layers, window = config.num_hidden_layers, getattr(config, "sliding_window", None)
    types = getattr(config, "layer_types", None) or ["sliding_attention" if window else "full_attention"] * num_layers
    return [window if kind == "sliding_attention" else 0 for kind in types]


def arithmetic(folder):
    config = config_of(folder)
    rope = dict(config.rope_parameters)
    return {
        "model": config.model_type, "E": config.hidden_size, "F": config.intermediate_size, "L": config.num_hidden_layers,
        "H": config.num_attention_heads, "G": config.num_key_value_heads,
        "D": getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads, "V": config.vocab_size,
        "eps": config.rms_norm_eps, "windows": windows_of(config), "tied": config.tie_word_embeddings,
        "rope": rope["rope_type"], "theta": rope["rope_theta"],
        "factor": rope.get("factor", 1) if rope["rope_type"] not in ("default", "dynamic") else 1,
    }


def ends_of_config(folder):
    return as_set(config_of(folder).eos_token_id)


def answer(folder, count=NUM_ANSWER):
    """Greedy, in f32, of the weights as they are stored."""
    import torch

    model = transformers().AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = list(PROMPT)
    with torch.no_grad():
        for _ in range(count):
            ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    return ids[len(PROMPT):]


# ---- generation_config.json


def generation_of(folder):
    return transformers().GenerationConfig.from_pretrained(folder)


def defaults(folder):
    told = generation_of(folder)
    names = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_new_tokens"]
    found = {name: getattr(told, name) for name in names if getattr(told, name, None) is not None}
    return found | ({"temperature": 0} if told.do_sample is False else {})


def ends_of_generation(folder):
    return as_set(generation_of(folder).eos_token_id)


# ---- the tokenizer's files


def tokenizer_of(folder):
    """The class that takes tokenizer.json as it is, whatever tokenizer_class says."""
    return transformers().PreTrainedTokenizerFast.from_pretrained(folder)


def end_of_tokenizer(folder):
    number = tokenizer_of(folder).eos_token_id
    return {number} if number is not None and number < V else set()


def ids(folder, texts=TEXTS):
    tokenizer = tokenizer_of(folder)
    return [[tokenizer(text, add_special_tokens=flag)["input_ids"] for flag in (True, False)] for text in texts]


def chat(folder, **more):
    """The prompt that the conversation becomes; None where there is no template for it."""
    tokenizer = tokenizer_of(folder)
    try:
        return tokenizer.apply_chat_template(CONVERSATION, tokenize=False, add_generation_prompt=True, **more)
    except ValueError:
        return None


def chat_with_tools(folder):
    return chat(folder, tools=[TOOL])


def bare_tokenizer(folder):
    """tokenizer.json alone, by the package that defines it."""
    import tokenizers

    found = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    found.no_padding()
    found.no_truncation()
    return found


def bare_ids(folder, texts=TEXTS):
    found = bare_tokenizer(folder)
    return [[found.encode(text, add_special_tokens=flag).ids for flag in (True, False)] for text in texts]


def bare_spelled(folder, texts=TEXTS):
    found = bare_tokenizer(folder)
    return [found.decode(found.encode(text).ids, skip_special_tokens=False) for text in texts]


def as_set(told):
    return set() if told is None else {told} if isinstance(told, int) else set(told)
