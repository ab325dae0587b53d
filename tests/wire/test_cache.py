"""The prefix cache, as its users see it: who shares with whom, and what outlives the server."""

import concurrent.futures
import json

import pytest

PROMPT = list(range(100, 200))  # six full blocks of 16, and four tokens
FIELDS = dict(max_tokens=8, seed=1)
WINDOW = {"type": "sink_window", "sinks": 16, "window": 256}
HITTERS = {"type": "heavy_hitters", "sinks": 16, "window": 256, "budget": 32}


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def order(server, what, body):
    text = body if isinstance(body, str) else json.dumps(body)
    return server.request("POST", f"/admin/cache/{what}", text, {"Content-Type": "application/json"})


# ---- salts

def test_nothing_is_found_or_revealed_across_salts(start_server):
    server = start_server()
    first = server.complete(PROMPT, cache_salt="one", **FIELDS)
    assert cached(first) == 0
    other = server.complete(PROMPT, cache_salt="two", **FIELDS)
    plain = server.complete(PROMPT, **FIELDS)
    assert cached(other) == cached(plain) == 0
    again = server.complete(PROMPT, cache_salt="one", **FIELDS)
    assert cached(again) == 99
    assert cached(server.complete(PROMPT, **FIELDS)) == 99
    assert first["choices"] == other["choices"] == plain["choices"] == again["choices"]


def test_salts_stay_apart_at_the_same_time(start_server):
    server = start_server()
    salts = ["a", "b", "a ", "A", "é", "a\u0000", "x" * 128, None] * 2
    with concurrent.futures.ThreadPoolExecutor(len(salts)) as pool:
        answers = list(pool.map(lambda salt: server.complete(PROMPT, cache_salt=salt, **FIELDS), salts))
    assert all(answer["choices"] == answers[0]["choices"] for answer in answers)
    hits = server.metrics()["vllm:prefix_cache_hits_total"]
    assert hits <= 8 * 99, "more was found than each salt's second request could"
    for salt in salts[:8]:
        assert cached(server.complete(PROMPT, cache_salt=salt, **FIELDS)) == 99


# ---- lossy caches

@pytest.mark.parametrize("policy", [WINDOW, HITTERS], ids=lambda policy: policy["type"])
def test_a_lossy_cache_is_nobody_elses(start_server, policy):
    server = start_server()
    lossy = server.complete(PROMPT, kv_policy=policy, **FIELDS)
    assert cached(lossy) == 0
    assert cached(server.complete(PROMPT, kv_policy=policy, **FIELDS)) == 0
    plain = server.complete(PROMPT, **FIELDS)
    assert cached(plain) == 0, "a lossy sequence's blocks were kept"
    assert cached(server.complete(PROMPT, kv_policy=policy, **FIELDS)) == 0, "it found what others computed"
    assert plain["choices"] == lossy["choices"], "nothing is dropped yet at this length"


@pytest.mark.parametrize("policy", [WINDOW, HITTERS], ids=lambda policy: policy["type"])
def test_a_lossy_cache_gives_the_same_among_others(server, policy):
    jobs = [dict(prompt=[5 + i] * 300, kv_policy=policy if i % 2 else None, n=1 + i % 2, max_tokens=40, seed=i)
            for i in range(8)]
    alone = [server.complete(**job)["choices"] for job in jobs]
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        together = list(pool.map(lambda job: server.complete(**job)["choices"], jobs))
    assert together == alone


# ---- what orders the line

def test_priority_and_deadline_change_no_token(server):
    plain = server.complete(PROMPT, **FIELDS)["choices"]
    for fields in (dict(priority=-5), dict(priority=2**31 - 1), dict(deadline_ms=3_600_000)):
        assert server.complete(PROMPT, **FIELDS, **fields)["choices"] == plain


@pytest.mark.parametrize("fields,param", [
    (dict(cache_salt=""), "cache_salt"),
    (dict(cache_salt="x" * 129), "cache_salt"),
    (dict(cache_salt="é" * 65), "cache_salt"),
    (dict(cache_salt=5), "cache_salt"),
    (dict(priority=2**31), "priority"),
    (dict(priority=0.5), "priority"),
    (dict(deadline_ms=0), "deadline_ms"),
    (dict(deadline_ms=3_600_001), "deadline_ms"),
    (dict(kv_policy="sink_window"), "kv_policy"),
    (dict(kv_policy={**WINDOW, "type": "full"}), "kv_policy.type"),
    (dict(kv_policy={**WINDOW, "sinks": 8}), "kv_policy.sinks"),
    (dict(kv_policy={**WINDOW, "window": 300}), "kv_policy.window"),
    (dict(kv_policy={**WINDOW, "window": 512}), "kv_policy"),
    (dict(kv_policy={**WINDOW, "budget": 16}), "kv_policy.budget"),
    (dict(kv_policy={**WINDOW, "surprise": 16}), "kv_policy.surprise"),
], ids=str)
def test_what_cannot_be_is_named(server, fields, param):
    answer = server.post({"prompt": "a", **fields})
    assert answer.status == 400 and answer.error["param"] == param, answer.text


# ---- saved and loaded

def test_a_saved_cache_is_found_by_the_next_server(start_server, tmp_path):
    before = start_server("--cache-dir", tmp_path)
    answers = [before.complete(PROMPT, cache_salt=salt, **FIELDS) for salt in (None, "mine")]
    saved = order(before, "save", {"path": "monday.kv"})
    assert saved.status == 200, saved.text
    assert saved.json["object"] == "cache_report" and saved.json["blocks"] >= 12 and saved.json["skipped"] == 0
    assert saved.json["bytes"] == (tmp_path / "monday.kv").stat().st_size
    assert before.stop() == 0

    after = start_server("--cache-dir", tmp_path)
    loaded = order(after, "load", {"path": "monday.kv"})
    assert loaded.status == 200, loaded.text
    assert loaded.json["blocks"] == saved.json["blocks"] and loaded.json["skipped"] == 0
    for salt, answer in zip((None, "mine"), answers):
        found = after.complete(PROMPT, cache_salt=salt, **FIELDS)
        assert cached(found) == 99 and found["choices"] == answer["choices"]
    assert cached(after.complete(PROMPT, cache_salt="yours", **FIELDS)) == 0
    again = order(after, "load", {"path": "monday.kv"})
    assert again.status == 200 and again.json["blocks"] == 0 and again.json["skipped"] == saved.json["blocks"]


def test_a_file_that_does_not_fit_is_refused_and_the_server_goes_on(start_server, tmp_path):
    server = start_server("--cache-dir", tmp_path)
    server.complete(PROMPT, **FIELDS)
    assert order(server, "save", {"path": "good.kv"}).status == 200
    good = (tmp_path / "good.kv").read_bytes()
    (tmp_path / "short.kv").write_bytes(good[:len(good) // 2])
    (tmp_path / "empty.kv").write_bytes(b"")
    (tmp_path / "text.kv").write_bytes(b"this is no cache" * 1000)
    (tmp_path / "flipped.kv").write_bytes(good[:-100] + bytes([good[-100] ^ 1]) + good[-99:])
    fresh = start_server("--cache-dir", tmp_path)
    for name in ("short.kv", "empty.kv", "text.kv", "flipped.kv"):
        refused = order(fresh, "load", {"path": name})
        assert refused.status == 400 and refused.error["param"] == "path", (name, refused.text)
    assert order(fresh, "load", {"path": "none.kv"}).status == 404
    assert fresh.complete(PROMPT, **FIELDS)["choices"] == server.complete(PROMPT, **FIELDS)["choices"]

    other = start_server("--cache-dir", tmp_path, "--kv-cache-dtype", "f32")
    assert order(other, "load", {"path": "good.kv"}).status == 400, "saved under another numeric mode"
    assert cached(other.complete(PROMPT, **FIELDS)) == 0


@pytest.mark.parametrize("what", ["save", "load"])
def test_a_file_name_is_only_a_name(start_server, tmp_path, what):
    (tmp_path / "caches").mkdir()
    server = start_server("--cache-dir", tmp_path / "caches")
    for name in ("", ".", "..", ".x", "../x", "/etc/passwd", "a/b", "a\u0000", "x" * 129, 5, None):
        refused = order(server, what, {"path": name})
        assert refused.status == 400 and refused.error["param"] == "path", name
    for body in ("", "{}", "[]", '{"path": "a", "more": 1}', '{"path": "a", "path": "b"}'):
        assert order(server, what, body).status == 400, body
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_without_a_directory_there_are_no_orders(server):
    for what in ("save", "load"):
        refused = order(server, what, {"path": "a.kv"})
        assert refused.status == 404 and "--cache-dir" in refused.error["message"]
        assert server.get(f"/admin/cache/{what}").status == 405


def test_answers_go_on_while_the_cache_is_saved(start_server, tmp_path):
    server = start_server("--cache-dir", tmp_path)
    alone = server.text(PROMPT, max_tokens=200, seed=3, ignore_eos=True)
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        answers = [pool.submit(server.text, PROMPT, max_tokens=200, seed=3, ignore_eos=True) for _ in range(3)]
        orders = [pool.submit(order, server, "save", {"path": f"{i}.kv"}) for i in range(2)]
        assert [answer.result() for answer in answers] == [alone] * 3
        statuses = sorted(one.result().status for one in orders)
    assert statuses in ([200, 200], [200, 503]), "one at a time; the other is told to come again"
