"""Routers that others wrote, in front of several servers: the command line of each, and what its policies are called.

Packages are in requirements-routers.txt. sglang's router and vLLM's are of one family and share most flags; each has policies
that the other has not.
"""

import pathlib

POLICIES = {
    "vllm": ("random", "round_robin", "power_of_two", "consistent_hash", "cache_aware"),
    "sglang": ("random", "round_robin", "power_of_two", "manual", "cache_aware"),
}
# What keeps a session at its server: the policy, and the header that names the session.
BY_SESSION = {"vllm": ("consistent_hash", "X-Session-ID"), "sglang": ("manual", "X-SMG-Routing-Key")}


def command(name, bin_folder, port, metrics_port, urls, policy, *more):
    """`name` is a key of POLICIES; `bin_folder` is that of the environment with the packages. It listens on the loopback address.

    A server that stops answering is left out after a second: a router's own patience of a minute is for other networks.
    """
    start = {"vllm": [pathlib.Path(bin_folder) / "vllm-router"], "sglang": [pathlib.Path(bin_folder) / "smg", "launch"]}[name]
    return [
        *map(str, start), "--host", "127.0.0.1", "--port", str(port), "--policy", policy, "--worker-urls", *urls,
        "--prometheus-host", "127.0.0.1", "--prometheus-port", str(metrics_port), "--log-level", "error",
        "--worker-startup-check-interval", "1", "--health-check-interval-secs", "1", "--health-check-timeout-secs", "5",
        "--health-failure-threshold", "1", "--health-success-threshold", "1", *more,
    ]  # fmt: skip
