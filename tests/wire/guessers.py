"""What some methods of speculation guess from, made for the embedded model: draft heads at random, and a datastore of some text."""

import subprocess

from conftest import BINARY, PATIENCE_S, ROOT
from random_heads import write_eagle, write_hydra


def write_guessers(folder, text):
    """Into `folder`: eagle and hydra, directories of heads, and store, a datastore of `text`."""
    for name, write in (("eagle", write_eagle), ("hydra", lambda directory: write_hydra(directory, prefix=True))):
        (folder / name).mkdir()
        write(folder / name)
    (folder / "text.txt").write_text(text)
    command = [BINARY, "build-datastore", "--model", ROOT / "models" / "stories", "--text", folder / "text.txt", "--output", folder / "store"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
