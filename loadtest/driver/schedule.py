"""Which requests come when: a function of the scenario and the seed, known as a whole before the first is sent."""

import dataclasses
import itertools
import json
import math
import random

from driver.scenario import MAX_REQUESTS, ScenarioError

MAX_TOKENS = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Planned:
    """One request. `shared` are (key, tokens) of passages that others may begin with too; `own_tokens` follow, of its own."""

    index: int
    at_s: float  # after the start; closed loops have no times: 0
    shared: tuple
    own_tokens: int
    answer_tokens: int

    @property
    def prompt_tokens(self):
        return sum(tokens for _, tokens in self.shared) + self.own_tokens


def plan(scenario, seed):
    """All requests in the order of their times.

    Times, lengths and prefixes are drawn from generators of their own: another rate leaves the lengths as they are.
    """
    if scenario.arrivals["kind"] == "trace":
        return replay(scenario)
    prompts, answers = random.Random(f"{seed}/prompts"), random.Random(f"{seed}/answers")
    prefix = prefixes(scenario.shared_prefix, random.Random(f"{seed}/prefixes"))
    return [
        Planned(index, at_s, next(prefix), length(scenario.prompt_tokens, prompts), length(scenario.answer_tokens, answers))
        for index, at_s in enumerate(times(scenario.arrivals, random.Random(f"{seed}/times")))
    ]


def times(arrivals, draw):
    """Seconds after the start, ascending."""
    kind = arrivals["kind"]
    if kind == "poisson":
        at_s = draw.expovariate(arrivals["rate_per_s"])
        while at_s < arrivals["duration_s"]:
            yield at_s
            at_s += draw.expovariate(arrivals["rate_per_s"])
    elif kind == "constant":
        yield from (i / arrivals["rate_per_s"] for i in range(math.ceil(arrivals["rate_per_s"] * arrivals["duration_s"])))
    elif kind == "bursts":
        for i in range(math.ceil(arrivals["duration_s"] / arrivals["every_s"])):
            yield from [i * arrivals["every_s"]] * arrivals["size"]
    else:
        yield from [0.0] * arrivals["requests"]


def length(lengths, draw):
    """Tokens: a number, uniform between two (both may come), or lognormal, clamped to min and max."""
    if isinstance(lengths, int):
        return lengths
    if "uniform" in lengths:
        return draw.randint(*lengths["uniform"])
    shape = lengths["lognormal"]
    drawn = draw.lognormvariate(math.log(shape["median"]), shape["sigma"])
    return round(min(max(drawn, shape["min"]), shape["max"]))


def prefixes(shared, draw):
    """Endless: the passages that each request shares. Group k of Zipf's law is wanted as often as 1 / k^skew."""
    if shared is None:
        yield from itertools.repeat(())
    weights = list(itertools.accumulate(1 / k ** shared.get("skew", 0) for k in range(1, shared["groups"] + 1)))
    while True:
        (group,) = draw.choices(range(shared["groups"]), cum_weights=weights)
        yield ((f"prefix {group}", shared["tokens"]),)


# ---- traces


def replay(scenario):
    """A trace's requests by their times, the first at 0. Lines as in Mooncake's public traces:

    {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [one for each block of 512 tokens]}

    Equal ids become equal text, so that prompts whose lists begin alike begin alike. hash_ids may be shorter, or missing:
    what they do not cover is the request's own.
    """
    arrivals = scenario.arrivals
    path = scenario.directory / arrivals["file"]
    requests = []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    requests.append(trace_line(line, f"{arrivals['file']}:{number}"))
                if len(requests) > MAX_REQUESTS:
                    raise ScenarioError(f"arrivals.file: {arrivals['file']} has more than {MAX_REQUESTS:,} requests")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"arrivals.file: {arrivals['file']}: {getattr(error, 'strerror', None) or error}") from None
    if not requests:
        raise ScenarioError(f"arrivals.file: {arrivals['file']} has no requests")
    requests.sort(key=lambda request: request["timestamp"])  # stable: equal times stay in the file's order
    requests = requests[: arrivals.get("requests")]
    start_ms, speed, block = requests[0]["timestamp"], arrivals.get("speed", 1), arrivals.get("block_tokens", 512)
    planned = []
    for index, request in enumerate(requests):
        shared, left = [], request["input_length"]
        for block_id in request.get("hash_ids", ()):
            if left > 0:
                shared.append((f"block {block_id}", min(block, left)))
                left -= shared[-1][1]
        at_s = (request["timestamp"] - start_ms) / 1000 / speed
        planned.append(Planned(index, at_s, tuple(shared), left, request["output_length"]))
    return planned


def trace_line(line, where):
    try:
        request = json.loads(line)
    except ValueError:
        raise ScenarioError(f"{where}: not JSON") from None
    if not isinstance(request, dict):
        raise ScenarioError(f"{where}: expected an object with timestamp, input_length and output_length")

    def number(field, least, most, kinds):
        value = request.get(field)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            raise ScenarioError(f"{where}: {field}: {value!r} was given, expected a number from {least} to {most:,}")

    number("timestamp", 0, 1e15, (int, float))
    number("input_length", 1, MAX_TOKENS, int)
    number("output_length", 1, MAX_TOKENS, int)
    ids = request.get("hash_ids", [])
    if not isinstance(ids, list) or not all(isinstance(one, (int, str)) for one in ids):
        raise ScenarioError(f"{where}: hash_ids: expected a list of numbers or strings")
    return request
