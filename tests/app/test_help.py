"""The pages of help on terminals of several widths, and their examples."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

from quire_program import ENVIRONMENT, PATIENCE_S, commands, quire, run


def help_on_terminal(columns, *args):
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(["quire", *args], stdout=other, env=ENVIRONMENT)
    os.close(other)
    said = b""
    try:
        while chunk := os.read(main, 65536):
            said += chunk
    except OSError:  # the other end is closed
        pass
    os.close(main)
    assert process.wait(PATIENCE_S) == 0
    return said.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_keeps_to_the_width_of_the_terminal_and_has_no_colours(columns):
    pages = [["--help"], ["serve", "--help=all"], ["bench", "--help"], *([command, "--help"] for command in commands())]
    for args in pages:
        page = help_on_terminal(columns, *args)
        assert max(map(len, page.splitlines())) <= columns, args
        assert page.split() == quire(*args).split(), args
        assert "\x1b" not in page
    assert max(map(len, help_on_terminal(200, "serve", "--help=all").splitlines())) > 120


def test_without_a_terminal_help_has_80_columns():
    assert 70 < max(map(len, quire("serve", "--help=all").splitlines())) <= 80


def test_every_command_shows_three_examples():
    for command in set(commands()) - {"help", "version"}:
        page = quire(command, "--help")
        examples = page[page.index("Examples:") : page.index("Options:")]
        assert len(re.findall(r"^  \S", examples, re.MULTILINE)) == 3, command


def test_examples_that_need_no_download_run(tmp_path):
    (tmp_path / "a.txt").write_text("Once upon a time there was a small cat. " * 20)
    page = "".join(quire(command, "--help") for command in commands())
    ready = {
        "quire generate stories 'Once upon a time'",
        "quire generate stories --prompt-file a.txt --seed 1",
        "quire models",
        "quire models | grep -i qwen",
        "quire models --help",
        "quire list",
        "quire list --names",
        "quire list --json",
        "quire build-datastore --text a.txt --output a.ds",
        "quire key --name alice",
        "quire key --name bob --max-running 8 --file keys",
        "quire key --name prometheus --role monitor",
        "source <(quire completion bash)",
    }
    for line in sorted(ready):
        assert f"  {line}\n" in page
        result = run("bash", "-c", line, cwd=tmp_path)
        assert result.returncode == 0, (line, result.stderr)
    assert (tmp_path / "a.ds").exists() and (tmp_path / "keys").read_text().startswith("name=bob ")
