"""A report as one HTML file that needs nothing else: tables, and plots as SVG inside."""

import html
import io
import re

from hdrh.histogram import HdrHistogram

from driver import show

# Okabe and Ito's colours: told apart by everybody.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
td, th { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd; } td:first-child, th:first-child { text-align: left; }
dt { font-weight: 600; float: left; clear: left; width: 8rem; } dd { margin-left: 8rem; } svg { max-width: 100%; height: auto; }
"""


def html_table(header, rows):
    line = lambda cells, tag: "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
    return "<table>" + line(header, "th") + "".join(line(row, "td") for row in rows) + "</table>"


def run_section(summary, title):
    told = "".join(f"<dt>{html.escape(label) or '&nbsp;'}</dt><dd>{html.escape(text)}</dd>" for label, text in show.facts(summary))
    latencies = html_table(["milliseconds", *show.COLUMNS], [[label, *cells] for label, cells in show.latency_rows(summary)])
    return f"<h2>{html.escape(title)}</h2><dl>{told}</dl>{latencies}"


def run_page(summary, title):
    plots = plot_latencies([(title, summary)]) + plot_timeline(summary)
    return page(title, run_section(summary, "Figures") + plots)


def compare_page(rows, rounds, urls, title):
    """`rounds` are pairs of summaries; the plots are of the first."""
    body = html_table(show.RATIO_HEADER, show.ratio_rows(rows)) + "<p>Ratios are over 1 where A is ahead.</p>" + plot_ratios(rows)
    body += plot_latencies([("A", rounds[0][0]), ("B", rounds[0][1])])
    for i, pair in enumerate(rounds, 1):
        for letter, url, summary in zip("AB", urls, pair, strict=True):
            body += run_section(summary, f"Round {i}, {letter}: {url}")
    return page(title, body)


def page(title, body):
    escaped = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escaped}</title><style>{STYLE}</style></head>'
        f"<body><h1>{escaped}</h1>{body}</body></html>\n"
    )


# ---- plots


def pyplot():
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({
        "svg.hashsalt": "quire", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
        "axes.axisbelow": True, "grid.alpha": 0.25, "figure.constrained_layout.use": True,
    })  # fmt: skip
    return plt


def svg(plt, figure):
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    drawing = text.getvalue()
    return re.sub(r"<metadata>.*?</metadata>", "", drawing[drawing.index("<svg") :], flags=re.DOTALL)


def curve(encoded):
    """(milliseconds, 1 / part that took longer): each step of the percentile axis is ten times rarer."""
    histogram = HdrHistogram.decode(encoded)
    points, seen = [], 0
    for item in histogram.get_recorded_iterator():
        seen += item.count_at_value_iterated_to
        left = histogram.total_count - seen
        points.append((item.value_iterated_to / 1000, histogram.total_count / max(left, 0.5)))
    return points


def plot_latencies(named):
    """Each latency of each (name, summary) by percentile."""
    shown = [(name, label) for name, label in show.LATENCIES if any(name in summary["histograms"] for _, summary in named)]
    if not shown:
        return ""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(9, 4.2))
    for colour, (name, label) in zip(COLOURS, shown):
        for style, (who, summary) in zip(("-", "--"), named):
            if name in summary["histograms"]:
                xs, ys = zip(*curve(summary["histograms"][name]))
                text = label.replace("  ", "TTFT ") + (f", {who}" if len(named) > 1 else "")
                axes.plot(ys, xs, style, color=colour, label=text, linewidth=1.4)
    ticks = [(2, "50 %"), (10, "90 %"), (100, "99 %"), (1000, "99.9 %"), (10000, "99.99 %")]
    axes.set(xscale="log", yscale="log", xlabel="percentile", ylabel="milliseconds", title="Latency by percentile")
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.1))  # below a tenth of a millisecond events came in one read
    highest = axes.get_xlim()[1]
    axes.set_xticks([at for at, _ in ticks if at <= highest], [text for at, text in ticks if at <= highest])
    axes.set_xticks([], minor=True)
    axes.legend(fontsize=8)
    return svg(plt, figure)


def plot_timeline(summary):
    rows = summary["timeline"]
    plt = pyplot()
    figure, axes = plt.subplots(3, 1, figsize=(9, 6.6), sharex=True)
    column = lambda key: [row[key] for row in rows]
    seconds = range(len(rows))
    axes[0].step(seconds, column("due"), color=COLOURS[0], label="due", where="mid")
    axes[0].step(seconds, column("ended"), color=COLOURS[2], label="ended", where="mid")
    axes[0].step(seconds, column("not_right"), color=COLOURS[1], label="not right", where="mid")
    axes[0].set(title="Requests by the second", ylabel="requests")
    axes[1].step(seconds, column("in_flight"), color=COLOURS[0], label="in flight", where="mid")
    axes[1].set(ylabel="requests")
    some = [(second, row["ttft_p50_ms"], row["ttft_max_ms"]) for second, row in enumerate(rows) if row["ttft_p50_ms"] is not None]
    if some:
        xs, p50, longest = zip(*some)
        axes[2].plot(xs, p50, "o", markersize=4, color=COLOURS[0], label="TTFT p50 of those due then")
        axes[2].plot(xs, longest, ".", color=COLOURS[1], label="longest")
        axes[2].set(yscale="log")
    axes[2].set(ylabel="milliseconds", xlabel="seconds after the start")
    for axis in axes:
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8, loc="upper right")
    return svg(plt, figure)


def plot_ratios(rows):
    shown = [row for row in rows if row["ratio"]]
    if not shown:
        return ""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(9, 0.8 + 0.32 * len(shown)))
    axes.barh(range(len(shown)), [row["ratio"] for row in shown], color=COLOURS[0], height=0.6)
    for y, row in enumerate(shown):
        known = [value for value in row["rounds"] if value is not None]
        axes.plot(known, [y] * len(known), "o", color="#555555", markersize=3)
    axes.axvline(1, color="#555555", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [row["figure"] for row in shown])
    axes.invert_yaxis()
    axes.set_xlabel("A over B, the median and each round; over 1 where A is ahead")
    return svg(plt, figure)
