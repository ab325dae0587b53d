"""loadtest/load.py against a server that behaves as told: what is counted as what, and that nothing waits for answers."""

import asyncio
import collections
import resource
import time

import pytest
from driver import answer as verdicts
from driver import drive
from driver.connection import SPARE_DESCRIPTORS, take_descriptors, target_of
from driver.figures import summary
from driver.probes import Probes
from driver.prompts import Asker
from driver.scenario import checked
from driver.schedule import plan
from fake_server import FAULTS, FakeServer


def driven(url, asker_of=Asker, seed=1, **fields):
    scenario = checked({"timeout_s": 120} | fields)
    target = target_of(url)
    whole = plan(scenario, seed)
    return asyncio.run(drive.Drive(scenario, whole, asker_of(scenario, target, "fake", "1", ""), target).drive())


def closed(requests, concurrency=4):
    return {"kind": "closed", "concurrency": concurrency, "requests": requests}


def at_once(requests):
    return {"kind": "bursts", "size": requests, "every_s": 1, "duration_s": 1}


@pytest.mark.parametrize("endpoint", ["completions", "chat"])
@pytest.mark.parametrize("stream", [True, False])
def test_right_answers_are_right(endpoint, stream):
    with FakeServer() as server:
        run = driven(server.url, arrivals=closed(20), endpoint=endpoint, stream=stream, answer={"tokens": {"uniform": [1, 9]}})
    assert collections.Counter(answer.outcome for answer in run.answers) == {"right": 20}
    assert [answer.num_tokens for answer in run.answers] == [answer.planned.answer_tokens for answer in run.answers]
    assert {body["path"] for body in server.bodies} == {"/v1/chat/completions" if endpoint == "chat" else "/v1/completions"}
    for answer in run.answers:
        assert answer.intended_s <= answer.sent_s <= answer.first_s <= answer.last_s <= answer.end_s
        assert answer.num_events == (answer.num_tokens if stream else 1) == len(answer.gaps_s) + 1


EXPECTED = {  # fault → outcome, a part of why
    "cut before": ("failed", "cut before an answer"),
    "cut": ("failed", "cut in its middle"),
    "500": ("failed", "status 500"),
    "503": ("refused", "status 503"),
    "429": ("refused", "status 429"),
    "one less": ("wrong", "another number of tokens than asked"),
    "one more": ("wrong", "another number of tokens than asked"),
    "no [DONE]": ("wrong", "no [DONE]"),
    "no finish": ("wrong", "no finish_reason"),
    "no usage": ("wrong", "no usage"),
    "stop": ("wrong", "finish_reason 'stop' instead of 'length'"),
    "garbage": ("failed", "an event that is no object of the API"),
    "error event": ("failed", "an error event"),
    "behind [DONE]": ("failed", "an event behind [DONE]"),
    "no http": ("failed", "no status line of HTTP/1.1"),
    "whole": ("wrong", "not a stream"),
    "silent": ("failed", "timeout"),
}


def test_every_fault_is_counted_as_what_it_is_beside_right_answers():
    assert set(EXPECTED) == set(FAULTS)
    asked = [None, *(fault for fault in FAULTS if fault != "silent"), None]
    with FakeServer(lambda index, body: asked[index % len(asked)]) as server:
        run = driven(server.url, arrivals=closed(2 * len(asked), 1), answer={"tokens": 6})
    assert len(server.bodies) == 2 * len(asked)
    for answer in run.answers:
        fault = asked[answer.planned.index % len(asked)]
        assert (answer.outcome, answer.why) == (EXPECTED[fault] if fault else ("right", "")), fault
    found = summary(run)
    assert found["requests"]["right"] == 4 and found["requests"]["refused"] == 4
    assert found["requests"]["wrong"] == 2 * 7 and found["requests"]["failed"] == 2 * 7
    with FakeServer(lambda index, body: "silent") as server:  # by itself: within its short limit no other answer has to come
        run = driven(server.url, arrivals=closed(2, 2), answer={"tokens": 6}, timeout_s=0.5)
    assert [(answer.outcome, answer.why) for answer in run.answers] == [EXPECTED["silent"]] * 2
    assert all(answer.end_s - answer.intended_s >= 0.5 for answer in run.answers) and summary(run)["requests"]["failed"] == 2


def test_an_early_end_is_right_where_the_end_may_come_and_a_late_one_is_not():
    with FakeServer(lambda index, body: ["stop", "one less", "one more"][index]) as server:
        run = driven(server.url, arrivals=closed(3, 1), answer={"tokens": 6, "ignore_eos": False})
    assert [answer.outcome for answer in run.answers] == ["right", "right", "wrong"]


def test_a_server_that_is_not_there_fails_every_request():
    with FakeServer() as server:
        url = server.url
    run = driven(url, arrivals=closed(5))
    assert {(answer.outcome, answer.why) for answer in run.answers} == {("failed", "no connection: ConnectionRefusedError")}


def test_connections_are_used_again():
    with FakeServer() as server:
        driven(server.url, arrivals=closed(40, 2), answer={"tokens": 2})
    assert server.num_connections == 2


def test_a_connection_is_not_used_again_behind_a_fault():
    with FakeServer(lambda index, body: "garbage") as server:
        driven(server.url, arrivals=closed(4, 1), answer={"tokens": 2})
    assert server.num_connections == 4


# ---- open and closed loops


def test_requests_are_sent_though_none_is_answered():
    # The server says nothing before the last has come: whoever waits for answers first waits for ever.
    with FakeServer(hold=50) as server:
        run = driven(server.url, arrivals={"kind": "constant", "rate_per_s": 500, "duration_s": 0.1}, answer={"tokens": 3})
    assert {answer.outcome for answer in run.answers} == {"right"} and run.most_in_flight == 50


def test_a_stall_is_seen_by_every_request_that_was_due_in_it():
    # All answers begin after request 29 has come. So request i waits for at least the time between the two: in a client that
    # sends its next request behind an answer, one request would have seen the stall.
    with FakeServer(hold=30) as server:
        run = driven(server.url, arrivals={"kind": "constant", "rate_per_s": 100, "duration_s": 0.4}, answer={"tokens": 3})
    for answer in run.answers[:30]:
        assert answer.ttft_s >= run.answers[29].intended_s - answer.intended_s - 1e-6
    assert summary(run)["latency_ms"]["ttft"]["p50"] >= 90


def test_a_pause_of_the_client_counts_for_the_requests_that_were_due_in_it():
    class Pausing(Asker):
        def request(self, planned):
            if planned.index == 5:
                time.sleep(0.3)
            return super().request(planned)

    with FakeServer() as server:
        run = driven(server.url, Pausing, arrivals={"kind": "constant", "rate_per_s": 100, "duration_s": 0.3}, answer={"tokens": 2})
    assert len(run.answers) == 30
    pause_ends_s = run.answers[5].sent_s + 0.3
    for answer in run.answers[6:]:  # all of them were due before it ended
        assert answer.sent_s >= pause_ends_s
        assert answer.ttft_s >= pause_ends_s - answer.intended_s
    client = summary(run)["client"]
    assert client["saturated"] and client["send_delay_p99_ms"] >= 200


def test_a_closed_loop_has_as_many_in_flight_as_asked_and_no_more():
    with FakeServer(hold=6) as server:
        run = driven(server.url, arrivals=closed(30, 6), answer={"tokens": 3})
    assert run.most_in_flight == 6 and server.most_open <= 6 and len(server.bodies) == 30


def test_the_same_seed_asks_the_same_in_the_same_order():
    asked = []
    for seed in (1, 1, 2):
        with FakeServer() as server:
            driven(server.url, seed=seed, arrivals=closed(10, 1), prompt={"tokens": {"uniform": [5, 50]}}, answer={"tokens": {"uniform": [1, 5]}})
        asked.append([(len(body["prompt"].split()), body["max_tokens"]) for body in server.bodies])
    assert asked[0] == asked[1] != asked[2]


def test_an_interrupted_run_reports_what_it_has():
    scenario = checked({"arrivals": {"kind": "constant", "rate_per_s": 100, "duration_s": 600}})

    async def interrupted(url):
        one = drive.Drive(scenario, plan(scenario, 1), Asker(scenario, target_of(url), "fake", "1"), target_of(url))
        running = asyncio.ensure_future(one.drive())
        while len(one.answers) < 5:
            await asyncio.sleep(0.01)
        one._interrupt()
        return await running

    with FakeServer(hold=10**6) as server:
        run = asyncio.run(interrupted(server.url))
    assert run.interrupted and {answer.outcome for answer in run.answers} == {verdicts.UNFINISHED}
    assert summary(run)["requests"]["unsent"] == 60_000 - len(run.answers)


# ---- descriptors


def test_streams_that_do_not_fit_are_refused_before_anything_is_sent():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert take_descriptors(hard - SPARE_DESCRIPTORS) == hard - SPARE_DESCRIPTORS
    with pytest.raises(OSError, match=f"need {hard + 1:,} descriptors, and this process may have {hard:,}: raise the hard limit"):
        take_descriptors(hard - SPARE_DESCRIPTORS + 1)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard


def test_a_request_without_a_descriptor_is_a_failure_of_the_client(monkeypatch):
    monkeypatch.setattr(drive, "take_descriptors", lambda streams: 3)
    with FakeServer(hold=3) as server:
        run = driven(server.url, arrivals=at_once(8), answer={"tokens": 2})
    assert collections.Counter((answer.outcome, answer.why) for answer in run.answers) == {
        ("right", ""): 3, ("failed", "the client had no descriptor left"): 5}  # fmt: skip


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a", "http://", "file:///etc"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(ValueError, match="expected http://HOST:PORT"):
        target_of(url)


@pytest.mark.parametrize(
    "url, host, port, path, authority",
    [
        ("http://a:1", "a", 1, "", "a:1"), ("http://a:1/v1/", "a", 1, "", "a:1"), ("https://a/x/v1", "a", 443, "/x", "a:443"),
        ("http://[::1]:2", "::1", 2, "", "[::1]:2"),
    ],
)  # fmt: skip
def test_a_url_says_where_to_ask(url, host, port, path, authority):
    target = target_of(url)
    assert (target.host, target.port, target.path, target.authority) == (host, port, path, authority)


# ---- probes


def test_probes_ask_meanwhile_and_count_what_fails():
    with FakeServer(pages={"/live": 10, "/nothing": 10}) as server:  # no answer before
        probes = Probes([server.url + "/live", server.url + "/nothing"], 0.01)
        run = driven(server.url, arrivals=closed(2, 2), answer={"tokens": 10})
        run.probes = probes.stop()
    found = summary(run)["probes"]
    live, nothing = found[server.url + "/live"], found[server.url + "/nothing"]
    assert live["count"] >= 9 and live["failed"] == 0 and live["p99"] > 0  # the tenth may be under way as it is stopped
    assert nothing["count"] == 0 and nothing["failed"] >= 9
