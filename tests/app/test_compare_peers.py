"""loadtest/compare_peers.py and checkpoints.py: what is made, what is asked for, and that docs/performance.md says it."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "loadtest" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


checkpoints = load("checkpoints")
peers = load("compare_peers")
SMALL = checkpoints.shape(checkpoints.LLAMA, 64, 96, 2, 4, 2, 32, 1100, 10000)
SMALL_QWEN = checkpoints.shape(checkpoints.QWEN, 64, 96, 2, 4, 2, 32, 1100, 10000)


@pytest.mark.parametrize("config", [SMALL, SMALL_QWEN])
def test_quire_runs_the_directory(tmp_path, config):
    checkpoints.write_directory(config, tmp_path)
    seen = subprocess.run([str(QUIRE), "inspect", "--json", "--tensors", str(tmp_path)], capture_output=True, text=True)
    assert seen.returncode == 0, seen.stderr
    names = {tensor["name"] for tensor in json.loads(seen.stdout)["tensors"]}
    assert names == {name for name, _ in checkpoints.tensors(config)}
    said = subprocess.run(
        [str(QUIRE), "generate", str(tmp_path), "--prompt", "a", "--max-tokens", "4", "--temperature", "0"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert said.returncode == 0 and "[4 tokens" in said.stderr, said.stderr


def test_values_are_bf16_and_the_same_every_time():
    drawn = checkpoints.values(3, (50, 40))
    assert (drawn.view(np.uint32) & 0xFFFF == 0).all()
    assert (drawn == checkpoints.values(3, (50, 40))).all() and (drawn != checkpoints.values(4, (50, 40))).any()
    assert abs(drawn).max() <= 0.0401 and abs(drawn.mean()) < 0.01


def test_answers_are_words_and_nothing_else(tmp_path):
    embedding = checkpoints.values(0, (300, 8))
    assert 0 < abs(embedding[:257]).max() < 0.001 < abs(embedding[257:]).max(axis=1).min()
    checkpoints.write_directory(SMALL, tmp_path)
    said = subprocess.run(
        [str(QUIRE), "generate", str(tmp_path), "--prompt", "abc", "--max-tokens", "20", "--temperature", "0"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert re.fullmatch(r"(t\d+){20}\n", said.stdout)


def test_the_vocabulary_has_every_byte_once():
    words = checkpoints.vocabulary(300)
    assert len(words) == len(set(words)) == 300
    assert words[1 + ord("a")] == "a" and words[1 + ord(" ")] == "Ġ"


def test_llama_rows_are_stored_as_llama_cpp_turns_them():
    rows = np.arange(8, dtype=np.float32).reshape(8, 1)  # two heads of four: halves 0 1 | 2 3
    assert checkpoints.pairs_side_by_side(rows, 2).ravel().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize("kind", checkpoints.GGUF_TYPES)
def test_a_gguf_file_has_every_tensor_in_its_type(tmp_path, kind):
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "a.gguf"
    checkpoints.write_gguf(SMALL, path, kind)
    reader = gguf.GGUFReader(path)
    types = {tensor.name: tensor.tensor_type.name.lower() for tensor in reader.tensors}
    assert len(types) == len(list(checkpoints.tensors(SMALL)))
    assert types["blk.1.ffn_down.weight"] == kind and types["output_norm.weight"] == "f32"
    assert types["token_embd.weight"] == ("q8_0" if kind == "q4_0" else kind)


# ---- what is asked for


def arguments(*words):
    args = peers.arguments(list(words))
    return args


def test_every_server_holds_the_longest_sequence_of_its_case():
    args = arguments()
    for cases in peers.CASES.values():
        for case in cases:
            ours = peers.quire_command(args, pathlib.Path("d"), case, 1, "q8_0")
            assert int(ours[ours.index("--max-model-len") + 1]) == case.prompt + case.answer
            assert int(ours[ours.index("--max-num-seqs") + 1]) == max(case.streams)
            assert ours[ours.index("--quantize") + 1] == "w8a8"
            llama = peers.llama_command(args, pathlib.Path("d"), case, 1, "q8_0")
            assert int(llama[llama.index("--slot-tokens") + 1]) >= case.prompt + case.answer
            assert ("--prompt-cache" in llama) == (case.shared > 0)


def test_bf16_is_never_quantized():
    assert "--quantize" not in peers.quire_command(arguments(), pathlib.Path("d"), peers.CASES["decode"][0], 1, "bf16")


def test_activations_are_rounded_beside_bf16_where_that_is_asked_for():
    plain = [peer[:2] for peer in peers.peers_of(arguments())]
    both = [peer[:2] for peer in peers.peers_of(arguments("--quire-bf16", "w16a16"))]
    assert [peer for peer in both if peer not in plain] == [
        ("llama.cpp bf16, quire w16a16", "w16a16"), ("vLLM bfloat16, quire w16a16", "w16a16")]
    assert [peer for peer in both if peer in plain] == plain
    case = peers.CASES["decode"][0]
    ours = peers.quire_command(arguments(), pathlib.Path("d"), case, 1, "w16a16")
    assert ours[ours.index("--quantize") + 1] == "w16a16"
    assert "d/bf16.gguf" in peers.llama_command(arguments(), pathlib.Path("d"), case, 1, "w16a16")


def test_a_peer_that_is_not_there_gets_rows_without_figures():
    args = arguments("--peers", "bf16")
    vllm = [peer for peer in peers.peers_of(args) if peer[0].startswith("vLLM")]
    assert len(vllm) == 2
    rows = list(peers.measure(args, "135m", "decode", peers.CASES["decode"][0], vllm[0]))
    assert [row["streams"] for row in rows] == [1, 8, 32]
    assert all("not installed" in row["status"] and "tokens_per_s_ratio" not in row for row in rows)


def test_a_peer_that_does_not_start_gets_rows_that_say_so_and_leaves_nothing_running(tmp_path):
    args = arguments("--streams", "8", "--work", str(tmp_path), "--quire", str(QUIRE))
    checkpoints.write_directory(SMALL, tmp_path / "small")
    peer = ("a peer", "bf16", lambda *_: ["sh", "-c", "echo no; exit 1"], {}, None)
    case = peers.Case((1, 8), 16, 4)
    (row,) = peers.measure(args, "small", "decode", case, peer)
    assert row["streams"] == 8 and row["status"] == "not measured: ended with 1: no"
    assert not subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True).stdout


def test_quire_beside_itself_is_measured_in_full(tmp_path):
    args = arguments("--work", str(tmp_path), "--quire", str(QUIRE))
    checkpoints.write_directory(SMALL, tmp_path / "small")
    peer = ("quire", "bf16", peers.quire_command, {}, None)
    rows = list(peers.measure(args, "small", "decode", peers.Case((1, 3), 16, 4), peer))
    assert [row["streams"] for row in rows] == [1, 3]
    for row in rows:
        assert row["status"] == "measured" and row["quire_bad"] == row["peer_bad"] == 0, row
        assert row["quire_changed"] == row["peer_changed"] == "0 of 3"
        assert row["peer_rss_mib"] > 1


def test_a_server_that_ends_is_reported_with_its_last_words(tmp_path):
    with pytest.raises(RuntimeError, match="ended with 3: no such model"):
        peers.Server(["sh", "-c", "echo no such model; exit 3"], 1, tmp_path / "log")


# ---- what is written

SERVER = {"tokens_per_s": 30.0, "ttft_p50_s": 0.1, "gap_p50_s": 0.01, "gap_p99_s": 0.02, "first_ttft_s": 0.1,
          "requests": 12, "failed": 0, "wrong": 0, "asked_again": 3, "changed": 0, "client_cpu": 0.05}  # fmt: skip


class Run:
    def __init__(self, ready_s, mib):
        self.ready_s, self.mib = ready_s, mib

    def rss_mib(self):
        return self.mib


def test_rows_keep_ours_and_theirs_apart():
    report = {"rows": [{
        "streams": 8, "servers": [SERVER, SERVER | {"tokens_per_s": 10.0, "wrong": 1, "failed": 1, "why": "answered 500"}],
        "ratios": {"tokens_per_s": 3.0, "ttft_p50_s": 1.0, "gap_p50_s": 1.0, "gap_p99_s": 1.0},
    }]}  # fmt: skip
    fixed = {"shape": "135m", "case": "decode", "prompt_tokens": 128, "answer_tokens": 64, "peer": "llama.cpp bf16"}
    (row,) = peers.rows_of(report, Run(1.0, 100.0), Run(2.0, 50.0), fixed)
    assert set(row) <= set(peers.COLUMNS)
    assert (row["quire_tokens_per_s"], row["peer_tokens_per_s"], row["tokens_per_s_ratio"]) == (30.0, 10.0, 3.0)
    assert (row["quire_bad"], row["peer_bad"], row["peer_why"]) == (0, 2, "answered 500")
    line = peers.table([row]).splitlines()[-1]
    assert "3.00×" in line and "0 / 2" in line
    assert peers.servers_table([row, row]).splitlines()[2:] == [
        "| 135m | llama.cpp bf16 | 1.00 | 2.00 | 2.00× | 100 | 50 | 0.50× |"
    ]
    missing = peers.table([fixed | {"streams": 1, "status": "not installed"}]).splitlines()
    assert "not installed" in missing[-1]
    assert {text.count("|") for text in missing} == {missing[0].count("|")}


def test_the_table_in_docs_is_made_of_the_figures():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert peers.with_table(page, peers.read_rows()) == page, "loadtest/compare_peers.py --tables-only"
