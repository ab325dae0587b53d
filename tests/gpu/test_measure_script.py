"""gpu/measure.sh from start to end, with the simulated device in place of a GPU: every stage's code runs, every line keeps to the schema."""
import csv
import json
import os
import pathlib
import subprocess
import sys

import pytest

import tiny_model
from measure_stages import BUILD, ROOT, STAGES

jsonschema = pytest.importorskip("jsonschema")
pytest.importorskip("torch", reason="a stage measures with PyTorch")

SCHEMA = json.loads((pathlib.Path(__file__).parent / "measure_schema.json").read_text())

sys.path.insert(0, str(ROOT / "tools" / "gpu_measure"))
import measure as measuring  # noqa: E402


def measure(out, *args, timeout=3000, env=None):
    return subprocess.run(["bash", str(ROOT / "gpu" / "measure.sh"), "--device", "simulated", "--build", str(BUILD), "--out", str(out), *args],
                          capture_output=True, text=True, timeout=timeout, env={**os.environ, "PYTHON": sys.executable, **(env or {})})


def lines_of(out):
    lines = [json.loads(line) for line in (out / "measure.jsonl").read_text().splitlines()]
    for line in lines:
        jsonschema.validate(line, SCHEMA)
    return lines


def test_every_stage_runs_and_keeps_to_the_schema(tmp_path):
    tiny_model.save(tmp_path / "model")
    done = measure(tmp_path, "--serve-model", str(tmp_path / "model"))
    lines = lines_of(tmp_path)
    assert [line["stage"] for line in lines] == ["probe", "build", *(stage for group in STAGES.values() for stage in group)]
    assert all(line["ok"] for line in lines), [line for line in lines if not line["ok"]]
    assert {line["stage"] for line in lines if "skipped" in line} <= {"sanitizer", "transformers", *STAGES["answers"][1:4]}
    assert done.returncode == 0, done.stdout + done.stderr
    by_stage = {line["stage"]: line for line in lines}
    for stage in ("kernels", "strict"):
        assert len(by_stage[stage]["rows"]) >= 4 and all(row["ok"] for row in by_stage[stage]["rows"])
    assert [row["may_be_used"] for row in by_stage["strict"]["rows"] if "may_be_used" in row] == [True] * 4  # bf16, int8, fp8 and int4
    for stage in ("roofline", "decode tiny bf16"):  # beside this machine's own ceilings
        assert all(row["of_least"] > 0 for row in by_stage[stage]["rows"])
    assert {row["kernel"] for row in by_stage["roofline"]["rows"]} == {"linear", "attend", "norm", "act_mul"}
    parts = by_stage["gaps 1b"]["rows"][0]["parts"]
    assert parts["attend"] > 0 and parts["head, choose"] > 0
    assert by_stage["serving tiny"]["rows"][1]["tokens_per_s"] > 0
    assert by_stage["serving tiny"]["rows"][2]["what"] == "answers amid others" and by_stage["serving tiny"]["rows"][2]["different"] == 0
    table = done.stdout[done.stdout.rindex("measure.jsonl"):].splitlines()[1:]
    assert len(table) == len(lines) and len(done.stdout) < 12000


def test_a_stage_that_fails_or_outlasts_its_time_stops_no_other(tmp_path):
    broken = tmp_path / "build"
    broken.mkdir()
    program = broken / "quire_gpu_measure"
    # It does not know ceilings, fails kernels with rows, and never ends strict.
    program.write_text('#!/bin/sh\ncase "$1" in\n types) echo \'{"weights": ["bf16"]}\';;\n strict) echo \'{"row": {"what": "alone", "ok": true}}\'; sleep 60;;\n'
                       ' kernels) echo \'{"rows": [{"ok": false}], "failed": 1}\'; exit 1;;\n'
                       ' *) echo "no such stage" >&2; exit 2;;\nesac\n')
    program.chmod(0o755)
    done = subprocess.run(["bash", str(ROOT / "gpu" / "measure.sh"), "--device", "simulated", "--build", str(broken), "--out", str(tmp_path),
                           "--only", "build,ceilings,kernels,strict,roofline", "--limit", "5"],
                          capture_output=True, text=True, timeout=600, env={**os.environ, "PYTHON": sys.executable})
    lines = {line["stage"]: line for line in lines_of(tmp_path)}
    assert list(lines) == ["build", "ceilings", "strict", "kernels", "roofline"]
    assert lines["build"]["ok"] and not any(lines[stage]["ok"] for stage in ("ceilings", "kernels", "roofline", "strict"))
    assert "no such stage" in lines["ceilings"]["error"]
    assert lines["kernels"]["failed"] == 1
    assert "not finished within 5" in lines["strict"]["error"]
    assert lines["strict"]["rows"] == [{"what": "alone", "ok": True}]  # what it had said is kept
    assert done.returncode == 1


def test_what_went_well_in_an_earlier_call_is_not_done_again_and_a_group_ends_in_its_time(tmp_path):
    kept = tmp_path / "kept.jsonl"
    first = measure(tmp_path / "1", "--group", "truth", "--only", "probe,build,ceilings", "--resume", str(kept))
    assert first.returncode == 0, first.stdout + first.stderr
    assert [json.loads(line)["stage"] for line in kept.read_text().splitlines()] == ["probe", "build", "ceilings"]
    second = measure(tmp_path / "2", "--group", "truth", "--only", "ceilings,strict,kernels", "--resume", str(kept), "--deadline", "4")
    lines = {line["stage"]: line for line in lines_of(tmp_path / "2")}
    assert list(lines) == ["probe", "build", "ceilings", "strict", "kernels"]
    assert "ceilings: " not in second.stdout
    assert all("no time was left" in lines[stage]["skipped"] for stage in ("strict", "kernels"))
    assert kept.read_text() == (tmp_path / "2" / "measure.jsonl").read_text()


NULL_STAGES = [["ceilings"], ["roofline"], ["gaps", "--model", "1b"], ["gaps", "--model", "8b", "--sequences", "64"],
               ["decode", "--model", "8b"], ["decode", "--model", "8b", "--quantize", "int4", "--kv", "fp8"],
               ["decode", "--model", "1b", "--linear-warpgroups", "off"]]


@pytest.mark.parametrize("words", NULL_STAGES, ids=" ".join)
def test_stages_of_real_shapes_pass_on_a_device_that_runs_nothing(words):
    """Every size, limit and launch of them is looked at, without a GPU's time."""
    done = subprocess.run([str(BUILD / "quire_gpu_measure"), *words, "--device", "null", "--seconds", "20"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    assert json.loads(done.stdout.splitlines()[-1])["device"] == "null"


def test_a_checkpoint_that_was_drawn_is_served(tmp_path):
    import random_checkpoint
    random_checkpoint.save("tiny", tmp_path)
    done = subprocess.run([str(BUILD / "quire"), "generate", str(tmp_path), "--prompt", "any words", "--max-tokens", "4", "--device", "cpu"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-1500:]


def test_fractions_are_of_the_best_rates_seen_in_the_same_run():
    run = measuring.Measuring.__new__(measuring.Measuring)
    run.known = []
    run.lines = [{"stage": "ceilings", "rows": [{"what": "copy", "bytes_per_s": 3.0}, {"what": "copy", "bytes_per_s": 5.0},
                                                {"what": "launch", "seconds": 2.0}, {"what": "own bf16 matrix", "flops_per_s": 7.0}]},
                 {"stage": "torch ceilings", "rows": [{"what": "copy", "bytes_per_s": 4.0}, {"what": "bf16 matrices", "flops_per_s": 9.0}]}]
    assert run.rates() == ["--bytes-per-s", "5.0", "--flops-per-s", "9.0", "--launch-s", "2.0"]
    run.lines = []
    assert run.rates() == []


def test_predictions_are_those_of_the_cost_functions():
    program = BUILD / "quire_gpu_measure"
    written = subprocess.run([str(program), "predictions"], capture_output=True, text=True, check=True).stdout
    assert (ROOT / "gpu" / "predictions.csv").read_text() == written, (
        "gpu/predictions.csv is not up to date: build/release/quire_gpu_measure predictions > gpu/predictions.csv")
    rows = [dict(zip(written.splitlines()[0].split(","), line.split(","))) for line in written.splitlines()[1:]]
    head = next(row for row in rows if (row["of"], row["type"], row["rows"]) == ("8b head", "bf16", "1"))
    rounded = 2 * 4096  # a row in bf16: one kernel writes it, the next one reads it
    assert float(head["bytes"]) == 2 * 128256 * 4096 + 4 * (128256 + 4096) + 2 * rounded
    assert float(head["h200_us"]) == pytest.approx(float(head["bytes"]) / 4.3e12 * 1e6 + 3.3, abs=0.01)
    prompt = next(row for row in rows if (row["of"], row["type"], row["rows"]) == ("8b gate_up", "bf16", "256"))
    assert float(prompt["flops"]) == 2 * 256 * 28672 * 4096 + 256 * 4096  # and what rounds its rows
    assert float(prompt["h100_us"]) == pytest.approx(max(float(prompt["flops"]) / 700e12, float(prompt["bytes"]) / 2.93e12) * 1e6 + 3.3, abs=0.01)


def test_every_shape_has_the_time_that_it_is_expected_to_take_on_an_h100_and_an_h200():
    with (ROOT / "gpu" / "predictions.csv").open() as file:
        least = {measuring.shape_of(row): row for row in csv.DictReader(file)}
    h200, h100 = measuring.expected_times("NVIDIA H200"), measuring.expected_times("NVIDIA H100 80GB HBM3")
    assert set(h200) == set(h100) == set(least)
    for shape, row in least.items():  # what fits the second cache is read faster than predicted
        assert h200[shape] >= 0.8 * float(row["h200_us"]) and h100[shape] >= 0.8 * float(row["h100_us"]), shape
    assert measuring.expected_times("some other GPU") == {} == measuring.expected_times("")
