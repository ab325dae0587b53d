"""docs/clients.md, made of what the clients' turns left below build/matrix/results: tests/run.sh --only matrix writes it."""

import json
import pathlib
import re

from clients import CLIENTS, FAILED, NOT_RUN, RESULTS, WORKED

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "clients.md"
NOTES = pathlib.Path(__file__).resolve().parent / "clients_notes.md"  # the part of the page that is written by hand


def results():
    """What is known of each client, in the order of the table; None of one that has had no turn."""
    files = ((client, RESULTS / f"{client.name}.json") for client in CLIENTS)
    return [(client, json.loads(file.read_text()) if file.exists() else None) for client, file in files]


def judged(client, result):
    """A client that was content while the server refused it, or that asked nothing, has not done its job."""
    refused = [request for request in result["requests"] if int(request.split()[-1]) >= 400 and request not in client.refused]
    if result["result"] != WORKED:
        return result
    if refused:
        return {**result, "result": FAILED, "why": f"the server refused {', '.join(refused)}"}
    if not any(request.endswith(" 200") for request in result["requests"]):
        return {**result, "result": FAILED, "why": "it asked the server nothing"}
    return result


def row(client, result):
    words = NOT_RUN if result is None else f"{result['result']}: {of_no_place(result['why'])}" if result["why"] else result["result"]
    if result and result["facts"] and result["result"] == WORKED:
        words += f", {len(result['facts'])} check{'s' if len(result['facts']) > 1 else ''}"
    if result and result["requests"]:
        words += f"; {counted(result['requests'])}"
    return f"| {client.title} | {client.version} | {client.job} | {words.replace('|', chr(92) + '|')} |"


def of_no_place(text):
    """Without the folders and addresses of the machine it was said on."""
    return re.sub(r"(?<!\w)/([\w.@+-]+/){3,}", "", re.sub(r"https?://\S+", "(an address)", text))


def counted(requests):
    """`POST /v1/messages` twice is "2 × /v1/messages"; a status is named where it is another than 200."""
    parts = []
    for request, number in requests.items():
        _, path, status = request.split()
        parts.append(f"{number} × `{path}`{'' if status == '200' else f' ({status})'}")
    return ", ".join(parts)


def page(known):
    ran = [result for _, result in known if result]
    dates, versions = sorted({result["date"] for result in ran}), sorted({result["server"] for result in ran})
    when = dates[-1] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    worked = sum(result["result"] == WORKED for result in ran)
    rows = "\n".join(row(client, result) for client, result in known)
    return f"""# Clients

Third-party programs that were tested with quire, each at its own job and in its pinned version, and how to configure them.
`bash tests/run.sh --only matrix` installs them, runs them (in a loopback-only network where the machine allows one), and writes this page.

Run on {when} against {', '.join(versions)}: {worked} of {len(known)} worked. *Worked* means that the program ended without an error, that its
answers were checked by the client itself or by its program in `tests/matrix/programs/`, and that the server refused none of its
requests. Libraries talk to SmolLM2-135M-Instruct; coding agents, whose prompts are too long for that, to the embedded model,
which knows no tools: their sessions show that requests, streams and turns are compatible, not that such a model codes.

| client | version | what it did | result |
| --- | --- | --- | --- |
{rows}

{NOTES.read_text().strip()}
"""


if __name__ == "__main__":
    PAGE.write_text(page(results()))
