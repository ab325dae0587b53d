"""A scenario: when requests come, what they ask, and which answers count as good. YAML, held to scenarios/schema.json."""

import dataclasses
import json
import pathlib

import jsonschema
import yaml

SCENARIOS = pathlib.Path(__file__).resolve().parents[1] / "scenarios"
MAX_REQUESTS = 2_000_000


class ScenarioError(ValueError):
    """Names the field, what it was, and the limit."""


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What a checked file says. `arrivals`, `shared_prefix` and the two lengths are as the schema has them, defaults filled in."""

    name: str
    arrivals: dict
    description: str = ""
    endpoint: str = "completions"
    stream: bool = True
    prompt_tokens: object = 128
    prompt_as: str = "words"
    token_ids: tuple = (1000, 4000)
    shared_prefix: dict | None = None
    answer_tokens: object = 64
    ignore_eos: bool = True
    body: dict = dataclasses.field(default_factory=dict)
    slo: dict = dataclasses.field(default_factory=dict)
    timeout_s: float = 120
    warmup_s: float = 0
    streams: int = 0  # that have to be held at once; 0: nothing is promised
    directory: pathlib.Path = SCENARIOS  # what a trace's name is relative to


def load(name, settings=()):
    """The scenario of that name in scenarios/, or of that file; `settings` are (path.of.field, value in YAML)."""
    path = SCENARIOS / f"{name}.yaml" if name in names() else pathlib.Path(name)
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ScenarioError(f"{name}: {error.strerror}; there are: {', '.join(names())}, or the path of a file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{name}: not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(document, dict):
        raise ScenarioError(f"{name}: expected fields, arrivals among them")
    for field, value in settings:
        put(document, field, value)
    return checked(document, path.stem, path.parent)


def names():
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def put(document, field, text):
    """Sets a field named by its path: arrivals.rate_per_s. A mapping replaces a mapping: arrivals={kind: closed, …}."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ScenarioError(f"{field}: {text!r} is not YAML") from None
    *parents, last = field.split(".")
    for parent in parents:
        document = document.setdefault(parent, {})
        if not isinstance(document, dict):
            raise ScenarioError(f"{field}: {parent} is not a mapping")
    document[last] = value


def checked(document, name="scenario", directory=SCENARIOS):
    """A document as a Scenario, or ScenarioError."""
    schema = json.loads((SCENARIOS / "schema.json").read_text())
    problems = sorted(jsonschema.Draft202012Validator(schema).iter_errors(document), key=lambda e: list(map(str, e.absolute_path)))
    if problems:
        raise ScenarioError("\n".join(f"{name}: {told(problem)}" for problem in problems))
    prompt, answer = document.get("prompt", {}), document.get("answer", {})
    plain = {key: value for key, value in document.items() if key not in ("prompt", "answer")}
    renamed = {"tokens": "prompt_tokens", "as": "prompt_as", "ids": "token_ids"}
    plain |= {renamed.get(key, key): value for key, value in prompt.items()}
    plain |= {{"tokens": "answer_tokens"}.get(key, key): value for key, value in answer.items()}
    scenario = Scenario(name=name, directory=directory, **plain)
    for field, problem in contradictions(scenario):
        raise ScenarioError(f"{name}: {field}: {problem}")
    return scenario


def told(problem):
    """A finding of the validator, with the field's path in front. Texts of the file are short there: 80 characters."""
    field = ".".join(map(str, problem.absolute_path)) or "the file"
    limits = {
        "minimum": "at least {}", "exclusiveMinimum": "more than {}", "maximum": "at most {}", "enum": "one of {}",
        "maxLength": "at most {} characters", "minItems": "at least {} items",
    }  # fmt: skip
    if problem.validator in limits:
        limit = problem.validator_value
        limit = ", ".join(limit) if isinstance(limit, list) else f"{limit:,}"
        return f"{field}: {str(problem.instance)[:80]} was given, expected {limits[problem.validator].format(limit)}"
    return f"{field}: {problem.message[-200:]}"


def contradictions(scenario):
    """(field, what is wrong) where each field is right by itself."""
    for field, lengths in (("prompt.tokens", scenario.prompt_tokens), ("answer.tokens", scenario.answer_tokens)):
        if isinstance(lengths, dict) and "uniform" in lengths and lengths["uniform"][0] > lengths["uniform"][1]:
            yield f"{field}.uniform", f"{lengths['uniform']} was given, expected the shorter length first"
        if isinstance(lengths, dict) and "lognormal" in lengths and lengths["lognormal"]["min"] > lengths["lognormal"]["max"]:
            yield f"{field}.lognormal", "min is more than max"
    if scenario.prompt_as == "token_ids" and scenario.endpoint == "chat":
        yield "prompt.as", "token_ids was given, but chat messages are text: expected words"
    if scenario.token_ids[1] - scenario.token_ids[0] < 256:
        yield "prompt.ids", f"{list(scenario.token_ids)} was given, expected first and past-the-last at least 256 apart"
    arrivals = scenario.arrivals
    if scenario.warmup_s >= arrivals.get("duration_s", float("inf")):
        yield "warmup_s", f"{scenario.warmup_s} was given, expected less than arrivals.duration_s, {arrivals['duration_s']}"
    if scenario.streams and scenario.streams < arrivals.get("concurrency", 0):
        yield "streams", f"{scenario.streams} was given, expected at least arrivals.concurrency, {arrivals['concurrency']}"
    if expected_requests(arrivals) > MAX_REQUESTS:
        yield "arrivals", f"{expected_requests(arrivals):,.0f} requests would come, expected at most {MAX_REQUESTS:,}"


def expected_requests(arrivals):
    if arrivals["kind"] in ("poisson", "constant"):
        return arrivals["rate_per_s"] * arrivals["duration_s"]
    if arrivals["kind"] == "bursts":
        return arrivals["size"] * arrivals["duration_s"] / arrivals["every_s"]
    return arrivals.get("requests", 0)
