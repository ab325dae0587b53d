"""The scripts that the chart runs in pods, against the real server: what `helm test` asks, and what makes it read Secrets again."""

import contextlib
import os
import pathlib
import re
import ssl
import subprocess
import time

import pytest

from deploy_tools import BINARY, CHART, need

ASK = CHART / "files" / "ask_for_one_token.sh"
RELOAD = CHART / "files" / "reload_secrets.sh"
PATIENCE_S = 120


def port_of(server):
    return int(next(match[1] for line in server.stdout if (match := re.search(r"https?://127\.0\.0\.1:(\d+)", line))))


@contextlib.contextmanager
def serving(*flags, **environment):
    """The port of a server."""
    server = subprocess.Popen([BINARY, "serve", "--port", "0", "--threads", "1", *flags], stdout=subprocess.PIPE, text=True,
                              env=os.environ | environment)
    try:
        yield port_of(server)
    finally:
        server.terminate()
        server.communicate(timeout=PATIENCE_S)


def ask(port, *trust, **environment):
    return subprocess.run(["bash", ASK, "localhost", str(port), *trust], capture_output=True, text=True, timeout=PATIENCE_S,
                          env=os.environ | environment)


def make_pair(folder, name):
    """A certificate for localhost that signs itself, and its key, as the Secret's files are called."""
    need("openssl")
    folder.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", folder / "tls.key", "-out", folder / "tls.crt", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return folder


def test_the_hook_gets_a_token_or_fails():
    with serving() as port:
        good = ask(port)
        assert good.returncode == 0, good.stdout + good.stderr
    assert ask(port).returncode != 0, "nobody listens there any more"


@pytest.mark.parametrize("key, code", [("a-key-of-users", 0), ("another-key", 1), ("", 1)])
def test_the_hook_shows_its_key(key, code):
    with serving(QUIRE_API_KEY="a-key-of-users") as port:
        asked = ask(port, KEY=key)
        assert asked.returncode == code, asked.stdout + asked.stderr


def test_the_hook_under_tls_takes_the_certificate_it_was_given_and_no_other(tmp_path):
    own, other = make_pair(tmp_path / "own", "own"), make_pair(tmp_path / "other", "other")
    with serving("--tls-cert", own / "tls.crt", "--tls-key", own / "tls.key") as port:
        good = ask(port, own / "tls.crt")
        assert good.returncode == 0, good.stdout + good.stderr
        assert ask(port, other / "tls.crt").returncode != 0
        assert ask(port, "-").returncode == 0
        assert ask(port).returncode != 0, "plain HTTP gets no token"


class Secret:
    """A directory as the kubelet mounts a Secret: names lead through ..data, which a change replaces at once."""

    def __init__(self, home):
        self.home = home
        home.mkdir()

    def hold(self, folder):
        new = self.home / "..new"
        new.symlink_to(folder)
        new.rename(self.home / "..data")
        for path in folder.iterdir():
            if not (self.home / path.name).is_symlink():
                (self.home / path.name).symlink_to(pathlib.Path("..data") / path.name)


def shown(port):
    """The name in the certificate that a new connection is shown."""
    text = ssl.get_server_certificate(("127.0.0.1", port), timeout=PATIENCE_S)
    return subprocess.run(["openssl", "x509", "-noout", "-subject"], input=text, capture_output=True, text=True, check=True).stdout.split("=")[-1].strip()


def pod():
    """What puts a command into a process namespace of its own, as in a pod: signals sent there reach nobody else."""
    need("unshare")
    apart = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody make a process namespace")
    return apart


def test_a_renewed_secret_is_served_without_a_restart(tmp_path):
    first, second = make_pair(tmp_path / "first", "first"), make_pair(tmp_path / "second", "second")
    keys = tmp_path / "keys-of-all"
    keys.mkdir()
    (keys / "keys").write_text("# nobody yet\n")
    tls, auth = Secret(tmp_path / "tls"), Secret(tmp_path / "auth")
    tls.hold(first)
    auth.hold(keys)
    together = '"$1" serve --port 0 --threads 1 --tls-cert "$2/tls.crt" --tls-key "$2/tls.key" & exec bash "$4" 0.1 "$3" "$2"'
    beside = subprocess.Popen([*pod(), "bash", "-c", together, "bash", BINARY, tls.home, auth.home, RELOAD], stdout=subprocess.PIPE, text=True)
    try:
        port = port_of(beside)
        assert shown(port) == "first"
        tls.hold(second)
        end = time.monotonic() + PATIENCE_S
        while shown(port) != "second":
            assert time.monotonic() < end
            time.sleep(0.05)
        assert next(line for line in beside.stdout if "sent SIGHUP" in line)
    finally:
        beside.kill()  # --kill-child: the namespace's first process goes with it, and with that one all others
        beside.communicate(timeout=PATIENCE_S)


def test_a_secret_that_stays_disturbs_nobody(tmp_path):
    secret = Secret(tmp_path / "tls")
    secret.hold(make_pair(tmp_path / "first", "first"))
    done = subprocess.run([*pod(), "timeout", "0.5", "bash", RELOAD, "0.05", secret.home], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (124, "", "")
