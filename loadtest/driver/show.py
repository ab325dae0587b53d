"""What a run found, as text for a terminal. Colours only where somebody looks."""

import os

LATENCIES = [
    ("ttft", "first token (TTFT)"),
    ("ttft_from_send", "  from when it was sent"),
    ("gap", "gap between events (ITL)"),
    ("tpot", "time per token (TPOT)"),
    ("e2e", "whole answer (E2E)"),
]
COLUMNS = ["p50", "p90", "p95", "p99", "p99.9", "max"]
BOLD, RED, YELLOW, GREEN = "1", "31", "33", "32"


def painter(stream):
    """paint(code, text): text with a colour where `stream` is a terminal, and NO_COLOR is not set."""
    colours = stream.isatty() and not os.environ.get("NO_COLOR")
    return lambda code, text: f"\033[{code}m{text}\033[0m" if colours else text


def plain(_, text):
    return text


def table(header, rows):
    """Columns as wide as they need to be, the first to the left."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return ["  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(line, widths))) for line in lines]


def number(value, digits=1):
    return "–" if value is None else f"{value:,.{digits}f}"


def latency_rows(summary):
    """(label, cells in milliseconds) of every latency that was measured."""
    for name, label in LATENCIES:
        figures = summary["latency_ms"][name]
        if figures["count"]:
            yield label, [number(figures[column]) for column in COLUMNS]
    for url, figures in summary["probes"].items():
        if figures["count"]:
            yield f"probe {url}", [number(figures[column]) for column in COLUMNS]


def requests_line(summary, paint):
    requests = summary["requests"]
    parts = [f"{requests['measured']:,} requests", paint(GREEN, f"{requests['right']:,} right")]
    for name, colour in (("wrong", RED), ("failed", RED), ("refused", YELLOW), ("unfinished", YELLOW)):
        parts.append(paint(colour, f"{requests[name]:,} {name}") if requests[name] else f"0 {name}")
    if requests["warmup"]:
        parts.append(f"{requests['warmup']:,} more for warm-up")
    if requests["unsent"]:
        parts.append(paint(YELLOW, f"{requests['unsent']:,} never sent"))
    return ", ".join(parts)


def slo_text(slo):
    names = {"ttft_ms": "TTFT", "tpot_ms": "TPOT", "e2e_ms": "E2E"}
    return ", ".join(f"{names[name]} ≤ {limit:g} ms" for name, limit in slo.items()) or "no limits: right answers"


def facts(summary, paint=plain):
    """Lines of (label, text) above the latencies."""
    made, good, client, tokens = summary["throughput"], summary["goodput"], summary["client"], summary["tokens"]
    yield "requests", requests_line(summary, paint)
    for why, count in summary["errors"].items():
        yield "", paint(YELLOW if why.startswith("refused") else RED, f"{count:,} × {why}")
    yield "throughput", (
        f"{made['requests_per_s']:,.2f} requests/s, {made['output_tokens_per_s']:,.1f} output tokens/s, "
        f"{made['prompt_tokens_per_s']:,.1f} prompt tokens/s over {summary['span_s']:,.1f} s"
    )
    yield "goodput", (
        f"{good['share']:.1%} within {slo_text(good['slo'])}: {good['requests_per_s']:,.2f} requests/s, "
        f"{good['output_tokens_per_s']:,.1f} output tokens/s"
    )
    if tokens:
        cached = f", {tokens['prompt_cached_share']:.0%} of them cached" if "prompt_cached_share" in tokens else ""
        yield "tokens", (
            f"prompts {tokens['prompt_mean']:,.0f} on average (planned {tokens['prompt_planned_mean']:,.0f}){cached}; "
            f"answers {tokens['answer_mean']:,.0f}; {tokens['per_event']:.2f} an event"
        )
    yield "client", (
        f"{client['cpu']:.0%} of a core, timers {client['lag_p99_ms']:.1f} ms late and requests {client['send_delay_p99_ms']:.1f} ms "
        f"late (p99), {client['most_in_flight']:,} in flight at most"
    )
    for why in client["why"]:
        yield "", paint(YELLOW, f"doubtful: {why}; latencies hold the client's own delay")
    for url, figures in summary["probes"].items():
        if figures["failed"]:
            yield "", paint(RED, f"probe {url}: {figures['failed']} of {figures['failed'] + figures['count']} failed")


def run_text(summary, title, paint=plain):
    lines = [paint(BOLD, title)]
    lines += [f"  {label:<11} {text}" for label, text in facts(summary, paint)]
    rows = [[label, *cells] for label, cells in latency_rows(summary)]
    if rows:
        lines += ["", *("  " + line for line in table(["milliseconds", *COLUMNS], rows))]
    return "\n".join(lines)


def round_text(summary, title, paint=plain):
    """One run among many: what became of its requests, and what makes it doubtful."""
    (_, first), *rest = ((label, text) for label, text in facts(summary, paint) if label in ("requests", ""))
    return "\n".join([f"{title}: {first}"] + [f"    {text}" for _, text in rest])


def ratio_rows(rows):
    for row in rows:
        spread = [value for value in row["rounds"] if value is not None]
        between = f"{min(spread):.2f}–{max(spread):.2f}" if spread else "–"
        digits = 3 if row["figure"].startswith("goodput") else 1
        ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}×"
        yield [row["figure"], number(row["first"], digits), number(row["second"], digits), ratio, between]


RATIO_HEADER = ["medians of rounds (ms where a time)", "A", "B", "ratio", "of the rounds"]


def compare_text(rows, urls, paint=plain):
    lines = [paint(BOLD, f"A {urls[0]} beside B {urls[1]}: ratios over 1 where A is ahead")]
    return "\n".join(lines + ["  " + line for line in table(RATIO_HEADER, list(ratio_rows(rows)))])
