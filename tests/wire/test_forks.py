"""Several answers to one prompt, and the best of several: over the wire, with the embedded model."""

import concurrent.futures

import pytest

from conftest import choices_of, idle

PROMPT = "Once upon a time"
FIELDS = dict(max_tokens=24, seed=11, temperature=1.0)


def texts(answer):
    assert [choice["index"] for choice in answer["choices"]] == list(range(len(answer["choices"])))
    return [choice["text"] for choice in answer["choices"]]


def test_the_first_of_many_is_the_only_one(server):
    many = texts(server.complete(PROMPT, n=4, **FIELDS))
    assert texts(server.complete(PROMPT, n=1, **FIELDS)) == many[:1]
    assert texts(server.complete(PROMPT, n=3, **FIELDS)) == many[:3]
    assert len(set(many)) == 4, "the answers are the same"


def test_an_openai_client_asks_for_many(client):
    model = client.models.list().data[0].id
    answer = client.completions.create(model=model, prompt=["One day", "The dragon"], n=3, best_of=3, max_tokens=8, seed=2)
    assert [choice.index for choice in answer.choices] == list(range(6))
    alone = client.completions.create(model=model, prompt="The dragon", n=3, max_tokens=8, seed=2)
    assert [choice.text for choice in answer.choices[3:]] == [choice.text for choice in alone.choices]


def test_many_are_streamed_as_they_are_returned_whole(server):
    prompts = [PROMPT, "The dragon"]
    whole = server.complete(prompts, n=3, **FIELDS)
    with server.stream(prompts, n=3, **FIELDS, stream_options={"include_usage": True}) as events:
        streamed, usage = choices_of(events)
    assert [streamed[i][0] for i in range(6)] == texts(whole)
    assert [streamed[i][1] for i in range(6)] == [choice["finish_reason"] for choice in whole["choices"]]
    for name in ("prompt_tokens", "completion_tokens"):
        assert usage[name] == whole["usage"][name]


def test_a_prompt_is_counted_once_and_its_forks_are_no_hits(start_server):
    server = start_server()
    prompt = list(range(200, 300))
    answer = server.complete(prompt, n=5, best_of=7, max_tokens=9, ignore_eos=True)
    usage = answer["usage"]
    assert len(answer["choices"]) == 5
    assert usage["prompt_tokens"] == 100 and usage["completion_tokens"] == 63
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0
    again = server.complete(prompt, n=5, best_of=7, max_tokens=9, ignore_eos=True, seed=answer["seed"])
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] >= 96
    assert again["choices"] == answer["choices"]


def test_forks_say_the_same_without_a_prefix_cache(start_server):
    cached, plain = start_server(), start_server("--no-enable-prefix-caching")
    prompt = PROMPT * 20
    for fields in (dict(n=4), dict(n=2, best_of=6), dict(n=3, use_beam_search=True, temperature=0)):
        assert texts(cached.complete(prompt, **{**FIELDS, **fields})) == texts(plain.complete(prompt, **{**FIELDS, **fields}))


def test_forks_say_the_same_one_after_the_other(start_server):
    wide, narrow = start_server(), start_server("--max-num-seqs", 1)
    for fields in (dict(n=5), dict(n=2, best_of=5)):
        assert texts(wide.complete(PROMPT, **FIELDS, **fields)) == texts(narrow.complete(PROMPT, **FIELDS, **fields))


def test_greedy_answers_are_equal(server):
    same = texts(server.complete(PROMPT, n=4, max_tokens=16, temperature=0))
    assert len(same) == 4 and len(set(same)) == 1


def test_the_best_are_the_same_however_many_are_returned(server):
    run = texts(server.complete(PROMPT, n=6, **FIELDS))
    ranking = texts(server.complete(PROMPT, n=5, best_of=6, **FIELDS))
    assert set(ranking) <= set(run)
    for n in (1, 2, 4):
        assert texts(server.complete(PROMPT, n=n, best_of=6, **FIELDS)) == ranking[:n]


def test_the_best_of_many_single_tokens_is_the_greedy_one(server):
    fields = dict(max_tokens=1, seed=3, temperature=1.0, ignore_eos=True)
    greedy = server.text(PROMPT, **{**fields, "temperature": 0})
    assert greedy in texts(server.complete(PROMPT, n=64, **fields)), "choose another seed: it was not drawn"
    assert texts(server.complete(PROMPT, best_of=64, **fields)) == [greedy]


# ---- searches

SEARCH = dict(use_beam_search=True, max_tokens=16, ignore_eos=True)


def test_a_search_of_width_one_is_greedy(server):
    assert server.text(PROMPT, n=1, **SEARCH) == server.text(PROMPT, max_tokens=16, temperature=0, ignore_eos=True)


def test_a_search_returns_its_best_first(server):
    best = texts(server.complete(PROMPT, n=4, best_of=4, **SEARCH))
    assert len(set(best)) == 4, "two hypotheses are the same"
    for n in (1, 2, 3):
        assert texts(server.complete(PROMPT, n=n, best_of=4, **SEARCH)) == best[:n]
    together = server.complete([PROMPT, "The dragon"], n=2, best_of=4, **SEARCH)
    assert texts(together)[:2] == best[:2]
    assert together["usage"]["completion_tokens"] == 64


def test_a_search_does_not_depend_on_its_neighbours(server):
    jobs = [dict(prompt=PROMPT + " " * (i % 3), n=2, best_of=3 + i % 3, **SEARCH) for i in range(6)]
    jobs += [dict(prompt=PROMPT, n=3, **FIELDS)] * 3
    alone = [texts(server.complete(**job)) for job in jobs]
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        together = list(pool.map(lambda job: texts(server.complete(**job)), jobs))
    assert together == alone


def test_short_answers_win_where_length_is_punished(server):
    fields = dict(n=4, best_of=8, use_beam_search=True, max_tokens=200)
    lengths = {}
    for penalty in (-5.0, 5.0):  # the score is a sum of logs, below zero: dividing it by more makes it better
        answer = server.complete("The end. The", length_penalty=penalty, **fields)
        lengths[penalty] = answer["usage"]["completion_tokens"]
    assert lengths[-5.0] <= lengths[5.0]


@pytest.mark.parametrize("fields,param", [
    (dict(n=0), "n"),
    (dict(n=129), "n"),
    (dict(n=2, best_of=1), "best_of"),
    (dict(best_of=129), "best_of"),
    (dict(n=2, best_of=3, stream=True), "best_of"),
    (dict(prompt=["a", "b", "c"], n=43), "n"),
    (dict(use_beam_search=True, n=65), "n"),
    (dict(use_beam_search=True, stream=True), "use_beam_search"),
    (dict(use_beam_search=True, temperature=0.5), "temperature"),
    (dict(use_beam_search=True, top_p=0.9), "top_p"),
    (dict(use_beam_search=True, top_k=5), "top_k"),
    (dict(use_beam_search=True, min_p=0.1), "min_p"),
    (dict(use_beam_search=True, stop="x"), "stop"),
    (dict(use_beam_search=True, length_penalty=11), "length_penalty"),
    (dict(length_penalty=0.5), "length_penalty"),
], ids=str)
def test_what_cannot_be_is_named(server, fields, param):
    answer = server.post({"prompt": "a", **fields})
    assert answer.status == 400 and answer.error["param"] == param, answer.text


def test_forks_leave_nothing_behind(server):
    server.wait_until(idle, "an idle engine")
    assert server.post({"prompt": PROMPT, "n": 4, "max_tokens": 4}).status == 200
    server.wait_until(idle, "an idle engine")
