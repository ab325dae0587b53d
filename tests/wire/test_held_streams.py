"""Many streams held open, each with little to say: none has an error, memory stays small, probes are answered, and who leaves takes
its blocks along within a step. Times are printed, not asserted: the machine may be busy with something else."""

import contextlib
import os
import re
import socket
import time

import checkpoints
import pytest
from driver.probes import Probes
from held_streams import Holder, HeldStreams, files_short_of

MiB = 1 << 20
ROWS, PACE = 40, "20ms"  # 2,000 events a second in all
WATCH_S = 20
# streams → (that leave at once, of VmHWM: the toy and all that is held)
SIZES = [(300, 100, 256 * MiB), pytest.param(10_000, 1_000, 1000 * MiB, marks=pytest.mark.heavy)]
PAGES = ("/live", "/ready", "/startup", "/metrics")


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy") / "toy-random-weights"
    checkpoints.write_directory(checkpoints.SHAPES["toy"], folder)
    return folder


def samples(text, name):
    """labels → value, of the samples of one name."""
    found = re.findall(rf"^{re.escape(name)}\{{(.*)\}} (\S+)$", text, re.M)
    return {labels: float(value) for labels, value in found}


def histogram(text, name):
    """Upper bound → how many were not above it, in order; the last one is infinity and all."""
    found = {}
    for labels, value in samples(text, name + "_bucket").items():
        found[float(re.search(r'le="([^"]+)"', labels)[1])] = int(value)
    return dict(sorted(found.items()))


def since(now, before):
    return {bound: count - before[bound] for bound, count in now.items()}


def quantile(counts, share):
    """The bound that so many are not above."""
    total = list(counts.values())[-1]
    return next(bound for bound, count in counts.items() if count >= share * total)


def blocks(text):
    """state → KV blocks"""
    return {re.search(r'state="(\w+)"', labels)[1]: value for labels, value in samples(text, "quire:kv_blocks").items()}


def peak_bytes(server):
    status = open(f"/proc/{server.process.pid}/status").read()
    return {name: int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) * 1024 for name in ("VmRSS", "VmHWM")}


def metrics_text(server):
    return server.request("GET", "/metrics", port=server.metrics_port).text


def wait_for(condition, what, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not come about"
        time.sleep(0.2)


def tell(what, counts):
    total = list(counts.values())[-1]
    lines = [f"    <= {bound:g}: {count}" for bound, count in counts.items() if 0 < count]
    print(f"{what}: {total}, p50 <= {quantile(counts, 0.5):g}, p99 <= {quantile(counts, 0.99):g}", *lines, sep="\n")


@pytest.mark.parametrize("count, leaving, most_bytes", SIZES)
def test_streams_are_held_and_who_leaves_frees_its_blocks_within_a_step(start_server, toy, count, leaving, most_bytes):
    if why := files_short_of(count):
        pytest.skip(why)
    server = start_server(toy, "--max-num-seqs", count, "--max-num-batched-tokens", ROWS, "--min-step-time", PACE, "--max-queue", 16384,
                          "--max-model-len", 512, "--kv-cache-memory", "512MiB", "--threads", 1, "--admin-port", 0)
    total = sum(blocks(metrics_text(server)).values())
    with HeldStreams(server.port, count) as clients:
        wait_for(lambda: (told := clients.order("say"))["open"] == count or told["faults"], "all streams")
        watch(server, clients, count)
        assert peak_bytes(server)["VmHWM"] <= most_bytes
        assert clients.order(f"leave {leaving}")["open"] == count - leaving
        server.wait_until(lambda m: m["vllm:num_requests_running"] == count - leaving, "the sequences of those who stay")
        freed = histogram(metrics_text(server), "quire:disconnect_to_free_steps")
        tell(f"steps from the end of {leaving} connections to their blocks being free", freed)
        assert freed[1] == freed[float("inf")] == leaving
        assert not clients.order("say")["faults"]
    server.wait_until(lambda m: m["vllm:num_requests_running"] + m["vllm:num_requests_waiting"] == 0, "an idle engine")
    text = metrics_text(server)
    freed = histogram(text, "quire:disconnect_to_free_steps")
    assert freed[1] == freed[float("inf")] == count
    assert blocks(text)["held"] == 0 and sum(blocks(text).values()) == total
    assert server.stop() == 0


def watch(server, clients, count):
    """What it is like while all are open."""
    pages = [f"http://127.0.0.1:{port}{page}" for port in (server.port, server.metrics_port) for page in PAGES]
    before, events = metrics_text(server), clients.order("say")["events"]
    started = time.monotonic()
    probes = Probes(pages, 0.05)
    time.sleep(WATCH_S if count >= 10_000 else 2)
    found, took = probes.stop(), time.monotonic() - started
    after, told = metrics_text(server), clients.order("say")
    assert not told["faults"] and told["open"] == count
    print(f"\n{count} streams, {(told['events'] - events) / took:.0f} events/s; resident",
          ", ".join(f"{name} {value / MiB:.0f} MiB" for name, value in peak_bytes(server).items()))
    for name in ("quire:event_to_socket_seconds", "quire:io_turn_seconds"):
        tell(name, since(histogram(after, name), histogram(before, name)))
    for url, seen in found.items():
        assert not seen["failed"], url
        ordered = sorted(seen["seconds"])
        print(f"{url}: {len(ordered)} answers, ms: p50 {ordered[len(ordered) // 2] * 1e3:.1f},",
              f"p99 {ordered[len(ordered) * 99 // 100] * 1e3:.1f}, max {ordered[-1] * 1e3:.1f}")


def test_the_client_obeys_an_order_that_comes_with_events_of_the_streams_it_closes(capsys):
    event = b'data: {"choices":[{"text":"a"}]}\n\n'
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    with contextlib.ExitStack() as stack:
        orders, to_orders = (stack.enter_context(os.fdopen(fd, mode)) for fd, mode in zip(os.pipe(), ("rb", "wb")))
        holder = Holder(0, 0, 1, orders)
        servers = []
        for _ in range(20):
            server, client = (stack.enter_context(end) for end in socket.socketpair())
            holder.add(client)
            servers.append(server)
        for order, prefix in ((b"say\n", answer), (b"leave 15\n", b"")):
            to_orders.write(order)
            to_orders.flush()
            for server in servers:
                server.sendall(prefix + b"%x\r\n%s\r\n" % (len(event), event))
            assert holder.step(10)
        assert '"open": 5, "events": 40, "faults": {}' in capsys.readouterr().out
