"""Plots and tables of docs/scenarios.md, from the CSV files beside it: python loadtest/report.py [--tables-only]

A table stands in the page between `<!-- table NAME -->` and `<!-- end -->` and is made anew; the text around it is people's.
"""

import argparse
import csv
import json
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "scenarios.md"
FIGURES = ROOT / "docs" / "scenarios"

# Okabe and Ito's colours: told apart by everybody.
BLUE, ORANGE, GREEN, PURPLE, SKY, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#555555"
POLICIES = ["fcfs", "priority", "deadline", "fair", "cache"]


def read(name):
    """Columns of a CSV file: numbers where all of a column are numbers."""
    with open(FIGURES / f"{name}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    for key, cells in columns.items():
        try:
            columns[key] = [float(cell) for cell in cells]
        except ValueError:
            pass
    return columns


def where(columns, **wanted):
    """The rows in which these columns have these values."""
    chosen = [i for i in range(len(next(iter(columns.values())))) if all(columns[k][i] == v for k, v in wanted.items())]
    return {key: [cells[i] for i in chosen] for key, cells in columns.items()}


def one(columns, key, **wanted):
    (value,) = where(columns, **wanted)[key]
    return value


# ---- tables


def markdown(header, rows):
    align = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, align, *rows])


def count(value):
    return f"{value:,.0f}"


def percent(value):
    return f"{100 * value:.0f} %" if value >= 0.9995 or value == 0 else f"{100 * value:.1f} %"


def utilisation_table():
    data, rows = read("utilisation"), []
    for mix, label in [("notebook", "4 requests"), ("sixteen", "16 requests")]:
        part = where(data, mix=mix)
        paged, static, batch = (max(part[k]) for k in ("paged_blocks", "static_blocks", "static_batch_blocks"))
        rows.append([label, count(paged), count(static), percent(paged / static), count(batch), percent(paged / batch)])
    return markdown(["peak, in blocks of 4 tokens", "paged", "static, those running", "paged / static", "static, all", "paged / static"], rows)


ROOMS = [
    ("paged_16_tokens", "blocks of 16 tokens", BLUE),
    ("paged_64_tokens", "blocks of 64 tokens", SKY),
    ("static_exact_tokens", "reserved: exact length, known before", GREEN),
    ("static_doubled_tokens", "reserved: answer to a power of two", ORANGE),
    ("static_whole_tokens", "reserved: the model's 2,048 tokens", RED),
]


def waste_table():
    data = read("waste")
    stored = sum(data["stored_tokens"])
    rows = [[label, percent(stored / sum(data[key])), percent(1 - stored / sum(data[key]))] for key, label, _ in ROOMS]
    return markdown(["KV memory", "holds tokens", "wasted"], rows)


def preemption_table():
    data = read("preemption")
    rows = [
        [f"{victim}, {back}", count(steps), count(times), count(again), f"{again / total:.0%}".replace("%", " %"), count(mean), count(p99), count(high), count(low)]
        for victim, back, steps, times, total, again, mean, p99, high, low in zip(*data.values())
    ]
    return markdown(["victim, way back", "steps", "preemptions", "rows run again", "of all rows", "mean finish", "p99 finish", "mean, priority 0", "mean, priority 2"], rows)


def policies_table():
    data, rows = read("policies"), []
    for policy in POLICIES:
        figure = lambda key, group="all": one(data, key, policy=policy, group=group)
        rows.append([
            policy, count(figure("mean_wait_steps")), count(figure("p99_wait_steps")), count(figure("max_wait_steps")),
            count(figure("max_overtaken")), count(figure("mean_wait_steps", "priority-0")), count(figure("mean_wait_steps", "urgent")),
            count((figure("mean_wait_steps", "tenant-1") + figure("mean_wait_steps", "tenant-2")) / 2),
            percent(figure("cached_share")), percent(figure("in_time_share")),
        ])
    header = ["policy", "mean wait", "p99", "longest", "overtaken at most", "priority 0", "urgent", "polite tenants", "prompt tokens cached", "in time"]
    return markdown(header, rows)


def max_batch_table():
    data = read("max-batch")
    rows = [
        [count(size), count(rate), f"{speedup:.2f}", f"{mean:.3f}", f"{p50:.3f}", f"{p99:.3f}", f"{ttft:.3f}", f"{ttft99:.3f}"]
        for size, _, rate, speedup, mean, p50, p99, ttft, ttft99 in zip(*data.values())
    ]
    return markdown(["running at once", "tokens/s", "over one", "finish, mean s", "p50", "p99", "first token, mean s", "p99"], rows)


def prefix_table():
    data = read("prefix")
    middle = {key: statistics.median(cells) for key, cells in data.items()}
    rows = [
        ["first token of the first request, s", f"{middle['first_ttft_s']:.3f}"],
        ["first token of the second request, s", f"{middle['second_ttft_s']:.3f}"],
        ["times sooner", f"{middle['ttft_ratio']:.1f}"],
        ["tokens of the second prompt", count(middle["prompt_tokens"])],
        ["of them shared with the first", count(middle["shared_tokens"])],
        ["of those in full blocks", count(middle["full_block_tokens"])],
        ["taken from the cache (fewest of the runs)", count(min(data["cached_tokens"]))],
        ["part of the second prompt not computed", percent(min(data["skipped_share"]))],
    ]
    return markdown([f"medians of {len(data['run'])} runs", ""], rows)


def step_cost_table():
    data = read("step-cost")
    cost = lambda bench, sequences: f"{one(data, 'median_us', benchmark=bench, sequences=sequences, prefix_cache=1.0):,.1f}"
    rows = [
        [count(sequences), cost("Scheduler", sequences), cost("BlockEnds", sequences), cost("Engine", sequences), f"{target:,}"]
        for sequences, target in [(1.0, 20), (64.0, 60), (1024.0, 1000)]
    ]
    return markdown(["sequences", "scheduler", "blocks end", "iteration", "target"], rows)


def waiting_table():
    data = read("step-cost")
    costs = [f"{one(data, 'median_us', benchmark=f'waiting-{policy}'):,.1f}" for policy in POLICIES]
    return markdown(["64 decode, 1,024 wait", *POLICIES], [["scheduler", *costs]])


def take_step_cost(path):
    """google-benchmark's JSON, which names the machine and its paths, as a CSV that does not."""
    lines = ["benchmark,sequences,prefix_cache,median_us"]
    for bench in json.loads(pathlib.Path(path).read_text())["benchmarks"]:
        if bench.get("aggregate_name") == "median":
            assert bench["time_unit"] == "us", bench
            name, *arguments = bench["run_name"].split("/")
            if name == "Waiting":
                lines.append(f"waiting-{arguments[0]},64,1,{bench['real_time']:.4g}")
                continue
            sequences, prefix_cache = arguments[:2]
            lines.append(f"{name},{sequences.split(':')[1]},{prefix_cache.split(':')[1]},{bench['real_time']:.4g}")
    (FIGURES / "step-cost.csv").write_text("\n".join(lines) + "\n")


def machine_line():
    return (FIGURES / "machine.txt").read_text().strip()


TABLES = {
    "utilisation": utilisation_table,
    "waste": waste_table,
    "preemption": preemption_table,
    "policies": policies_table,
    "max-batch": max_batch_table,
    "prefix": prefix_table,
    "step-cost": step_cost_table,
    "waiting": waiting_table,
    "machine": machine_line,
}


def with_tables(page):
    """The page with every table made anew."""
    def made(match):
        return f"<!-- table {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- table ([\w-]+) -->\n.*?<!-- end -->", made, page, flags=re.DOTALL)


# ---- plots


def label_bars(axis, bars, form="{:,.0f}"):
    axis.bar_label(bars, labels=[form.format(bar.get_height()) for bar in bars], fontsize=8, padding=2)


def plot_utilisation(plt):
    data = read("utilisation")
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8))
    for axis, (mix, title) in zip(axes, [("notebook", "4 requests"), ("sixteen", "16 requests, random arrivals")]):
        part = where(data, mix=mix)
        axis.axhline(part["static_batch_blocks"][0], color=GREY, linestyle="--", label="static: every request, longest length")
        axis.step(part["step"], part["static_blocks"], where="post", color=ORANGE, label="static: those running, longest length")
        axis.step(part["step"], part["paged_blocks"], where="post", color=BLUE, linewidth=2, label="paged: blocks held")
        axis.fill_between(part["step"], part["paged_blocks"], step="post", color=BLUE, alpha=0.15)
        axis.step(part["step"], part["running"], where="post", color=GREEN, linewidth=1, label="running sequences")
        axis.set(title=title, xlabel="step", ylabel="blocks of 4 tokens (sequences)", ylim=(0, None), xlim=(0, None))
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4)
    return figure


def plot_waste(plt):
    data = read("waste")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), width_ratios=[3, 2])
    shares = []
    for key, label, colour in ROOMS:
        points = [(step, 100 * stored / room) for step, stored, room in zip(data["step"], data["stored_tokens"], data[key]) if room]
        left.plot(*zip(*points), color=colour, linewidth=1.5, label=label)
        shares.append(100 * sum(data["stored_tokens"]) / sum(data[key]))
    left.set(title="While 200 chats come and go", xlabel="step", ylabel="allocated KV that holds tokens, %", ylim=(0, 102))
    names = ["blocks of 16", "blocks of 64", "exact length", "power of two", "2,048 tokens"]
    bars = right.bar(names, shares, color=[colour for _, _, colour in ROOMS])
    label_bars(right, bars, "{:.1f} %")
    right.set(title="Over all steps", ylabel="allocated KV that holds tokens, %", ylim=(0, 110))
    right.tick_params(axis="x", labelrotation=25, labelsize=8)
    figure.legend(*left.get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=3)
    return figure


def plot_preemption(plt):
    data = read("preemption")
    victims, backs = ["newest", "longest", "lowest-priority"], ["recompute", "prefix-cache", "swap"]
    panels = [
        ("preemptions", "Preemptions", "times"),
        ("recomputed_rows", "Rows run again", "rows"),
        ("mean_finish_steps", "Mean time to finish", "steps"),
        ("p99_finish_steps", "p99 of the time to finish", "steps"),
    ]
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6))
    for axis, (key, title, unit) in zip(axes, panels):
        for j, (back, colour) in enumerate(zip(backs, [BLUE, ORANGE, GREEN])):
            heights = [one(data, key, victim=victim, way_back=back) for victim in victims]
            bars = axis.bar([i + (j - 1) * 0.27 for i in range(3)], heights, 0.25, color=colour, label=back)
            axis.bar_label(bars, labels=[f"{h:,.0f}" for h in heights], fontsize=6.5, rotation=90, padding=2)
        axis.set(title=title, ylabel=unit)
        axis.set_xticks(range(3), ["newest", "longest", "lowest\npriority"], fontsize=8)
        axis.margins(y=0.22)
    axes[0].legend(fontsize=8, title="way back", title_fontsize=8, loc="upper right")
    axes[0].margins(y=0.6)
    return figure


def plot_policies(plt):
    data = read("policies")
    groups = [g for g in dict.fromkeys(data["group"])]
    waits = [[one(data, "mean_wait_steps", policy=p, group=g) for p in POLICIES] for g in groups]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[3, 2])
    left.grid(False)
    image = left.imshow(waits, cmap="Blues", aspect="auto", vmin=0)
    middle = max(map(max, waits)) / 2
    for y, row in enumerate(waits):
        for x, value in enumerate(row):
            left.text(x, y, f"{value:.0f}", ha="center", va="center", fontsize=9, color="white" if value > 1.2 * middle else "black")
    left.set_xticks(range(len(POLICIES)), POLICIES)
    left.set_yticks(range(len(groups)), [g.replace("-", " ") for g in groups], fontsize=9)
    left.set(title="Mean wait by group, steps")
    figure.colorbar(image, ax=left, fraction=0.04, pad=0.02).set_label("steps")
    figures = [("cached_share", "prompt tokens cached", BLUE), ("in_time_share", "ended in time", ORANGE)]
    for j, (key, label, colour) in enumerate(figures):
        heights = [100 * one(data, key, policy=p, group="all") for p in POLICIES]
        bars = right.bar([i + (j - 0.5) * 0.4 for i in range(len(POLICIES))], heights, 0.38, color=colour, label=label)
        label_bars(right, bars)
    right.set_xticks(range(len(POLICIES)), POLICIES)
    right.set(title="What each is for", ylabel="% of tokens, % of requests", ylim=(0, 125))
    right.legend(fontsize=8, loc="upper left", ncols=2)
    return figure


def plot_max_batch(plt):
    data = read("max-batch")
    sizes = data["max_num_seqs"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
    left.plot(sizes, data["tokens_per_s"], "o-", color=BLUE)
    left.set(title="Throughput", ylabel="tokens a second, all requests", ylim=(0, None))
    lines = [
        ("p99_finish_s", "o-", RED, "finish, p99"), ("mean_finish_s", "s-", ORANGE, "finish, mean"),
        ("p99_ttft_s", "o--", SKY, "first token, p99"), ("mean_ttft_s", "s--", BLUE, "first token, mean"),
    ]
    for key, style, colour, label in lines:
        right.plot(sizes, data[key], style, color=colour, label=label)
    right.set(title="Latency of 64 requests that come at once", ylabel="seconds", ylim=(0, None))
    right.legend(fontsize=8)
    for axis in (left, right):
        axis.set_xscale("log", base=2)
        axis.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
        axis.set_xlabel("sequences that may run at once")
    return figure


def plot_prefix(plt):
    data = read("prefix")
    figure, axis = plt.subplots(figsize=(6, 3.6))
    middles = [statistics.median(data[key]) for key in ("first_ttft_s", "second_ttft_s")]
    bars = axis.bar(["first request", "second request"], middles, 0.5, color=[ORANGE, SKY])
    axis.bar_label(bars, labels=[f"{height:.3f} s" for height in middles], label_type="center")
    for x, key in enumerate(("first_ttft_s", "second_ttft_s")):
        spread = [x + 0.04 * (i - (len(data[key]) - 1) / 2) for i in range(len(data[key]))]
        axis.plot(spread, data[key], "o", color=GREY, markersize=3.5)
    axis.set_yscale("log")
    axis.set_ylim(min(data["second_ttft_s"]) / 4, max(data["first_ttft_s"]) * 2)
    axis.set(title=f"{data['shared_tokens'][0]:,.0f} tokens shared, {min(data['cached_tokens']):,.0f} from the cache", ylabel="time to the first token, s (log)")
    return figure


PLOTS = {
    "utilisation": plot_utilisation,
    "waste": plot_waste,
    "preemption": plot_preemption,
    "policies": plot_policies,
    "max-batch": plot_max_batch,
    "prefix": plot_prefix,
}


def draw():
    import io

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image  # matplotlib needs it too

    plt.rcParams.update({
        "figure.constrained_layout.use": True, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
        "axes.axisbelow": True, "grid.alpha": 0.25, "axes.titlesize": 11, "axes.labelsize": 9, "xtick.labelsize": 9, "ytick.labelsize": 9,
    })
    for name, plot in PLOTS.items():
        figure, drawn = plot(plt), io.BytesIO()
        figure.savefig(drawn, dpi=100)
        plt.close(figure)
        # Few colours: a third of the bytes.
        Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(FIGURES / f"{name}.png", optimize=True)


def main():
    parser = argparse.ArgumentParser(description="plots and tables of docs/scenarios.md from docs/scenarios/*.csv")
    parser.add_argument("--tables-only", action="store_true", help="no plots, and so no matplotlib")
    parser.add_argument("--step-cost", metavar="FILE", help="what schedule_bench wrote as JSON: becomes step-cost.csv")
    options = parser.parse_args()
    if options.step_cost:
        take_step_cost(options.step_cost)
    if not options.tables_only:
        draw()
    PAGE.write_text(with_tables(PAGE.read_text()))


if __name__ == "__main__":
    main()
