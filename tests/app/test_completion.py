"""The completion scripts in the shells that read them."""

import os
import pty
import select
import shutil
import time

import pytest

from quire_program import ENVIRONMENT, PATIENCE_S, commands, quire, run

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        (folder / shell).write_text(quire("completion", shell))
    return folder


@pytest.fixture
def bash(scripts, tmp_path):
    """The words that bash offers for the last of `words`, in a directory with a file and a folder."""
    (tmp_path / "a model.gguf").touch()
    (tmp_path / "folder").mkdir()
    cache = tmp_path / "hub"
    (cache / "models--acme--tiny" / "snapshots" / ("0" * 40)).mkdir(parents=True)

    def offered(*words):
        line = " ".join(f"'{word}'" for word in ("quire", *words))
        script = (
            f"source {scripts / 'bash'}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; compopt() {{ :; }}; "
            '_quire; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        result = run("bash", "--norc", "-c", f"export HF_HUB_CACHE={cache}; {script}", cwd=tmp_path)
        assert result.returncode == 0 and result.stderr == "", result.stderr
        return result.stdout.split("\n")[:-1]

    return offered


# ---- bash


def test_bash_offers_every_command(bash):
    assert set(bash("")) == {*commands(), "--help", "--version"}
    assert bash("bu") == ["build-datastore"]
    assert set(bash("help", "")) == set(commands()) - {"help", "version"}
    assert bash("completion", "") == ["bash", "zsh", "fish"]


def test_bash_offers_every_flag_of_every_command(bash):
    for command in set(commands()) - {"help", "version"}:
        flags = quire(command, "--help=flags").split()
        assert "--help" in flags and bash(command, "--") == flags, command
    assert bash("serve", "--kv-cache-m") == ["--kv-cache-memory"]


def test_bash_offers_the_choices_of_a_flag(bash):
    assert bash("serve", "--kv-cache-dtype", "") == ["auto", "f32", "bf16", "fp8", "int8", "int4"]
    assert bash("serve", "--kv-cache-dtype", "=", "i") == ["int8", "int4"]
    assert bash("serve", "--kv-cache-dtype", "=") == ["auto", "f32", "bf16", "fp8", "int8", "int4"]
    assert bash("key", "--role", "a") == ["admin"]
    assert bash("serve", "--port", "") == [""]


def test_bash_offers_files_directories_and_downloaded_models(bash):
    assert bash("serve", "--tls-cert", "a") == ["a model.gguf"]
    assert set(bash("serve", "--cache-dir", "")) == {"folder", "hub"}
    assert set(bash("serve", "")) == {"a model.gguf", "folder", "hub", "stories", "acme/tiny"}
    assert bash("chat", "--model", "ac") == ["acme/tiny"]
    assert bash("list", "") == [""]


def test_bash_completes_a_typed_line(scripts, tmp_path):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], ENVIRONMENT | {"PS1": "ready> "})
    try:
        said = read_until(fd, b"ready> ")
        os.write(fd, f"source {scripts / 'bash'}\n".encode())
        said = read_until(fd, b"ready> ")
        os.write(fd, b"quire serve --kv-cache-dt\t=fp\t")
        said = read_until(fd, b"=fp8")
        assert b"quire serve --kv-cache-dtype" in said
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(fd)


def read_until(fd, end):
    said = b""
    deadline = time.monotonic() + PATIENCE_S
    while end not in said:
        assert select.select([fd], [], [], deadline - time.monotonic())[0], said
        said += os.read(fd, 4096)
    return said


# ---- the other shells


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_has_the_shells_syntax(shell, scripts):
    assert shutil.which(shell), f"{shell} is missing: deploy/install_packages.sh test"
    result = run(shell, "-n", str(scripts / shell))
    assert result.returncode == 0 and result.stderr == ""


def test_zsh_defines_the_completion_of_quire(scripts):
    script = f"autoload -Uz compinit; compinit -D -u; source {scripts / 'zsh'}; print $_comps[quire]"
    result = run("zsh", "-f", "-c", script)
    assert (result.returncode, result.stdout, result.stderr) == (0, "_quire\n", "")


def test_fish_offers_commands_flags_choices_and_directories(scripts, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()

    def offered(line):
        result = run("fish", "--no-config", "-c", f"source {scripts / 'fish'}; complete -C '{line}'", cwd=tmp_path)
        assert result.returncode == 0 and result.stderr == "", result.stderr
        return [row.split("\t")[0] for row in result.stdout.splitlines()]

    assert set(commands()) <= set(offered("quire "))
    assert set(quire("serve", "--help=flags").split()) <= set(offered("quire serve --"))
    assert "--mode" in offered("quire bench --mo")
    assert offered("quire serve --kv-cache-dtype fp") == ["fp8"]
    assert offered("quire serve --cache-dir ") == ["folder/"]
    assert "file" in offered("quire serve --tls-cert ")
    assert "stories" in offered("quire serve st")
