"""The table of clients is whole, and docs/clients.md is of that table. No client runs here."""

import re

import clients
import clients_page
import pytest
from clients import CLIENTS

PROGRAMS = clients_page.NOTES.parent / "programs"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_is_pinned_and_has_a_program_and_a_row(client):
    assert all(re.fullmatch(r"\d+(\.\d+)+", version) for version in client.packages.values())
    assert (PROGRAMS / client.file).exists()
    assert f"| {client.title} | {client.version} | {client.job} |" in clients_page.PAGE.read_text(), "bash tests/run.sh --only matrix"


def test_the_page_ends_with_the_notes():
    assert clients_page.PAGE.read_text().endswith(clients_page.NOTES.read_text().strip() + "\n"), "bash tests/run.sh --only matrix"


def test_every_program_is_of_a_client_or_shared():
    assert {path.name for path in PROGRAMS.glob("*.*")} == {client.file for client in CLIENTS} | {"heard.py", "driving.py", "typed.py"}


@pytest.mark.parametrize("requests, result", [
    ({"POST /v1/responses 200": 2}, "worked"),
    ({"POST /v1/responses 200": 2, "POST /v1/responses 400": 1}, "failed"),
    ({"POST /v1/responses 200": 2, "GET /known 404": 1}, "worked"),
    ({}, "failed"),
])
def test_a_client_has_worked_where_it_asked_and_nothing_unforeseen_was_refused(requests, result):
    client = clients.python("x", "X", {"x": "1"}, "a job", refused=("GET /known 404",))
    assert clients_page.judged(client, {"result": "worked", "why": "", "requests": requests})["result"] == result


def test_a_row_says_why_a_client_did_not_run():
    client = clients.python("x", "X", {"x": "1"}, "a job")
    result = {"result": "not run", "why": "a | b", "facts": [], "requests": {}}
    assert clients_page.row(client, result) == "| X | 1 | a job | not run: a \\| b |"
    result["why"] = "see /a/b/c/d.py and https://example.org/x, not /v1/chat/completions"
    assert "see d.py and (an address) not /v1/chat/completions" in clients_page.row(client, result)
    assert clients_page.row(client, None) == "| X | 1 | a job | not run |"
