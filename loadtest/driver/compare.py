"""Two servers under the same load by turns, and the ratios between them: over 1 where the first is ahead."""

import statistics

# (name, where it stands in a summary, whether more is better)
FIGURES = [
    ("output tokens/s", ("throughput", "output_tokens_per_s"), True),
    ("requests/s", ("throughput", "requests_per_s"), True),
    ("goodput, share", ("goodput", "share"), True),
    ("TTFT p50", ("latency_ms", "ttft", "p50"), False),
    ("TTFT p99", ("latency_ms", "ttft", "p99"), False),
    ("TPOT p50", ("latency_ms", "tpot", "p50"), False),
    ("TPOT p99", ("latency_ms", "tpot", "p99"), False),
    ("gap p50", ("latency_ms", "gap", "p50"), False),
    ("gap p99", ("latency_ms", "gap", "p99"), False),
    ("end to end p50", ("latency_ms", "e2e", "p50"), False),
    ("end to end p99", ("latency_ms", "e2e", "p99"), False),
]


def turns(num_rounds):
    """(round, 0 or 1): both servers in every round, and who begins changes, so that drift of the machine favours nobody."""
    for i in range(num_rounds):
        yield from ((i, 0), (i, 1)) if i % 2 == 0 else ((i, 1), (i, 0))


def figure(summary, path):
    for key in path:
        summary = summary.get(key) if summary else None
    return summary


def ratio(first, second, more_is_better):
    """None where one of the two is missing, or nothing."""
    if not first or not second:
        return None
    return first / second if more_is_better else second / first


def ratios(rounds):
    """`rounds` are pairs of summaries. For each figure the medians of both and the median of the rounds' own ratios."""
    rows = []
    for name, path, more_is_better in FIGURES:
        pairs = [(figure(first, path), figure(second, path)) for first, second in rounds]
        each = [ratio(*pair, more_is_better) for pair in pairs]
        known = [value for value in each if value is not None]
        sides = [[value for value in side if value is not None] for side in zip(*pairs, strict=True)]
        rows.append({
            "figure": name, "first": statistics.median(sides[0]) if sides[0] else None,
            "second": statistics.median(sides[1]) if sides[1] else None,
            "ratio": statistics.median(known) if known else None, "rounds": each,
        })  # fmt: skip
    return rows
