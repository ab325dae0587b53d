"""What became of one request: its times, what it said, and the verdict."""

import json

from driver.wire import BadAnswer

RIGHT, WRONG, FAILED, REFUSED, UNFINISHED = "right", "wrong", "failed", "refused", "unfinished"
TEXTS = ("text", "content", "reasoning_content", "reasoning", "tool_calls")
REFUSALS = (429, 503)  # an overloaded server's honest no


class Answer:
    """Times are of the monotonic clock in seconds; `intended_s` is when the plan wanted the request sent."""

    __slots__ = (
        "planned", "intended_s", "sent_s", "first_s", "last_s", "end_s", "gaps_s", "num_events", "num_tokens", "num_prompt_tokens",
        "num_cached_tokens", "finish_reason", "said_done", "outcome", "why",
    )  # fmt: skip

    def __init__(self, planned, intended_s):
        self.planned, self.intended_s = planned, intended_s
        self.sent_s = self.first_s = self.last_s = self.end_s = None
        self.gaps_s = []
        self.num_events = 0  # with text in them
        self.num_tokens = self.num_prompt_tokens = self.num_cached_tokens = None  # as the server's usage says
        self.finish_reason = None
        self.said_done = False
        self.outcome, self.why = UNFINISHED, ""

    def take_event(self, data, now_s):
        """One event of a stream. BadAnswer when it is none of the API."""
        if self.said_done:
            raise BadAnswer("an event behind [DONE]")
        if data == b"[DONE]":
            self.said_done = True
        else:
            self.take_object(data, now_s)

    def take_object(self, data, now_s):
        """An event, or the whole answer of a request without a stream."""
        try:
            said = json.loads(data)
            if said.get("error"):
                raise BadAnswer("an error event")
            usage = said.get("usage")
            has_text = False
            for choice in said["choices"]:
                part = choice.get("delta") or choice.get("message") or choice
                has_text = has_text or any(part.get(name) for name in TEXTS)
                self.finish_reason = choice.get("finish_reason") or self.finish_reason
            if usage:
                self.num_tokens, self.num_prompt_tokens = int(usage["completion_tokens"]), int(usage["prompt_tokens"])
                cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
                self.num_cached_tokens = None if cached is None else int(cached)
        except BadAnswer:
            raise
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BadAnswer("an event that is no object of the API") from None
        if has_text:
            self._text_came(now_s)

    def _text_came(self, now_s):
        if self.first_s is None:
            self.first_s = now_s
        else:
            self.gaps_s.append(now_s - self.last_s)
        self.last_s = now_s
        self.num_events += 1

    def end(self, now_s, scenario):
        """All of a 200 has come: right or wrong?"""
        if self.first_s is None:  # text may be empty where every token is a special one
            self.first_s = self.last_s = now_s
        self.why = self.fault(scenario)
        self.close(now_s, WRONG if self.why else RIGHT, self.why)

    def close(self, now_s, outcome, why):
        self.end_s, self.outcome, self.why = now_s, outcome, why

    def fault(self, scenario):
        """What is wrong with a whole answer; nothing: an empty text."""
        asked = self.planned.answer_tokens
        if scenario.stream and not self.said_done:
            return "no [DONE]"
        if self.finish_reason is None:
            return "no finish_reason"
        if self.num_tokens is None:
            return "no usage"
        if self.num_tokens > asked or (scenario.ignore_eos and self.num_tokens != asked):
            return "another number of tokens than asked"
        if scenario.ignore_eos and self.finish_reason != "length":
            return f"finish_reason {str(self.finish_reason)[:20]!r} instead of 'length'"
        return ""

    # Figures, in seconds; None where there is none.

    @property
    def ttft_s(self):
        return self.first_s - self.intended_s

    @property
    def e2e_s(self):
        return self.end_s - self.intended_s

    @property
    def tpot_s(self):
        """Seconds for each token behind the first; an answer that came at once has none."""
        return (self.last_s - self.first_s) / (self.num_tokens - 1) if min(self.num_events, self.num_tokens) > 1 else None

    def is_good(self, slo):
        """Right, and within every limit that there is."""
        if self.outcome != RIGHT:
            return False
        figures = {"ttft_ms": self.ttft_s, "tpot_ms": self.tpot_s, "e2e_ms": self.e2e_s}
        return all(figures[name] is None or figures[name] * 1000 <= limit for name, limit in slo.items())
