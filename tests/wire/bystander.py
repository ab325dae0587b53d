"""A well-behaved client beside others: the same stream again and again, which must say the same tokens each time."""

import json
import threading

QUESTION = dict(max_tokens=120, temperature=0.9, seed=77, ignore_eos=True, return_token_ids=True)
PROMPT = "Once upon a time, in a garden by the sea"


class Bystander:
    """`with Bystander(server) as bystander: …`; what went wrong is told at the end."""

    def __init__(self, server):
        self.server = server
        self.expected = self._stream()
        self.heard = 0
        self.faults = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self._stop.set()
        self._thread.join(timeout=600)
        if kind is None:
            assert not self._thread.is_alive(), "a stream of the bystander hangs"
            assert not self.faults, self.faults[0]
            assert self.heard > 0

    def _stream(self):
        tokens = []
        with self.server.stream(PROMPT, **QUESTION) as events:
            for event in events:
                if event != "[DONE]":
                    tokens += json.loads(event)["choices"][0]["token_ids"]
        assert len(tokens) == QUESTION["max_tokens"]
        return tokens

    def _listen(self):
        while not self._stop.is_set() and not self.faults:
            try:
                said = self._stream()
            except Exception as error:  # told in __exit__, by the test's own thread
                self.faults.append(repr(error))
                return
            if said != self.expected:
                self.faults.append(f"other tokens: {said} instead of {self.expected}")
            self.heard += 1
