"""quire bench: every mode, with the model inside the binary and small sizes: what it prints, and what it counts."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from test_cli import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}
SMALL = {
    "runner": [],
    "micro": ["--working-set", "1MiB"],
    "step": [],
    "serve": ["--streams", "1,3", "--prompt-tokens", "16", "--answer-tokens", "4"],
    "speculate": ["--streams", "1,3", "--prompt-tokens", "16", "--answer-tokens", "24"],
}


ONCE = ("runner", "micro", "step", "profile")  # nothing is counted over their runs


def bench(*args, runs=3):
    return subprocess.run(
        [str(QUIRE), "bench", *args, "--runs", str(runs)], capture_output=True, text=True, timeout=300, env=ENVIRONMENT
    )


def json_of(mode, *args):
    runs = 1 if mode in ONCE else 3
    result = bench("--mode", mode, "--json", *SMALL.get(mode, []), *args, runs=runs)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""  # nobody watches
    report = json.loads(result.stdout)
    assert report["mode"] == mode and report["runs"] == runs
    return report


def test_without_a_mode_it_is_the_runner():
    report = json.loads(bench("--json", runs=1).stdout)
    assert report["mode"] == "runner"
    assert [(row["what"], row.get("tokens") or row["sequences"]) for row in report["rows"]] == [
        ("prefill", 128), ("prefill", 512), ("decode", 1), ("decode", 8), ("decode", 32)
    ]  # fmt: skip
    assert all(row["tokens_per_s"] > 0 for row in report["rows"])


def test_micro_has_every_kernel_beside_what_the_machine_can_do():
    report = json_of("micro")
    assert report["fma_peak"] > 0 and report["read_bandwidth_median"] > 0
    rows = report["rows"]
    assert {row["kernel"] for row in rows} == {"linear", "attend", "norm", "choose"}
    assert {"f32", "bf16", "f16"} <= {row["what"] for row in rows if row["kernel"] == "linear"}
    for row in rows:
        assert row["seconds"] > 0
        assert row["part_of_bandwidth"] == pytest.approx(row["bytes_per_s"] / report["read_bandwidth_median"])
    taxes = [row for row in rows if "over_contiguous" in row]
    assert len(taxes) == 6 and {row["what"] for row in taxes} == {"scattered"}
    shared = [row for row in rows if "over_private" in row]
    assert [(row["what"], row["rows"]) for row in shared] == [("shared blocks", 8), ("shared blocks", 32)]


def test_step_is_a_table_over_rows_that_begins_with_one():
    report = json_of("step")
    rows = [row["rows"] for row in report["rows"]]
    assert rows == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512]
    assert all(row["sequences"] == min(row["rows"], 64) for row in report["rows"])
    assert report["rows"][0]["over_one_row"] == 1
    one = report["rows_of_one_sequence"]
    assert [row["rows"] for row in one] == [r for r in rows if r <= 512 - report["context_tokens"]]
    assert {row["sequences"] for row in one} == {1}


def test_profile_says_where_all_of_a_step_goes():
    # Medians of parts need not add up to the median of the whole; where nothing else keeps the machine busy they nearly do.
    tried = []
    while len(tried) < 5 and not (tried and all(0.3 < share < 3 for share in tried[-1])):
        tried.append(shares_of_steps())
    assert all(0.3 < share < 3 for share in tried[-1]), tried


def shares_of_steps():
    """The sum of a step's parts over the step, for each row of a report."""
    report = json_of("profile")
    assert [row["what"] for row in report["rows"]] == [
        "prefill, 512 tokens", "decode, 1 sequences", "decode, 8 sequences", "decode, 32 sequences"
    ]  # fmt: skip
    for row in report["rows"]:
        assert all(seconds > 0 for name, seconds in row["seconds"].items() if name != "the rest")
    return [sum(row["seconds"].values()) / row["step_seconds"] for row in report["rows"]]


def test_speculate_gets_the_same_answers_with_and_without_drafts():
    report = json_of("speculate", "--draft-alpha", "1", "--draft-cost", "0", "--draft-tokens", "3")
    assert [row["nodes"] for row in report["verify"]] == list(range(17))
    assert report["verify"][0]["over_one_row"] == 1
    assert [row["streams"] for row in report["rows"]] == [1, 3]
    for row in report["rows"]:
        assert row["same_answers"]
        assert row["none"]["tokens_per_step"] == row["none"]["over_none"] == 1
        # Every guess is right; the last step alone may have room for fewer.
        assert 3 < row["fixed"]["tokens_per_step"] <= 4
        assert 1 <= row["adaptive"]["tokens_per_step"] <= 4


def test_serve_answers_every_request_in_full():
    report = json_of("serve")
    assert [row["streams"] for row in report["rows"]] == [1, 3]
    for row in report["rows"]:
        assert row["failed"] == row["wrong"] == 0 and row["requests"] == 3 * 4
        assert row["tokens_per_s"] > 0 and 0 < row["ttft_p50_s"] <= row["ttft_p99_s"]
        assert 0 < row["gap_p50_s"] <= row["gap_p99_s"]


def test_serve_takes_requests_up_to_the_models_length_and_no_longer():
    fits = bench("--mode", "serve", "--streams", "1", "--prompt-tokens", "508", "--answer-tokens", "4")
    assert fits.returncode == 0, fits.stderr
    too_long = bench("--mode", "serve", "--prompt-tokens", "509", "--answer-tokens", "4")
    assert too_long.returncode == 2 and "the maximum of this model is 512 tokens together" in too_long.stderr


def test_serve_runs_random_weights_behind_the_whole_engine():
    report = json_of("serve", "--random-shape", "135m", "--requests", "1", "--streams", "1")
    assert "134.5 M parameters" in report["model"] and report["rows"][0]["requests"] == 3


def test_compare_of_a_server_with_itself_counts_the_same_answers():
    with Server() as server:
        report = json_of("compare", "--url", server.url, "--url", server.url + "/", "--streams", "1,5",
                         "--prompt-tokens", "20", "--answer-tokens", "6")  # fmt: skip
    for row in report["rows"]:
        for seen in row["servers"]:
            assert seen["failed"] == seen["wrong"] == 0
            assert seen["requests"] == 3 * max(4, row["streams"])
            assert seen["asked_again"] == 3 and seen["changed"] == 0
        assert set(row["ratios"]) >= {"tokens_per_s", "ttft_p50_s", "gap_p99_s"}


def test_compare_at_a_rate_sends_as_many_as_requested():
    with Server() as server:
        report = json_of("compare", "--url", server.url, "--url", server.url, "--rate", "200", "--requests", "10",
                         "--prompt-tokens", "20", "--answer-tokens", "6")  # fmt: skip
    (row,) = report["rows"]
    assert [seen["requests"] for seen in row["servers"]] == [30, 30]


def test_compare_counts_what_a_server_refuses_and_says_why():
    with Server() as server, Server("--max-queue", "1", "--max-num-seqs", "1") as narrow:
        result = bench("--mode", "compare", "--json", "--url", server.url, "--url", narrow.url, "--streams", "8",
                       "--prompt-tokens", "20", "--answer-tokens", "100")  # fmt: skip
    assert result.returncode == 1
    (row,) = json.loads(result.stdout)["rows"]
    assert row["servers"][0]["failed"] == 0 and row["servers"][1]["failed"] > 0
    assert "answered 429" in row["servers"][1]["why"] and "answered 429" in result.stderr


def test_compare_says_which_server_is_not_there():
    result = bench("--mode", "compare", "--url", "http://127.0.0.1:1", "--url", "http://127.0.0.1:2")
    assert result.returncode == 2 and "http://127.0.0.1:1" in result.stderr and result.stdout == ""


def test_text_has_a_line_for_each_figure():
    result = bench("--mode", "serve", *SMALL["serve"])
    assert result.returncode == 0 and re.search(r"^ +1 .*\n +3 ", result.stdout, re.MULTILINE)
