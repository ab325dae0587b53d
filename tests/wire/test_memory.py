"""Requests that are made to cost memory: each is answered, and what the process holds stays bounded."""

import concurrent.futures
import re

import pytest

from bystander import Bystander

MiB = 1 << 20
AT_ONCE = 4
# Four bodies of 8 MiB with their parsed forms, what becomes of them on the way, and answers of some ten MiB, twice. Without limits
# one of these requests alone would take gigabytes: a million sequences, say.
MOST_AT_ONCE = 768 * MiB
MOST_KEPT = 512 * MiB  # more than at the start, once all is answered: the allocator's, and the caches'
MOST_LEAKED = 48 * MiB  # more after a third round than after the second one
MILLION = 1_000_000


def held(server, name):
    text = open(f"/proc/{server.process.pid}/status").read()
    return int(re.search(rf"{name}:\s+(\d+) kB", text).group(1)) * 1024


def many(item, count):
    return "[" + ",".join([item] * count) + "]"


TALK = '"messages": [{"role": "user", "content": "Once"}]'
LONG = '"max_tokens": 50, "ignore_eos": true'
BODIES = {  # what → (path, JSON text, statuses)
    "all choices with all their likeliest": ("/v1/completions", f'{{"prompt": "Once", "n": 128, "logprobs": 20, {LONG}}}', {200}),
    "a chat of the same": ("/v1/chat/completions", f'{{{TALK}, "n": 128, "logprobs": true, "top_logprobs": 20, {LONG}}}', {200}),
    "a million choices": ("/v1/completions", '{"prompt": "Once", "n": 1000000, "best_of": 1000000}', {400}),
    "a million prompts": ("/v1/completions", f'{{"prompt": {many(chr(34) + "a" + chr(34), MILLION)}}}', {400}),
    "a million lists of ids": ("/v1/completions", f'{{"prompt": {many("[1]", MILLION)}}}', {400}),
    "a million ids": ("/v1/completions", f'{{"prompt": {many("1", MILLION)}}}', {400}),
    "prompts as long as they may be": ("/v1/completions", f'{{"prompt": {many(many("7", 500), 32)}, "max_tokens": 1, "echo": true, "logprobs": 20}}', {200}),
    "seven MiB of text": ("/v1/completions", f'{{"prompt": "{"word " * 1_400_000}"}}', {400}),
    "one word of seven MiB": ("/v1/completions", f'{{"prompt": "{"x" * 7_000_000}"}}', {400}),
    "a million biases": ("/v1/completions", '{"prompt": "a", "logit_bias": {' + ",".join(f'"{i}":1' for i in range(500_000)) + "}}", {400}),
    "a million stops": ("/v1/completions", f'{{"prompt": "a", "stop": {many(chr(34) + "x" + chr(34), MILLION)}}}', {400}),
    "a million stop ids": ("/v1/completions", f'{{"prompt": "a", "stop_token_ids": {many("1", MILLION)}}}', {400}),
    "a million allowed ids": ("/v1/completions", f'{{"prompt": "a", "allowed_token_ids": {many("1", MILLION)}}}', {400}),
    "a million bad words": ("/v1/completions", f'{{"prompt": "a", "bad_words": {many(chr(34) + "x" + chr(34), MILLION)}}}', {400}),
    "a million texts to choose": ("/v1/completions", f'{{"prompt": "a", "guided_choice": {many(chr(34) + "x" + chr(34), MILLION)}}}', {400}),
    "a schema of seven MiB": ("/v1/completions", f'{{"prompt": "a", "guided_json": {{"enum": {many("1", 3_500_000)}}}}}', {400}),
    "an expression that grows": ("/v1/completions", '{"prompt": "a", "guided_regex": "((((a{1,99}){1,99}){1,99}){1,99}){1,99}", "max_tokens": 1}', {200, 400}),
    "an expression that doubles": ("/v1/completions", '{"prompt": "a", "guided_regex": "(a|b)*a(a|b){60}", "max_tokens": 1}', {200, 400}),
    "a grammar that goes nowhere": ("/v1/completions", '{"prompt": "a", "guided_grammar": "root ::= root", "max_tokens": 1}', {400}),
    "a million messages": ("/v1/chat/completions", f'{{"messages": {many("{}", MILLION)}}}', {400}),
    "a million parts": ("/v1/chat/completions", f'{{"messages": [{{"role": "user", "content": {many("{}", MILLION)}}}]}}', {400}),
    "a million tools": ("/v1/chat/completions", f'{{{TALK}, "tools": {many("{}", MILLION)}}}', {400}),
    "a wide variable": ("/v1/chat/completions", f'{{{TALK}, "max_tokens": 1, "chat_template_kwargs": {{"x": {many("1", MILLION)}}}}}', {200, 400}),
    "unknown fields": ("/v1/completions", '{"prompt": "a", "max_tokens": 1,' + ",".join(f'"x{i}":1' for i in range(500_000)) + "}", {200}),
    "brackets": ("/v1/completions", "[" * (7 * MiB), {400}),
    "a text to tokenize": ("/tokenize", f'{{"prompt": "{"x" * 7_000_000}"}}', {400}),
    "ids to put into words": ("/detokenize", f'{{"tokens": {many("1", MILLION)}}}', {400}),
}  # fmt: skip


@pytest.fixture
def victim():
    from conftest import Server

    running = Server()
    yield running
    assert running.stop() == 0, running.log[-4000:]


def attack(server):
    """Each body at once from several clients."""
    def post(body):
        path, text, _ = body
        return server.request("POST", path, text, {"Content-Type": "application/json"})

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for what, body in BODIES.items():
            clients = 1 if body[2] == {200} else AT_ONCE
            for answer in pool.map(post, [body] * clients):
                assert answer.status in body[2], (what, answer.status, answer.text[:500])
                assert answer.status == 200 or len(answer.text) < 1500, what
    server.wait_until(lambda metrics: metrics["vllm:num_requests_running"] <= 1, "an engine with the bystander alone")


@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=pytest.mark.full)])
def test_what_costs_memory_is_bounded_and_given_back(victim, rounds):
    with Bystander(victim):
        before = held(victim, "VmRSS")
        kept = []
        for _ in range(rounds):
            attack(victim)
            kept.append(held(victim, "VmRSS"))
    peak = held(victim, "VmHWM") - before
    print(f"before {before / MiB:.0f} MiB, then {[f'{(one - before) / MiB:+.0f}' for one in kept]}, at most {peak / MiB:+.0f}")
    assert peak < MOST_AT_ONCE
    assert max(kept) - before < MOST_KEPT
    if rounds == 3:
        assert kept[2] - kept[1] < MOST_LEAKED
