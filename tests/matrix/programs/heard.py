"""What every program of this folder needs: the question on its standard input, and the facts that it ends with as a line of JSON."""

import json
import sys
from typing import Literal

question = json.load(sys.stdin)
url, model = question["url"], question["model"]
api = url + "/v1"
facts = []

City = Literal["Paris", "Rome", "Oslo"]
Color = Literal["red", "green", "blue"]
POPULATION = {"Paris": 2_103_000, "Rome": 2_746_000, "Oslo": 724_000}
ASK = "How many people live in Paris?"
SHORT = 32  # tokens of a free answer


def fact(text):
    facts.append(text)


def check(claim, whatever):
    """The claim becomes a fact, or the program ends."""
    if not whatever:
        sys.exit(f"not so: {claim}: {whatever!r}")
    facts.append(claim)


def tell():
    print("\n" + json.dumps(facts), flush=True)
