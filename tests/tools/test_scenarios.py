"""quire bench --scenario: what goes to which stream and to the file, and that docs/scenarios.md says what it finds."""

import csv
import functools
import importlib.util
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
STEPS = ["utilisation", "waste", "preemption", "policies"]  # the same on every machine
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}


def scenario(name, *args):
    """As it runs now."""
    return subprocess.run(
        [str(QUIRE), "bench", "--scenario", name, *args], capture_output=True, text=True, timeout=300, env=ENVIRONMENT
    )


@functools.cache
def found(name):
    """As it ran the first time: it is the same every time, which test_the_file_gets_the_same_text holds one of them to."""
    return scenario(name)


@pytest.mark.parametrize("name", STEPS)
def test_a_scenario_writes_csv_to_standard_output_and_its_summary_elsewhere(name):
    result = found(name)
    assert result.returncode == 0, result.stderr
    rows = list(csv.reader(result.stdout.splitlines()))
    assert len(rows) > 5 and {len(row) for row in rows} == {len(rows[0])}
    assert result.stderr and "\r" not in result.stderr and "\033" not in result.stderr  # nobody watches


def test_the_file_gets_the_same_text(tmp_path):
    file = tmp_path / "out.csv"
    result = scenario("utilisation", "--csv", str(file))
    assert result.returncode == 0 and result.stdout == ""
    assert file.read_text() == found("utilisation").stdout


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    result = scenario("max-batch", "--csv", str(tmp_path / "no" / "out.csv"))
    assert result.returncode == 2 and "out.csv: cannot be written" in result.stderr


def test_an_unknown_scenario_gets_the_list_of_scenarios():
    result = scenario("nothing")
    assert result.returncode == 2
    assert "expected one of utilisation, waste, max-batch, preemption, policies, prefix" in result.stderr


# ---- docs/scenarios.md


def report():
    spec = importlib.util.spec_from_file_location("report", ROOT / "loadtest" / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", STEPS)
def test_the_figures_in_docs_are_what_the_scenario_finds(name):
    assert (ROOT / "docs" / "scenarios" / f"{name}.csv").read_text() == found(name).stdout, "loadtest/run_scenarios.sh --steps-only"


def test_the_tables_in_docs_are_made_of_the_figures():
    page = (ROOT / "docs" / "scenarios.md").read_text()
    assert report().with_tables(page) == page, "loadtest/report.py --tables-only"
    assert sorted(re.findall(r"<!-- table ([\w-]+) -->", page)) == sorted(report().TABLES)


def test_every_plot_is_there_and_shown():
    page = (ROOT / "docs" / "scenarios.md").read_text()
    for name in report().PLOTS:
        assert f"(scenarios/{name}.png)" in page
        assert 0 < (ROOT / "docs" / "scenarios" / f"{name}.png").stat().st_size < 60_000


def test_google_benchmarks_json_becomes_a_csv_that_names_no_machine(tmp_path):
    module = report()
    module.FIGURES = tmp_path
    medians = {"run_name": "Engine/sequences:64/prefix_cache:1", "aggregate_name": "median", "real_time": 5.31234, "time_unit": "us"}
    means = medians | {"aggregate_name": "mean", "real_time": 9}
    written = tmp_path / "out.json"
    written.write_text(json.dumps({"context": {"host_name": "somebody"}, "benchmarks": [means, medians]}))
    module.take_step_cost(written)
    assert (tmp_path / "step-cost.csv").read_text() == "benchmark,sequences,prefix_cache,median_us\nEngine,64,1,5.312\n"
