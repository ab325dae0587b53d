"""`quire key`: a secret told once, and the line that the server knows it by."""

import hashlib
import os
import pathlib
import re
import stat
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release")) / "quire"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}


def key(*args):
    return subprocess.run([str(QUIRE), "key", *args], capture_output=True, text=True, timeout=120, env=ENVIRONMENT)


def hash_of(secret):
    return "hash=sha256:" + hashlib.sha256(secret.encode()).hexdigest()


def test_it_prints_the_key_and_the_line_with_its_hash():
    made = key("--name", "alice", "--max-running", "4", "--tokens-per-minute", "60000", "--tenant", "team")
    assert made.returncode == 0, made.stderr
    secret, line = made.stdout.splitlines()
    assert re.fullmatch("qk-[0-9a-f]{64}", secret)
    assert line == f"name=alice {hash_of(secret)} role=user max_running=4 tokens_per_minute=60000 tenant=team"
    assert secret not in made.stderr


def test_it_writes_a_weight_from_1_to_1000():
    for weight, told in (("1", ""), ("2", " weight=2"), ("999", " weight=999"), ("1000", " weight=1000")):
        secret, line = key("--name", "a", "--weight", weight).stdout.splitlines()
        assert line == f"name=a {hash_of(secret)} role=user{told}"
    for weight in ("0", "1001", "x"):
        assert "--weight" in key("--name", "a", "--weight", weight).stderr


def test_no_two_keys_are_the_same():
    assert key("--name", "a").stdout.splitlines()[0] != key("--name", "a").stdout.splitlines()[0]


def test_it_appends_to_a_file_that_it_keeps_to_its_owner(tmp_path):
    path = tmp_path / "keys"
    first = key("--name", "alice", "--admin", "--file", str(path))
    assert first.returncode == 0, first.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(path.read_text() + "# bob is next", newline="")  # without an end of line
    second = key("--name", "bob", "--file", str(path))
    assert second.returncode == 0, second.stderr
    (secret,), (other,) = first.stdout.splitlines(), second.stdout.splitlines()
    assert path.read_text() == (
        f"name=alice {hash_of(secret)} role=admin\n# bob is next\nname=bob {hash_of(other)} role=user\n")


def test_a_file_that_would_not_be_read_is_left_alone(tmp_path):
    path = tmp_path / "keys"
    assert key("--name", "alice", "--file", str(path)).returncode == 0
    before = path.read_text()
    again = key("--name", "alice", "--file", str(path))
    assert again.returncode == 2 and "line 2: name: alice is already the name of line 1" in again.stderr and again.stdout == ""
    assert path.read_text() == before
    path.write_text("nonsense\n")
    assert key("--name", "bob", "--file", str(path)).returncode == 2
    assert path.read_text() == "nonsense\n"


def test_a_file_that_cannot_be_written_is_reported():
    refused = key("--name", "alice", "--file", "/no/such/directory/keys")
    assert refused.returncode == 2 and "/no/such/directory/keys" in refused.stderr and refused.stdout == ""
