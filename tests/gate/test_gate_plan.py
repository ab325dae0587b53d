"""Which stages and tests a run of tests/run.sh chooses, and what it says of the others."""

import subprocess

import pytest

import changes
import gate
import outcome
import stages

LAYERS = {"core/base": [], "core/kv": ["core/base"], "core/engine": ["core/kv", "core/base"], "api": ["core/base"],
          "gpu": ["core/base"], "gpu/simulated": ["gpu"]}


def test_every_slow_stage_has_a_turn():
    assert sorted(name for turn in stages.TURNS for name in turn) == sorted(stages.SLOW)
    assert len(stages.TURNS) == 3


def repository(folder, commits):
    """A repository whose commits change one file each, the last one `changed` (path), long behind the others."""
    def git(*words, when=0):
        dates = {"GIT_AUTHOR_DATE": f"{1000000000 + when} +0000", "GIT_COMMITTER_DATE": f"{1000000000 + when} +0000"}
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True, capture_output=True,
                       env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **dates})
    git("init", "-q", ".")
    for number, path in enumerate(commits):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(str(number))
        git("add", "-A")
        git("commit", "-qm", path, when=number * 7 * 3600)
    return folder


@pytest.mark.parametrize("commits", [3, 4, 5])
def test_the_turn_is_the_commit_count_modulo_three_and_what_stays_out_is_named(tmp_path, commits):
    root = repository(tmp_path, [f"docs/{i}.md" for i in range(commits)])
    said = []
    found = outcome.Outcome(said.append)
    chosen = gate.stages_of_gate(root, found)
    turn = stages.TURNS[commits % 3]
    assert list(chosen) == [*stages.NORMAL, *(name for name in stages.SLOW if name in turn)]
    assert len(found.not_run) == len(stages.SLOW) - len(turn)
    assert f"commit {commits} is {' and '.join(turn)}'s turn" in said[0]


@pytest.mark.parametrize("path, stage", [("api/http/session.cc", "clients"), ("core/grammar/rules/rules.cc", "fuzz"), ("helm/quire/values.yaml", "heavy"), ("gpu/kernels/rows.h", "kernels"),
                                         ("core/kv/pool.cc", "tidy")])
def test_the_stage_of_a_changed_area_runs_whatever_the_turn(tmp_path, path, stage):
    for commits in range(3):
        folder = tmp_path / str(commits)
        folder.mkdir()
        root = repository(folder, [*(f"docs/{i}.md" for i in range(commits + 2)), path])
        assert stage in gate.stages_of_gate(root, outcome.Outcome(lambda text: None))


def test_only_changed_sources_are_tidied_out_of_turn(tmp_path):
    root = repository(tmp_path, ["docs/1.md", "core/kv/old.cc", "core/kv/pool.cc"])  # three commits: clients' turn
    assert gate.stages_of_gate(root, outcome.Outcome(lambda text: None))["tidy"] is stages.tidy_changed
    assert changes.tidied(changes.changed_files(root, changes.start_of_change(root))) == ["core/kv/pool.cc"]


def test_a_changed_layer_brings_its_own_tests_first_then_those_above_it():
    assert changes.binaries_of(["core/kv/pool.cc"], LAYERS) == ["core_kv_test", "core_engine_test"]
    assert changes.binaries_of(["tests/core/engine/step_test.cc"], LAYERS) == ["core_engine_test"]
    assert changes.binaries_of(["gpu/simulated/x.cc"], LAYERS) == ["gpu_test"]
    assert changes.binaries_of(["tests/sim/world.cc"], LAYERS) == ["sim_test"]
    assert changes.binaries_of(["README.md", "api/openapi.json"], LAYERS) == []


def test_every_layer_of_the_tree_has_a_binary_of_its_top():
    layers = changes.read_layers((gate.pathlib.Path(__file__).parents[2] / "layers.txt").read_text())
    assert {changes.binary_of(layer) for layer in layers} >= {"core_kv_test", "api_test", "app_test", "tools_test", "gpu_test"}


def test_python_tests_are_chosen_by_their_names_and_by_their_support(tmp_path):
    for name in ("tests/wire/test_embeddings.py", "tests/wire/test_requests.py", "tests/wire/test_completions.py", "tests/deploy/test_chart.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    def choose(*files):
        return changes.python_tests_of(list(files), tmp_path)
    assert choose("api/openai/embeddings.cc") == ["tests/wire/test_embeddings.py", *changes.SMOKE]
    assert choose("tests/deploy/helper.py") == ["tests/deploy/test_chart.py"]
    assert choose("helm/quire/values.yaml") == ["tests/deploy/test_chart.py"]
    assert choose("docs/api.md") == []


@pytest.mark.parametrize("words, said", [(["--only", "nothing"], "no stage nothing"), (["--until-minute"], "needs a number"),
                                         (["--until-minute", "x"], "needs a number"), (["--fast"], "unknown argument --fast")])
def test_a_wrong_command_line_is_refused(words, said, capsys):
    assert gate.main(words) == 2
    assert said in capsys.readouterr().err


def test_only_without_a_name_lists_the_stages(capsys):
    assert gate.main(["--only"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*stages.NORMAL, *stages.SLOW, *stages.ALONE]


def test_a_stage_that_is_named_alone_has_no_turn_and_no_place_in_other_runs():
    assert not stages.ALONE.keys() & {*stages.NORMAL, *stages.SLOW, *(name for turn in stages.TURNS for name in turn)}
    assert not stages.ALONE.keys() & gate.ALL.keys() and gate.Options(["--only", "matrix"]).only == ["matrix"]


@pytest.mark.parametrize("has_venv", [True, False])
def test_the_first_run_of_a_clone_builds_while_packages_come(has_venv):
    class Run:
        class checks:
            begun = 0

            @staticmethod
            def has_venv():
                return has_venv

            @classmethod
            def begin_venv(cls):
                cls.begun += 1

    begun = 0 if has_venv else 1
    assert list(gate.in_order(Run, stages.NORMAL))[0] == ("law" if has_venv else "release")
    assert sorted(gate.in_order(Run, stages.NORMAL)) == sorted(stages.NORMAL) and Run.checks.begun == 2 * begun
    Run.checks.begun = 0
    assert list(gate.in_order(Run, {"unit": stages.unit})) == ["unit"] and Run.checks.begun == 0
