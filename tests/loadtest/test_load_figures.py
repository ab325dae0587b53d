"""Figures of loadtest/load.py: percentiles beside numpy's, goodput, ratios, and how they are told."""

import io
import itertools
import random

import numpy as np
import pytest
from driver import answer as verdicts
from driver import compare, figures, show
from driver.answer import Answer
from driver.drive import Run
from driver.scenario import checked
from driver.schedule import Planned

CLOSED = {"kind": "closed", "concurrency": 1, "requests": 1}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", ["lognormal", "uniform", "exponential", "two humps"])
def test_percentiles_are_numpys_within_a_thousandth(shape, seed):
    draw = np.random.default_rng(seed)
    seconds = {
        "lognormal": lambda: draw.lognormal(-4, 1.5, 20000),
        "uniform": lambda: draw.uniform(0.001, 2, 20000),
        "exponential": lambda: draw.exponential(0.05, 20000) + 1e-3,
        "two humps": lambda: np.concatenate([draw.normal(0.01, 0.001, 19000), draw.normal(30, 1, 1000)]).clip(1e-3),
    }[shape]()  # fmt: skip
    histogram = figures.new_histogram()
    for one in seconds:
        figures.record(histogram, one)
    found = figures.percentiles(histogram)
    assert found["count"] == 20000
    for percent in figures.PERCENTILES:
        rank = percent / 100 * 20000
        # A rank's neighbours: who counts from where differs by one.
        low, high = np.sort(seconds)[[max(int(rank) - 2, 0), min(int(rank) + 1, 19999)]] * 1e3
        assert low * 0.999 - 0.001 <= found[f"p{percent:g}"] <= high * 1.001 + 0.001
    assert found["max"] == pytest.approx(seconds.max() * 1e3, rel=1e-3) and found["mean"] == pytest.approx(seconds.mean() * 1e3, rel=1e-3)


def test_what_is_too_short_or_too_long_is_counted_at_the_edge():
    histogram = figures.new_histogram()
    for seconds in (0.0, 1e-9, 1e9):
        figures.record(histogram, seconds)
    found = figures.percentiles(histogram)
    assert found["count"] == 3 and found["p50"] == 0.001 and found["max"] == pytest.approx(86_400_000, rel=1e-3)


def test_nothing_recorded_is_nothing_printed():
    assert figures.percentiles(figures.new_histogram()) == {"count": 0}


# ---- answers


def answered(index, intended_s, ttft_s=0.1, gap_s=0.01, num_tokens=11, delay_s=0.0):
    answer = Answer(Planned(index, intended_s, (), 20, num_tokens), intended_s)
    answer.sent_s = intended_s + delay_s
    answer.first_s = intended_s + ttft_s
    answer.gaps_s = [gap_s] * (num_tokens - 1)
    answer.last_s = answer.first_s + sum(answer.gaps_s)
    answer.num_events = answer.num_tokens = num_tokens
    answer.num_prompt_tokens, answer.num_cached_tokens = 25, 5
    answer.close(answer.last_s, verdicts.RIGHT, "")
    return answer


def not_right(index, intended_s, outcome, why):
    answer = Answer(Planned(index, intended_s, (), 20, 5), intended_s)
    answer.sent_s = intended_s
    answer.close(intended_s + 0.5, outcome, why)
    return answer


def run_of(answers, client_cpu=0.1, planned=None, **fields):
    scenario = checked({"arrivals": {"kind": "constant", "rate_per_s": 1, "duration_s": 1000}} | fields)
    end_s = max(answer.end_s for answer in answers)
    return Run(scenario, len(answers) if planned is None else planned, 0.0, end_s, answers, client_cpu, figures.new_histogram(), 3, False)


SLO = {"ttft_ms": 150, "tpot_ms": 20}


@pytest.mark.parametrize("ttft_s, gap_s, good", [(0.149, 0.0199, True), (0.151, 0.01, False), (0.1, 0.0201, False)])
def test_an_answer_is_good_within_all_of_its_limits(ttft_s, gap_s, good):
    assert answered(0, 1.0, ttft_s, gap_s).is_good(SLO) is good


def test_an_answer_of_one_token_has_no_time_per_token():
    one = answered(0, 1.0, num_tokens=1)
    assert one.tpot_s is None and one.is_good({"tpot_ms": 0.001})


def test_what_is_not_right_is_not_good_whatever_the_limits():
    for outcome in (verdicts.WRONG, verdicts.FAILED, verdicts.REFUSED, verdicts.UNFINISHED):
        assert not not_right(0, 1.0, outcome, "x").is_good({})


def test_goodput_counts_every_request_that_was_due():
    answers = [answered(i, i) for i in range(6)] + [answered(6, 6, ttft_s=1.0)]
    answers += [not_right(7, 7, verdicts.REFUSED, "status 429"), not_right(8, 8, verdicts.FAILED, "status 500")]
    answers += [not_right(9, 9, verdicts.FAILED, "timeout")]
    found = figures.summary(run_of(answers, slo=SLO))
    assert found["goodput"]["share"] == 0.6 and found["goodput"]["slo"] == SLO
    assert found["span_s"] == 9.5
    assert found["goodput"]["requests_per_s"] == pytest.approx(6 / 9.5)
    assert found["throughput"]["output_tokens_per_s"] == pytest.approx(77 / 9.5)
    assert found["throughput"]["prompt_tokens_per_s"] == pytest.approx(175 / 9.5)
    assert {key: found["requests"][key] for key in ("right", "wrong", "failed", "refused")} == {"right": 7, "wrong": 0, "failed": 2, "refused": 1}
    assert found["errors"] == {"refused: status 429": 1, "failed: status 500": 1, "failed: timeout": 1}
    assert found["latency_ms"]["ttft"]["count"] == 7 and found["latency_ms"]["gap"]["count"] == 70
    assert found["tokens"]["prompt_cached_share"] == 0.2
    due, ended = (sum(row[key] for row in found["timeline"]) for key in ("due", "ended"))
    assert due == ended == 10 and found["timeline"][-1]["in_flight"] == 0


def test_the_warm_up_is_not_measured():
    answers = [answered(0, 0.5, ttft_s=9.0), answered(1, 1.999, ttft_s=9.0), answered(2, 2.0), answered(3, 12.0)]
    found = figures.summary(run_of(answers, warmup_s=2))
    assert found["requests"]["warmup"] == 2 and found["requests"]["measured"] == 2
    assert found["latency_ms"]["ttft"]["max"] == pytest.approx(100, rel=1e-3)
    assert found["span_s"] == pytest.approx(12.2 - 2.0)


def test_a_run_without_a_right_answer_is_reported_too():
    found = figures.summary(run_of([not_right(0, 0, verdicts.FAILED, "timeout")], planned=4))
    assert found["goodput"]["share"] == 0 and found["tokens"] == {} and found["requests"]["unsent"] == 3
    text = show.run_text(found, "title")
    assert "1 failed" in text and "1 × failed: timeout" in text and "3 never sent" in text


def test_time_to_the_first_token_counts_from_when_it_was_due():
    found = figures.summary(run_of([answered(0, 1.0, ttft_s=0.5, delay_s=0.4)]))["latency_ms"]
    assert found["ttft"]["p50"] == pytest.approx(500, rel=1e-3)
    assert found["ttft_from_send"]["p50"] == pytest.approx(100, rel=1e-3)
    assert found["send_delay"]["p50"] == pytest.approx(400, rel=1e-3)


def test_a_client_that_does_not_keep_up_says_so():
    assert figures.summary(run_of([answered(0, 1.0)]))["client"]["saturated"] is False
    busy = figures.summary(run_of([answered(0, 1.0)], client_cpu=0.95))
    assert busy["client"]["saturated"] and "doubtful: the client used 95% of its core" in show.run_text(busy, "t")
    late = figures.summary(run_of([answered(0, 1.0, delay_s=0.05)]))["client"]
    assert late["saturated"] and "requests were sent 50 ms late" in late["why"][0]
    run = run_of([answered(0, 1.0)])
    figures.record(run.lag, 0.2)
    assert "timers ran 200 ms late" in figures.summary(run)["client"]["why"][0]


# ---- comparison


def summary_of(tokens_per_s, ttft_ms):
    latency = {"p50": ttft_ms, "p99": 2 * ttft_ms}
    return {"throughput": {"output_tokens_per_s": tokens_per_s, "requests_per_s": 1.0}, "goodput": {"share": 0.5},
            "latency_ms": {"ttft": latency, "tpot": {"count": 0}, "gap": latency, "e2e": latency}}  # fmt: skip


def test_ratios_are_over_one_where_the_first_is_ahead():
    rounds = [(summary_of(200, 10), summary_of(100, 30)), (summary_of(150, 10), summary_of(100, 20)), (summary_of(900, 10), summary_of(100, 10))]
    rows = {row["figure"]: row for row in compare.ratios(rounds)}
    assert rows["output tokens/s"]["ratio"] == 2.0 and rows["output tokens/s"]["rounds"] == [2.0, 1.5, 9.0]
    assert rows["TTFT p50"]["ratio"] == 2.0 and rows["TTFT p50"]["rounds"] == [3.0, 2.0, 1.0]
    assert (rows["TTFT p50"]["first"], rows["TTFT p50"]["second"]) == (10, 20)
    assert rows["goodput, share"]["ratio"] == 1.0
    assert rows["TPOT p50"]["ratio"] is None and rows["TPOT p50"]["first"] is None
    text = show.compare_text(compare.ratios(rounds), ("http://a", "http://b"))
    assert "2.00×" in text and "1.50–9.00" in text


def test_a_reversed_comparison_has_the_inverse_ratios():
    draw = random.Random(1)
    rounds = [(summary_of(draw.uniform(50, 99), draw.uniform(1, 9)), summary_of(draw.uniform(50, 99), draw.uniform(1, 9))) for _ in range(5)]
    there, back = compare.ratios(rounds), compare.ratios([pair[::-1] for pair in rounds])
    for one, other in zip(there, back, strict=True):
        assert one["ratio"] is other["ratio"] is None or one["ratio"] * other["ratio"] == pytest.approx(1)


def test_both_servers_have_every_round_and_begin_equally_often():
    turns = list(compare.turns(4))
    assert [number for number, _ in turns] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [side for _, side in turns] == [0, 1, 1, 0, 0, 1, 1, 0]


# ---- how it is told


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_colours_are_for_terminals_alone(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert show.painter(io.StringIO())("31", "x") == "x"
    assert show.painter(Terminal())("31", "x") == "\033[31mx\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert show.painter(Terminal())("31", "x") == "x"


def test_columns_stand_below_each_other():
    lines = show.table(["name", "a", "b"], [["x", "1.0", "22,222.0"], ["longer", "10.0", "–"]])
    assert len({len(line) for line in lines}) == 1
    assert list(itertools.accumulate(map(len, lines)))[-1] == 3 * len(lines[0])


def test_a_page_needs_nothing_else_and_shows_every_plot():
    pytest.importorskip("matplotlib")
    from driver import page

    answers = [answered(i, i * 0.1, ttft_s=0.05 + 0.001 * i) for i in range(100)] + [not_right(100, 10, verdicts.FAILED, "<script>")]
    found = figures.summary(run_of(answers))
    one = page.run_page(found, "a & b")
    assert one.count("<svg") == one.count("</svg>") == 2 and "a &amp; b" in one
    assert "<script" not in one and "<link" not in one and 'src="' not in one and "@import" not in one
    both = page.compare_page(compare.ratios([(found, found)]), [(found, found)], ("http://a", "http://b"), "t")
    assert both.count("<svg") == 2 and "Round 1, B: http://b" in both


def test_the_curve_of_a_histogram_ends_at_its_longest():
    found = figures.summary(run_of([answered(i, i, ttft_s=0.1 * (i + 1)) for i in range(10)]))
    pytest.importorskip("matplotlib")
    from driver import page

    points = page.curve(found["histograms"]["ttft"])
    assert [time for time, _ in points] == pytest.approx([100 * (i + 1) for i in range(10)], rel=1e-3)
    assert [part for _, part in points] == pytest.approx([10 / (9 - i) if i < 9 else 20 for i in range(10)])


def test_a_round_is_printed_with_what_makes_it_doubtful():
    found = figures.summary(run_of([answered(0, 1.0), not_right(1, 2.0, verdicts.REFUSED, "status 503")], client_cpu=0.99))
    text = show.round_text(found, "round 1, A").splitlines()
    assert text[0].startswith("round 1, A: 2 requests, 1 right") and len(text) == 3
    assert "1 × refused: status 503" in text[1] and "doubtful" in text[2]
