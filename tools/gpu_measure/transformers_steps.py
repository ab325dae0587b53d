"""Steps of the same shapes in Hugging Face transformers, to compare with stage decode: eager with a growing cache, and
a CUDA graph with a static one."""
import argparse
import json
import time

import torch
import transformers

SHAPES = {
    "tiny": dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
                 head_dim=16, vocab_size=64, tie_word_embeddings=True),
    "1b": dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
               head_dim=64, vocab_size=128256, tie_word_embeddings=True),
    "8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
               head_dim=128, vocab_size=128256, tie_word_embeddings=False),
}


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def model_of(name, device):
    config = transformers.LlamaConfig(max_position_embeddings=32768, rope_theta=500000.0, **SHAPES[name])
    config._attn_implementation = "sdpa"
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16)
        model = transformers.LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    return model.eval()


def median(values):
    return sorted(values)[len(values) // 2]


def eager(model, device, sequences, context, steps):
    ids = torch.randint(0, model.config.vocab_size, (sequences, context), device=device)
    out = model(ids, use_cache=True, logits_to_keep=1)
    seconds, token = [], ids[:, :1]
    for _ in range(steps):
        wait(device)
        begin = time.perf_counter()
        out = model(token, past_key_values=out.past_key_values, use_cache=True)
        token = out.logits[:, -1].argmax(-1, keepdim=True)
        token.cpu()
        seconds.append(time.perf_counter() - begin)
    return median(seconds)


def graphed(model, device, sequences, context, steps):
    """Median seconds of a step with a cache of fixed size, captured once and replayed."""
    # Every step appends to the cache.
    cache = transformers.StaticCache(config=model.config, max_cache_len=context + steps + 4)
    ids = torch.randint(0, model.config.vocab_size, (sequences, context), device=device)
    model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
    token = ids[:, :1].clone()
    position = torch.tensor([[context]], device=device).expand(sequences, 1).contiguous()
    def step():
        return model(token, past_key_values=cache, position_ids=position, use_cache=True).logits[:, -1].argmax(-1)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chosen = step()
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        graph.replay()
        chosen.cpu()
        seconds.append(time.perf_counter() - begin)
    return median(seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    rows = []
    with torch.inference_mode():
        for name in ["tiny"] if args.tiny else ["1b", "8b"]:
            model = model_of(name, args.device)
            for what, way in (("eager", eager), ("graph", graphed)):  # eager first: graph may make the device fail
                for sequences, context in [(1, 20)] if args.tiny else [(1, 512), (32, 512), (1, 4096)]:
                    row = {"what": what, "model": name, "sequences": sequences, "context": context}
                    if what == "graph" and args.device != "cuda":
                        continue
                    try:
                        seconds = way(model, args.device, sequences, context, 3 if args.tiny else 20)
                        row.update(step_s=seconds, tokens_per_s=sequences / seconds)
                    except Exception as error:  # a way that this version does not support
                        row.update(what=f"{what} failed", error=f"{type(error).__name__}: {error}"[:300])
                    rows.append(row)
                    print(json.dumps({"row": row}), flush=True)
            del model
            if args.device == "cuda":
                torch.cuda.empty_cache()
    print(json.dumps({"transformers": transformers.__version__, "torch": torch.__version__, "rows": rows}))


if __name__ == "__main__":
    main()
