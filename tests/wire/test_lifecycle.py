"""Starting, being full, and going in good order."""

import concurrent.futures
import contextlib
import json
import subprocess
import threading

import pytest

from conftest import BINARY, PACED, PATIENCE_S, choices_of

LONG = {"max_tokens": 400, "ignore_eos": True}


def test_sigterm_lets_streams_finish_and_refuses_new_ones(start_server):
    server = start_server("--max-num-seqs", 4, *PACED)
    begun = threading.Barrier(13)

    def read(seed):
        with server.stream("Once upon a time", seed=seed, **{**LONG, "max_tokens": 60}, stream_options={"include_usage": True}) as events:
            begun.wait(PATIENCE_S)  # a stream's head comes before its first token: twelve are let in though four run at a time
            return choices_of(events)

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        streams = [pool.submit(read, seed) for seed in range(12)]
        begun.wait(PATIENCE_S)
        server.terminate()
        # The twelve take three seconds and more. A machine on which these questions take longer finds the server gone, and the
        # streams below say whether it went too early.
        with contextlib.suppress(ConnectionError):
            assert server.get("/ready").status in (200, 503)
            while server.get("/ready").status == 200:
                pass
            assert server.get("/live").status == 200
            refused = server.post({"prompt": "a"})
            assert refused.status == 503 and int(refused.headers["retry-after"]) >= 1
        for stream in streams:
            choices, usage = stream.result(PATIENCE_S)
            assert choices[0][1] == "length" and usage["completion_tokens"] == 60
    assert server.wait() == 0, server.log[-4000:]
    assert "every answer was finished" in server.log


def test_sigterm_without_work_is_an_end_at_once(start_server):
    server = start_server()
    server.complete("Once", max_tokens=2)
    server.terminate()
    assert server.wait() == 0


def test_streams_that_outlast_the_drain_are_reported(start_server):
    server = start_server("--drain-timeout", "1ms", "--max-num-seqs", 1, *PACED)
    with server.stream("Once upon a time", **LONG) as events:
        received = [next(events)]
        with server.stream("Once upon a time", **LONG) as waiting:
            server.terminate()
            received += waiting
    assert received[-1] == "[DONE]"
    assert json.loads(received[-2])["error"]["code"] == 503
    server.wait()


def test_a_full_line_is_429_and_the_rest_is_served(start_server):
    server = start_server("--max-num-seqs", 1, "--max-queue", 2, *PACED)

    def ask(seed):
        return server.post({"prompt": "Once upon a time", "seed": seed, "max_tokens": 50, "ignore_eos": True,
                            "stream": seed % 2 == 0})

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(ask, range(40)))
    statuses = [answer.status for answer in answers]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 3
    for answer in answers:
        if answer.status == 429:
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.error["type"] == "rate_limit_error" and answer.error["code"] == 429
    server.wait_until(lambda m: m["vllm:admission_rejections_total"] == statuses.count(429), "as many rejections as were told")
    assert server.post({"prompt": ["a"] * 3}).status == 400, "three will never fit into a line of two"
    assert server.stop() == 0


def test_a_taken_port_is_reported_with_what_to_do(server):
    second = subprocess.run([BINARY, "serve", "--port", str(server.port)], capture_output=True, text=True, timeout=PATIENCE_S)
    assert second.returncode not in (0, -6, -11)
    assert "--port" in second.stderr + second.stdout and str(server.port) in second.stderr + second.stdout


def test_several_io_threads_answer_the_same(start_server, server):
    many = start_server("--io-threads", 3)
    jobs = [dict(prompt="The dragon", seed=i, max_tokens=20) for i in range(30)]
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        assert list(pool.map(lambda job: many.text(**job), jobs)) == [server.text(**job) for job in jobs]
    assert many.stop() == 0
