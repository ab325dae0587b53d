"""A cache of its own for each test, and the tool that pulls into it."""

import contextlib
import hashlib
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("QUIRE_BUILD_DIR", ROOT / "build" / "release"))
NOT_OURS = ("HF_", "HUGGING", "TRANSFORMERS_", "XDG_", "QUIRE_", "SSL_CERT", "REQUESTS_CA", "CURL_CA")


class Cache:
    """A directory that programs of Hugging Face take for their cache."""

    def __init__(self, root, hub):
        self.root, self.hub = pathlib.Path(root), hub
        self.more = {}

    @property
    def environment(self):
        plain = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS) and "proxy" not in name.lower()}
        return {**plain, "HOME": str(self.root / "home"), "HF_HUB_CACHE": str(self.root), "HF_ENDPOINT": self.hub.url, **self.more}

    def start(self, name, *options):
        return subprocess.Popen([BUILD / "pull_tool", name, *map(str, options)], env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def pull(self, name, *options):
        """(exit status, the snapshot or nothing, what was said)"""
        done = subprocess.run([BUILD / "pull_tool", name, *map(str, options)], env=self.environment, capture_output=True, text=True, timeout=120)
        return done.returncode, pathlib.Path(done.stdout.strip()) if done.stdout else None, done.stderr

    def quire(self, *arguments, **options):
        return subprocess.run([BUILD / "quire", *map(str, arguments)], env=self.environment, capture_output=True, text=True, timeout=120, **options)

    def folder(self, repo):
        return self.root / ("models--" + repo.replace("/", "--"))

    def has_part_of(self, repo, num_bytes):
        """True if so many bytes of a file that is still coming are there."""
        with contextlib.suppress(FileNotFoundError):  # a part that has just become a blob
            return any(path.stat().st_size >= num_bytes for path in self.folder(repo).glob("blobs/*.incomplete"))
        return False

    def files_of(self, repo, commit):
        """{path: bytes} of a snapshot, through its links."""
        snapshot = self.folder(repo) / "snapshots" / commit
        return {str(path.relative_to(snapshot)): path.read_bytes() for path in snapshot.rglob("*") if not path.is_dir()}

    def ref(self, repo, revision="main"):
        path = self.folder(repo) / "refs" / revision
        return path.read_text() if path.exists() else None

    def expect_sound(self, repo):
        """No blob without its hash, no link to nothing, no file of a half-done write that a reader would take."""
        folder = self.folder(repo)
        for blob in (folder / "blobs").glob("*"):
            if blob.name.endswith(".incomplete"):
                continue
            data = blob.read_bytes()
            hashes = {hashlib.sha256(data).hexdigest(), hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
            assert blob.name in hashes, f"{blob.name} has other bytes"
        for path in (folder / "snapshots").rglob("*"):
            if path.is_symlink():
                assert not os.readlink(path).startswith("/") and path.exists(), f"{path} leads to nothing"
            else:
                assert path.is_dir(), f"{path} is no link"
        for ref in (path for path in (folder / "refs").rglob("*") if path.is_file()):
            assert len(ref.read_bytes()) == 40


@pytest.fixture
def make_cache(tmp_path):
    def make(hub, name="hub"):
        return Cache(tmp_path / name, hub)

    return make
