"""TLS of the real server, as clients meet it: versions, pairs that are renewed or refused, streams, and who leaves."""

import concurrent.futures
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import httpx2
import pytest

from conftest import BINARY, PACED, PATIENCE_S, aborted, choices_of, idle

JOB = {"prompt": "Once upon a time", "max_tokens": 40, "seed": 7}
LONG = {"prompt": "Once upon a time", "max_tokens": 500, "ignore_eos": True}


def make_pair(folder, name, names="DNS:localhost,IP:127.0.0.1"):
    """A certificate that signs itself, and its key."""
    certificate, own = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", own, "-out", certificate, "-days", "2", "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName={names}"], check=True, capture_output=True)
    return certificate, own


def make_expired(folder):
    """One whose two days are long over."""
    pair = make_pair(folder, "expired")
    (folder / "ca.cnf").write_text(f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index\nserial={folder}/serial\nnew_certs_dir={folder}\n"
                                   "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
    (folder / "index").touch()
    (folder / "serial").write_text("01\n")
    request, old = folder / "old.csr", folder / "old.crt"
    subprocess.run(["openssl", "req", "-new", "-key", pair[1], "-subj", "/CN=old", "-out", request], check=True, capture_output=True)
    subprocess.run(["openssl", "ca", "-batch", "-config", folder / "ca.cnf", "-selfsign", "-keyfile", pair[1], "-in", request,
                    "-startdate", "20200101000000Z", "-enddate", "20200103000000Z", "-out", old], check=True, capture_output=True)
    return old, pair[1]


def flags_of(pair):
    return ("--tls-cert", pair[0], "--tls-key", pair[1])


def trusting(*certificates, version=None):
    context = ssl.create_default_context()
    for certificate in certificates:
        context.load_verify_locations(certificate)
    if version:
        context.minimum_version = context.maximum_version = version
    return context


def secure_socket(server, context):
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    return context.wrap_socket(raw, server_hostname="localhost")


def name_of(server):
    """The name in the certificate that a new connection is shown."""
    with secure_socket(server, ssl._create_unverified_context()) as connection:
        shown = ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True))
    said = subprocess.run(["openssl", "x509", "-noout", "-subject"], input=shown, capture_output=True, text=True, check=True)
    return said.stdout.split("=")[-1].strip()


@pytest.fixture
def pair(tmp_path):
    return make_pair(tmp_path, "first")


@pytest.fixture
def start_secure(start_server, pair):
    """Starts servers under TLS; their metrics are read from the plain admin port."""

    def start(*args):
        server = start_server("--admin-port", 0, "--max-num-seqs", 8, *flags_of(pair), *args)
        server.context = trusting(pair[0])
        return server

    return start


@pytest.fixture
def secure(start_secure):
    return start_secure()


def client_of(server, context=None):
    return httpx2.Client(verify=context or server.context, base_url=f"https://localhost:{server.port}", timeout=PATIENCE_S)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_answers_and_streams_are_those_of_a_plain_server(secure, pair, server, version):
    expected = server.text(**JOB)
    with server.stream(**JOB) as events:
        plain = choices_of(events)[0]
    with client_of(secure, trusting(pair[0], version=version)) as client:
        assert client.post("/v1/completions", json=JOB).json()["choices"][0]["text"] == expected
        with client.stream("POST", "/v1/completions", json={**JOB, "stream": True}) as response:
            events = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
        assert choices_of(events)[0] == plain
        assert client.post("/v1/completions", json={"prompt": 5}).status_code == 400
        assert client.post("/v1/completions", json={**JOB, "prompt": "a" * (9 << 20)}).status_code == 413


def test_curl_is_served_and_the_old_versions_are_refused(secure, pair):
    def curl(*flags):
        return subprocess.run(["curl", "-sS", "--cacert", pair[0], *flags, f"https://localhost:{secure.port}/health"],
                              capture_output=True, text=True, timeout=PATIENCE_S)

    assert curl().stdout == '{"status":"ok"}'
    assert curl("--tlsv1.2", "--tls-max", "1.2").stdout == '{"status":"ok"}'
    refused = curl("--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT:@SECLEVEL=0")
    assert refused.returncode == 35, "no handshake"
    assert curl("--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES128-SHA").returncode == 35
    stranger = subprocess.run(["curl", "-sS", f"https://localhost:{secure.port}/health"], capture_output=True, timeout=PATIENCE_S)
    assert stranger.returncode == 60, "nobody it knows has signed it"


def test_plain_http_is_answered_and_closed(secure):
    connection = http.client.HTTPConnection("127.0.0.1", secure.port, timeout=PATIENCE_S)
    connection.request("POST", "/v1/completions", json.dumps(JOB), {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 400 and "https://" in json.loads(response.read())["error"]["message"]
    with secure.socket() as raw:
        raw.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        while raw.recv(65536):
            pass
    assert client_of(secure).get("/health").status_code == 200


def test_sighup_while_the_model_loads_ends_nothing(pair):
    """A program that renews a certificate cannot know that the server has just begun."""
    for _ in range(50):
        if num_sighups_before_ready(pair) > 1:
            return
    pytest.fail("it was ready before anything was sent, every time")


def num_sighups_before_ready(pair):
    """Of one start. A busy machine may let it load its model before this process comes to send the first."""
    server = subprocess.Popen([BINARY, "serve", "--port", "0", *flags_of(pair)], stdout=subprocess.PIPE, text=True)
    said, sent = [], 0
    reader = threading.Thread(target=lambda: said.extend(server.stdout))
    reader.start()
    try:
        while not blocks_sighup(server.pid):  # before that it is a process like any other
            assert server.poll() is None
        while not any("ready in" in line for line in said):
            assert server.poll() is None, f"ended by SIGHUP, status {server.returncode}"
            server.send_signal(signal.SIGHUP)
            sent += 1
            time.sleep(0.002)
        return sent
    finally:
        server.terminate()
        assert server.wait(PATIENCE_S) == 0
        reader.join(PATIENCE_S)


def blocks_sighup(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"^SigBlk:\s*(\w+)", status.read(), re.MULTILINE)[1], 16) & 1


def test_sighup_takes_a_new_pair_and_keeps_the_old_where_it_is_bad(secure, pair, tmp_path):
    assert name_of(secure) == "first"
    with client_of(secure) as kept, kept.stream("POST", "/v1/completions", json={**LONG, "stream": True}) as response:
        lines = response.iter_lines()
        next(lines)
        second = make_pair(tmp_path, "second")
        for old, new in zip(pair, second):
            old.write_bytes(new.read_bytes())
        secure.process.send_signal(signal.SIGHUP)
        secure.wait_for_log("tls_renewed")
        assert name_of(secure) == "second"
        assert list(lines)[-2:].count("data: [DONE]") == 1, "a stream goes on under the pair it began with"
    third = make_pair(tmp_path, "third")
    pair[0].write_bytes(third[0].read_bytes())
    secure.process.send_signal(signal.SIGHUP)
    secure.wait_for_log("tls_not_renewed")
    line = next(line for line in secure.lines if "tls_not_renewed" in line)
    assert "not the key of the certificate" in line
    assert name_of(secure) == "second"
    pair[1].write_bytes(third[1].read_bytes())
    secure.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + PATIENCE_S
    while name_of(secure) != "third":
        assert time.monotonic() < end
        time.sleep(0.01)
    assert secure.stop() == 0


def test_a_pair_that_cannot_serve_is_refused_at_start(tmp_path, pair):
    other = make_pair(tmp_path, "other")
    for flags, said in (
        (flags_of((pair[0], other[1])), "not the key of the certificate"),
        (flags_of(make_expired(tmp_path)), "expired at Jan  3 00:00:00 2020 GMT"),
        (flags_of((tmp_path / "nothing.crt", pair[1])), "No such file"),
        (("--tls-cert", pair[0]), "no key can be read"),
        (("--tls-key", pair[1]), "--tls-cert"),
    ):
        done = subprocess.run([BINARY, "serve", "--port", "0", *flags], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 2 and said in done.stderr, (flags, done.stderr)


def test_vllms_names_mean_the_same(start_server, pair):
    server = start_server("--ssl-certfile", pair[0], "--ssl-keyfile", pair[1])
    assert client_of(server, trusting(pair[0])).get("/health").status_code == 200
    assert server.stop() == 0


@pytest.mark.parametrize("goodbye", [True, False], ids=["goodbye", "gone"])
def test_a_hundred_clients_that_leave_in_mid_stream_free_everything(start_secure, goodbye):
    secure = start_secure(*PACED)
    text = json.dumps({**LONG, "stream": True}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text)

    def begin(_):
        connection = secure_socket(secure, secure.context)
        connection.sendall(head + text)
        return connection, connection.recv(17)

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        begun = list(pool.map(begin, range(100)))
    assert {first for _, first in begun} == {b"HTTP/1.1 200 OK\r\n"}
    for connection, _ in begun:
        if goodbye:
            connection.settimeout(0)
            try:
                connection.unwrap()
            except (ssl.SSLError, OSError):
                pass  # it is said; the server's own is not waited for
        connection.close()
    # Eight run at a time, for ten seconds at least. Where a hundred handshakes take longer, the first ones are whole.
    ended = lambda m: m['vllm:request_success_total{finished_reason="length"}'] + aborted(m)  # noqa: E731
    metrics = secure.wait_until(lambda m: idle(m) and ended(m) == 100, "an idle engine")
    assert 50 <= aborted(metrics) <= secure.wait_until(
        lambda m: m["quire:client_disconnects_total"] >= aborted(m), "as many clients that left")["quire:client_disconnects_total"] <= 100
    assert metrics["vllm:kv_cache_usage_perc"] == 0
    assert client_of(secure).post("/v1/completions", json=JOB).status_code == 200
    assert secure.stop() == 0


# ---- quire inspect --url over TLS


def inspect(url, *args, **env):
    return subprocess.run([BINARY, "inspect", "--url", url, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ | env)


def test_inspect_reads_a_server_under_tls_that_it_may_trust(start_server, tmp_path):
    pair = make_pair(tmp_path, "own")
    server = start_server("--tls-cert", pair[0], "--tls-key", pair[1], "--api-key", "sk-right")
    for host in ("localhost", "127.0.0.1"):
        shown = inspect(f"https://{host}:{server.port}/v1", "--cacert", pair[0], "--json", QUIRE_API_KEY="sk-right")
        assert shown.returncode == 0 and json.loads(shown.stdout)["model"] == "stories", shown.stderr
    by_roots = inspect(f"https://localhost:{server.port}", QUIRE_API_KEY="sk-right", SSL_CERT_FILE=str(pair[0]))
    assert by_roots.returncode == 0, by_roots.stderr

    stranger = inspect(f"https://localhost:{server.port}")
    assert stranger.returncode == 2 and "TLS: the server's certificate is not trusted: self-signed certificate" in stranger.stderr
    assert "--cacert FILE" in stranger.stderr
    other = make_pair(tmp_path, "other", "DNS:elsewhere.example")
    elsewhere = start_server("--tls-cert", other[0], "--tls-key", other[1])
    other_name = inspect(f"https://localhost:{elsewhere.port}", "--cacert", other[0])
    assert other_name.returncode == 2 and "TLS: the server's certificate is not for the name localhost" in other_name.stderr
    without = inspect(f"https://localhost:{server.port}", "--cacert", pair[0])
    assert without.returncode == 2 and "status 401" in without.stderr and "QUIRE_API_KEY" in without.stderr
    plain = inspect(f"http://127.0.0.1:{server.port}")
    assert plain.returncode == 2 and "https://" in plain.stderr


def test_ps_reads_a_server_under_tls_that_it_may_trust(start_server, tmp_path):
    pair = make_pair(tmp_path, "own")
    server = start_server("--tls-cert", pair[0], "--tls-key", pair[1])

    def ps(*args):
        return subprocess.run([BINARY, "ps", "--url", f"https://localhost:{server.port}/v1", *map(str, args)], capture_output=True, text=True,
                              timeout=PATIENCE_S)

    trusted = ps("--cacert", pair[0])
    assert (trusted.returncode, trusted.stdout) == (0, "no requests are running or waiting\n"), trusted.stderr
    stranger = ps()
    assert stranger.returncode == 2 and "not trusted" in stranger.stderr and "--cacert FILE" in stranger.stderr
    missing = ps("--cacert", tmp_path / "none")
    assert missing.returncode == 2 and "--cacert" in missing.stderr
