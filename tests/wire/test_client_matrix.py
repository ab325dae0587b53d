"""Programs that people really use ask the same question and must hear the same answer, streamed and whole."""

import asyncio
import json
import shutil
import subprocess

import openai
import pytest
import requests

from conftest import PATIENCE_S

pytestmark = pytest.mark.full

QUESTION = {"model": "stories", "prompt": "Once upon a time", "max_tokens": 48, "temperature": 0.8, "seed": 11}


@pytest.fixture(scope="module")
def expected(server):
    return server.complete(**QUESTION)["choices"][0]["text"]


def test_the_python_client_receives_it_whole_and_streamed(server, expected):
    client = server.client()
    assert client.completions.create(**QUESTION).choices[0].text == expected
    assert "".join(c.choices[0].text for c in client.completions.create(**QUESTION, stream=True)) == expected


def test_fifty_streams_of_one_asynchronous_python_client_all_receive_it(server, expected):
    async def one(client):
        return "".join([c.choices[0].text async for c in await client.completions.create(**QUESTION, stream=True)])

    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
            return await asyncio.gather(*(one(client) for _ in range(50)))

    assert set(asyncio.run(all_of_them())) == {expected}


def test_requests_receives_it_over_one_kept_connection(server, expected):
    with requests.Session() as session:
        for _ in range(3):
            answer = session.post(server.url + "/v1/completions", json=QUESTION, timeout=PATIENCE_S)
            assert answer.json()["choices"][0]["text"] == expected
        answer = session.post(server.url + "/v1/completions", json={**QUESTION, "stream": True}, stream=True, timeout=PATIENCE_S)
        events = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: ")]
    assert events[-1] == b"[DONE]"
    assert "".join(json.loads(event)["choices"][0]["text"] for event in events[:-1]) == expected


def test_curl_receives_it_whole_and_streamed(server, expected):
    def curl(body):
        command = ["curl", "-sSfN", server.url + "/v1/completions", "-H", "Content-Type: application/json", "-d", json.dumps(body)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout

    assert json.loads(curl(QUESTION))["choices"][0]["text"] == expected
    assert curl({**QUESTION, "stream": True}).rstrip().endswith("data: [DONE]")


NODE_FETCH = """
const [url, question] = process.argv.slice(1);
const answer = await fetch(url + '/v1/completions', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: question});
process.stdout.write((await answer.json()).choices[0].text);
"""


def node(*arguments, **options):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    return subprocess.run(["node", *arguments], check=True, capture_output=True, text=True, timeout=PATIENCE_S, **options).stdout


def test_nodes_own_fetch_receives_it(server, expected):
    assert node("--input-type=module", "-e", NODE_FETCH, server.url, json.dumps(QUESTION)) == expected
