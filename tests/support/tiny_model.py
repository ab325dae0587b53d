"""A model directory with a random Llama, small enough for the GPU's simulator, and a tokenizer whose tokens are bytes."""
import json

VOCAB = 260
SHAPE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, initializer_range=0.125, bos_token_id=0, eos_token_id=0,
             tie_word_embeddings=False)


def byte_tokenizer(size=VOCAB):
    """Bytes in the letters that byte-level vocabularies write them with (GPT-2's bytes_to_unicode), and names for the rest."""
    vocab, letter = {"<|endoftext|>": 0}, 256
    for byte in range(256):
        stands = 33 <= byte <= 126 or (byte >= 161 and byte != 173)
        vocab[chr(byte if stands else letter)] = byte + 1
        letter += not stands
    vocab |= {f"t{number}": number for number in range(257, size)}
    return {"added_tokens": [{"id": 0, "content": "<|endoftext|>", "special": True}], "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}, "post_processor": None,
            "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": vocab, "merges": []}}


def save(folder, dtype="float32"):
    """The model as transformers has it, in f32 whatever it is stored as."""
    import torch
    import transformers

    torch.manual_seed(7)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)).to(getattr(torch, dtype)).eval()
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer()))
    return model.float()


def greedy(model, prompt, count):
    import torch

    ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt):]
