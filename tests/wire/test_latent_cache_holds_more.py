"""A cache of latents served beside one of K and V for as many heads, in equal memory: what the one holds, the other refuses."""
import json
import pathlib
import sys

import pytest

transformers = pytest.importorskip("transformers", reason="the checkpoints are written by transformers")
torch = pytest.importorskip("torch", reason="the checkpoints are drawn by torch")

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "support"))
from tiny_model import byte_tokenizer  # noqa: E402

COMMON = dict(vocab_size=320, hidden_size=128, intermediate_size=32, num_hidden_layers=1, max_position_embeddings=8192, bos_token_id=1,
              eos_token_id=2, pad_token_id=0, num_attention_heads=128, num_key_value_heads=128)
# The heads of DeepSeek-V3, in one dense layer.
LATENTS = dict(q_lora_rank=16, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, first_k_dense_replace=1,
               n_routed_experts=2, num_experts_per_tok=1, n_group=1, topk_group=1, moe_intermediate_size=8)
# As many numbers as K [192] and V [128].
HEADS = dict(head_dim=160)
TOKENS_OF_HEADS = 64
MEMORY = 2 * 2 * 160 * 128 * TOKENS_OF_HEADS


def serve(start_server, folder, family, **changes):
    torch.manual_seed(1)
    config = transformers.CONFIG_MAPPING[family](**COMMON, **changes)
    transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer(320)))
    return start_server("--model", folder, "--kv-cache-dtype", "bf16", "--kv-cache-memory", MEMORY, "--max-num-seqs", 1,
                        "--speculative-config", '{"method": "none"}')


def prompt(tokens):
    return [3 + i * 7 % 300 for i in range(tokens)]


def test_seventy_times_the_tokens_are_held_and_attended_to(start_server, tmp_path):
    heads = serve(start_server, tmp_path / "heads", "llama", **HEADS)
    fits = heads.complete(prompt(TOKENS_OF_HEADS - 4), max_tokens=4, ignore_eos=True)
    assert fits["usage"]["total_tokens"] == TOKENS_OF_HEADS
    assert heads.post({"prompt": prompt(TOKENS_OF_HEADS + 1), "max_tokens": 1}).status == 400
    heads.stop()

    latents = serve(start_server, tmp_path / "latents", "deepseek_v3", **LATENTS)
    whole = latents.complete(prompt(70 * TOKENS_OF_HEADS - 4), max_tokens=4, ignore_eos=True, logprobs=1)["choices"][0]
    assert len(whole["logprobs"]["tokens"]) == 4
    # A prompt that differs in its first token alone has other scores: the first row is there and read.
    other = latents.complete([9, *prompt(70 * TOKENS_OF_HEADS - 4)[1:]], max_tokens=4, ignore_eos=True, logprobs=1)["choices"][0]
    assert whole["logprobs"]["token_logprobs"] != other["logprobs"]["token_logprobs"]
