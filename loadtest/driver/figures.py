"""From answers to figures: histograms, throughput, goodput, errors by kind, and whether the client itself held up."""

import collections

from hdrh.histogram import HdrHistogram

from driver import answer as verdicts

HIGHEST_US = 24 * 3600 * 1_000_000
SIGNIFICANT_DIGITS = 3  # a percentile is within 0.1 % of the value at its rank
PERCENTILES = (50, 90, 95, 99, 99.9)
SATURATED_CPU = 0.85  # of the one core that Python takes
LATE_S = 0.025


def new_histogram():
    return HdrHistogram(1, HIGHEST_US, SIGNIFICANT_DIGITS)


def record(histogram, seconds):
    """Whole microseconds; 0 counts as one."""
    histogram.record_value(min(max(round(seconds * 1e6), 1), HIGHEST_US))


def percentiles(histogram):
    """Milliseconds, or nothing where nothing was recorded."""
    if not histogram.total_count:
        return {"count": 0}
    at = {f"p{percent:g}": histogram.get_value_at_percentile(percent) / 1000 for percent in PERCENTILES}
    return {"count": histogram.total_count, **at, "max": histogram.get_max_value() / 1000, "mean": histogram.get_mean_value() / 1000}


def histograms(answers):
    """Of the right answers."""
    made = {name: new_histogram() for name in ("ttft", "ttft_from_send", "gap", "tpot", "e2e", "send_delay")}
    for answer in answers:
        record(made["send_delay"], answer.sent_s - answer.intended_s)
        if answer.outcome != verdicts.RIGHT:
            continue
        record(made["ttft"], answer.ttft_s)
        record(made["ttft_from_send"], answer.first_s - answer.sent_s)
        record(made["e2e"], answer.e2e_s)
        if answer.tpot_s is not None:
            record(made["tpot"], answer.tpot_s)
        for gap_s in answer.gaps_s:
            record(made["gap"], gap_s)
    return made


def measured(run):
    """The answers behind the warm-up."""
    return [answer for answer in run.answers if answer.intended_s - run.start_s >= run.scenario.warmup_s]


def summary(run):
    """Everything that is told of a run, as JSON has it."""
    answers = measured(run)
    outcomes = collections.Counter(answer.outcome for answer in answers)
    right = [answer for answer in answers if answer.outcome == verdicts.RIGHT]
    good = [answer for answer in right if answer.is_good(run.scenario.slo)]
    begin_s = run.start_s + run.scenario.warmup_s
    span_s = max([answer.end_s for answer in answers if answer.end_s] + [begin_s + 1e-6]) - begin_s
    made = histograms(answers)
    unsent = run.num_planned - len(run.answers)
    out = {
        "scenario": run.scenario.name,
        "requests": {
            "planned": run.num_planned, "warmup": len(run.answers) - len(answers), "unsent": unsent, "measured": len(answers),
            **{name: outcomes[name] for name in (verdicts.RIGHT, verdicts.WRONG, verdicts.FAILED, verdicts.REFUSED, verdicts.UNFINISHED)},
        },
        "errors": errors(answers),
        "span_s": span_s,
        "throughput": {
            "requests_per_s": len(right) / span_s,
            "output_tokens_per_s": sum(answer.num_tokens for answer in right) / span_s,
            "prompt_tokens_per_s": sum(answer.num_prompt_tokens for answer in right) / span_s,
        },
        "goodput": {
            "slo": run.scenario.slo, "share": len(good) / len(answers) if answers else 0.0, "requests_per_s": len(good) / span_s,
            "output_tokens_per_s": sum(answer.num_tokens for answer in good) / span_s,
        },
        "latency_ms": {name: percentiles(histogram) for name, histogram in made.items()},
        "tokens": tokens(right),
        "client": client(run, made["send_delay"]),
        "probes": {name: percentiles_of_probe(probe) for name, probe in run.probes.items()},
        "histograms": {name: histogram.encode().decode() for name, histogram in made.items() if histogram.total_count},
        "timeline": timeline(run),
    }  # fmt: skip
    return out


def errors(answers):
    """"outcome: why" → how many, the most frequent first."""
    counted = collections.Counter(f"{answer.outcome}: {answer.why}" for answer in answers if answer.outcome != verdicts.RIGHT)
    return dict(counted.most_common())


def tokens(right):
    """What the right answers and their prompts had, as the server's usage says."""
    if not right:
        return {}
    prompts, answered = sum(answer.num_prompt_tokens for answer in right), sum(answer.num_tokens for answer in right)
    out = {
        "prompt_mean": prompts / len(right), "prompt_planned_mean": sum(answer.planned.prompt_tokens for answer in right) / len(right),
        "answer_mean": answered / len(right), "per_event": answered / max(1, sum(answer.num_events for answer in right)),
    }  # fmt: skip
    if any(answer.num_cached_tokens is not None for answer in right):
        out["prompt_cached_share"] = sum(answer.num_cached_tokens or 0 for answer in right) / max(1, prompts)
    return out


def client(run, send_delay):
    """How the client fared; `why` says what makes its figures doubtful, nothing when nothing does."""
    lag_p99_s = run.lag.get_value_at_percentile(99) / 1e6 if run.lag.total_count else 0.0
    late_p99_s = send_delay.get_value_at_percentile(99) / 1e6 if send_delay.total_count else 0.0
    why = []
    if run.client_cpu > SATURATED_CPU:
        why.append(f"the client used {run.client_cpu:.0%} of its core")
    if lag_p99_s > LATE_S:
        why.append(f"the client's own timers ran {lag_p99_s * 1e3:.0f} ms late (p99)")
    if late_p99_s > LATE_S:
        why.append(f"requests were sent {late_p99_s * 1e3:.0f} ms late (p99)")
    return {
        "cpu": run.client_cpu, "lag_p99_ms": lag_p99_s * 1e3, "send_delay_p99_ms": late_p99_s * 1e3,
        "most_in_flight": run.most_in_flight, "saturated": bool(why), "why": why,
    }  # fmt: skip


def percentiles_of_probe(probe):
    histogram = new_histogram()
    for seconds in probe["seconds"]:
        record(histogram, seconds)
    return percentiles(histogram) | {"failed": probe["failed"]}


def timeline(run):
    """By the second after the start: requests due, ended, not right, and in flight at its end; tokens of those that ended."""
    num_seconds = int(max(run.end_s - run.start_s, 0)) + 1
    rows = [{"due": 0, "ended": 0, "not_right": 0, "tokens": 0, "ttft_ms": []} for _ in range(num_seconds)]
    at = lambda time_s: rows[min(max(int(time_s - run.start_s), 0), num_seconds - 1)]
    for answer in run.answers:
        due = at(answer.intended_s)
        due["due"] += 1
        ended = at(answer.end_s)
        ended["ended"] += 1
        if answer.outcome == verdicts.RIGHT:
            ended["tokens"] += answer.num_tokens
            due["ttft_ms"].append(answer.ttft_s * 1e3)
        else:
            ended["not_right"] += 1
    in_flight = 0
    for row in rows:
        in_flight += row["due"] - row["ended"]
        ttfts = sorted(row.pop("ttft_ms"))
        row |= {"in_flight": in_flight, "ttft_p50_ms": ttfts[len(ttfts) // 2] if ttfts else None, "ttft_max_ms": ttfts[-1] if ttfts else None}
    return rows
