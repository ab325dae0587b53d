"""What the server tells of its prefix cache is what is in it: a subscriber that knows nothing else foretells cached_tokens."""

import json
import random
import subprocess

import msgspec
import pytest

from conftest import BINARY, PATIENCE_S
from kv_subscriber import Subscriber

SHORT = ("--max-model-len", "256", "--max-num-seqs", "4")
SMALL = (*SHORT, "--kv-cache-memory", "2MiB")
WHOLE_BLOCKS = ("--kv-cache-dtype", "int4")  # which are found whole or not at all
SMALL_WHOLE = (*SHORT, *WHOLE_BLOCKS, "--kv-cache-memory", "1200KiB")


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.fixture
def followed(start_server, tmp_path):
    """(server, join): join() gives another subscriber. Arguments are the server's, fields those of --kv-events-config."""
    joined = []

    def start(*args, **fields):
        places = {"endpoint": f"ipc://{tmp_path}/events", "replay_endpoint": f"ipc://{tmp_path}/replays"}
        config = {"enable_kv_cache_events": True, "publisher": "zmq", **places, **fields}
        server = start_server("--kv-events-config", json.dumps(config), *args)

        def join():
            joined.append(Subscriber(*places.values(), array_like=fields.get("format") == "array"))
            return joined[-1]

        return server, join

    yield start
    for one in joined:
        one.close()


def prompts(seed, num):
    """With beginnings in common, from a few stems."""
    draw = random.Random(seed)
    stems = [[draw.randrange(1000) for _ in range(100)] for _ in range(4)]
    for _ in range(num):
        stem = draw.choice(stems)[:draw.randrange(100)]
        yield stem + [draw.randrange(3) for _ in range(draw.randrange(1, 60))]


@pytest.mark.parametrize("format", ["map", "array"])
def test_a_subscriber_foretells_every_cached_token(followed, format):
    server, join = followed(*SMALL_WHOLE, format=format)
    router = join()
    total = 0
    for prompt in prompts(1, 150):
        router.catch_up()
        foretold = router.num_cached(prompt)
        assert cached(server.complete(prompt, max_tokens=4, temperature=0)) == foretold
        total += foretold
    metrics = server.metrics()
    assert total > 1500 and metrics["quire:kv_block_evictions_total"] > 100
    router.catch_up()
    assert router.num_live > 0
    assert metrics["quire:kv_event_batches_dropped_total"] == 0
    assert server.metrics()["quire:kv_event_batches_published_total"] == router.next
    late = join()  # hears what was before from the replay alone
    late.catch_up()
    assert late.num_live == 0 and late.blocks == router.blocks
    prompt = next(prompts(1, 1))
    foretold = late.num_cached(prompt)
    assert cached(server.complete(prompt, max_tokens=1)) == foretold


def test_with_parts_of_blocks_shared_less_than_a_block_more_is_found(followed):
    server, join = followed(*SMALL)
    router = join()
    for prompt in prompts(2, 60):
        router.catch_up()
        foretold = router.num_cached(prompt)
        assert foretold <= cached(server.complete(prompt, max_tokens=4, temperature=0)) < foretold + 16


def test_the_answers_are_those_of_a_server_that_publishes_nothing(followed, server):
    told, _ = followed(*SMALL)
    for prompt in prompts(3, 10):
        fields = dict(max_tokens=8, seed=4)
        assert told.complete(prompt, **fields)["choices"] == server.complete(prompt, **fields)["choices"]


def test_the_first_message_publishes_the_whole_cache(followed, tmp_path):
    (tmp_path / "system.txt").write_text("Once upon a time there was a little girl. " * 5)
    server, join = followed("--pin-prefix", tmp_path / "system.txt", *WHOLE_BLOCKS)
    router = join()
    router.catch_up()
    kinds = [type(event).__name__ for event in router.batches[0].events]
    assert kinds == ["AllBlocksCleared", "BlockStored"]
    ids = server.post_to("/v1/completions/render", {"prompt": (tmp_path / "system.txt").read_text()}).json[0]["token_ids"]
    assert len(router.blocks) == len(ids) // 16
    assert router.topics == {f"kv@127.0.0.1:{server.port}@stories"}


def test_a_cleared_cache_is_empty(followed):
    server, join = followed(*WHOLE_BLOCKS)
    router = join()
    prompt = list(range(100, 200))
    server.complete(prompt, max_tokens=1)
    router.catch_up()
    assert router.num_cached(prompt) == 96
    report = server.request("POST", "/admin/cache/clear")
    assert report.status == 200 and report.json["blocks"] == len(router.blocks)
    router.catch_up()
    assert router.blocks == {} and type(router.batches[-1].events[-1]).__name__ == "AllBlocksCleared"
    assert cached(server.complete(prompt, max_tokens=1)) == 0
    router.catch_up()
    assert router.num_cached(prompt) == 96


def test_a_loaded_cache_is_published(followed, tmp_path):
    server, join = followed("--cache-dir", tmp_path, *WHOLE_BLOCKS)
    router = join()
    prompt = list(range(100, 200))
    server.complete(prompt, max_tokens=1)
    assert server.post_to("/admin/cache/save", {"path": "a.kv"}).status == 200
    server.request("POST", "/admin/cache/clear")
    router.catch_up()
    assert router.num_cached(prompt) == 0
    assert server.post_to("/admin/cache/load", {"path": "a.kv"}).status == 200
    router.catch_up()
    assert router.num_cached(prompt) == 96 == cached(server.complete(prompt, max_tokens=1))


def test_who_has_a_salt_has_a_chain_of_their_own(followed):
    server, join = followed(*WHOLE_BLOCKS)
    router = join()
    prompt = list(range(100, 200))
    server.complete(prompt, max_tokens=1, cache_salt="a")
    server.complete(prompt, max_tokens=1, cache_salt="b")
    router.catch_up()
    assert router.num_cached(prompt) == 0 == cached(server.complete(prompt, max_tokens=1))
    roots = {root for parent, _, root in router.blocks.values() if parent is None and root}
    assert len(roots) == 2 and all(len(root) == 1 and len(root[0]) == 32 for root in roots)
    assert [router.num_cached(prompt, root) for root in roots] == [96, 96]


def test_a_replay_has_the_last_messages_and_no_more(followed):
    server, join = followed(buffer_steps=5, *WHOLE_BLOCKS)
    router = join()
    for i in range(12):
        server.complete([i] * 40, max_tokens=1)
    numbers = [number for _, number, _ in router.replay(0)]
    assert len(numbers) == 5 and numbers == list(range(numbers[0], numbers[0] + 5)) and numbers[0] >= 7
    assert [number for _, number, _ in router.replay(numbers[3])] == numbers[3:]
    assert router.replay(numbers[-1] + 1) == []
    server.wait_until(lambda m: m["quire:kv_event_replays_total"] == 3, "three replays")  # counted behind their last message


def test_many_at_once_are_published_in_order(followed):
    server, join = followed(*SMALL_WHOLE)
    router = join()
    all_prompts = list(prompts(5, 24))
    server.complete(all_prompts, max_tokens=8, n=2)
    router.catch_up()
    for prompt in all_prompts[-2:]:
        router.catch_up()
        foretold = router.num_cached(prompt)
        assert cached(server.complete(prompt, max_tokens=1)) == foretold


def test_keys_may_be_given_one_by_one(start_server, tmp_path):
    flag = "--kv-events-config."
    server = start_server(flag + "enable_kv_cache_events", "true", flag + "endpoint", "tcp://127.0.0.1:*",
                          flag + "replay-endpoint=tcp://127.0.0.1:*", flag + "topic", "kv@10.0.0.7:8000@m")
    server.wait_for_log("kv_events")
    places = [word.split("=", 1)[1] for word in server.log.split() if word.startswith(("endpoint=", "replay_endpoint="))]
    router = Subscriber(*places)
    try:
        server.complete(list(range(64)), max_tokens=1)
        router.catch_up()
        assert router.topics == {"kv@10.0.0.7:8000@m"} and router.num_cached(list(range(64))) == 48
    finally:
        router.close()


def test_maps_and_arrays_are_what_msgspec_writes(followed):
    for format, kind in (("map", dict), ("array", list)):
        server, join = followed(format=format)
        router = join()
        server.complete(list(range(64)), max_tokens=1)
        told = [payload for _, _, payload in router.replay(0)]
        for payload in told:
            timestamp, events, rank = msgspec.msgpack.decode(payload)
            assert rank == 0 and all(type(event) is kind for event in events)
            assert msgspec.msgpack.encode(router.decoder.decode(payload).ts) == msgspec.msgpack.encode(timestamp)
            assert msgspec.msgpack.encode([timestamp, events, rank]) == payload
        assert server.stop() == 0


@pytest.mark.parametrize("value,said", [
    ('{"enabled":true}', "unknown key enabled"),
    ('{"enable_kv_cache_events":1}', "enable_kv_cache_events must be true or false"),
    ('{"enable_kv_cache_events":true,"buffer_steps":0}', "buffer_steps must be a whole number from 1 to 10000000"),
    ("tcp://*:5557", "expected a JSON object"),
])
def test_a_wrong_setting_is_refused_by_its_key(value, said):
    ran = subprocess.run([BINARY, "serve", "--kv-events-config", value], capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 2 and "--kv-events-config: " + said in ran.stderr + ran.stdout


def test_without_a_prefix_cache_there_is_nothing_to_publish(tmp_path):
    ran = subprocess.run([BINARY, "serve", "--prefix-caching", "off", "--kv-events-config",
                          '{"enable_kv_cache_events":true}'], capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 2 and "leave --prefix-caching off out" in ran.stderr + ran.stdout


def test_an_address_that_is_taken_is_reported(followed, start_server):
    server, _ = followed(endpoint="tcp://127.0.0.1:*", replay_endpoint="tcp://127.0.0.1:*")
    server.wait_for_log("replay_endpoint=")
    taken = next(word.split("=", 1)[1] for word in server.log.split() if word.startswith("replay_endpoint="))
    config = {"enable_kv_cache_events": True, "endpoint": "tcp://127.0.0.1:*", "replay_endpoint": taken}
    ran = subprocess.run([BINARY, "serve", "--port", "0", "--kv-events-config", json.dumps(config)],
                         capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 2 and f"replay_endpoint {taken}: Address already in use" in ran.stderr + ran.stdout
