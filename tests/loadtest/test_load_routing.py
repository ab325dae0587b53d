"""What compare_routing.py expects of caches is what least recently used lists do."""

import collections
import random

import pytest

from compare_routing import BLOCK_TOKENS, DOCUMENT_TOKENS, expected_hits, window

DOCUMENT_BLOCKS = DOCUMENT_TOKENS // BLOCK_TOKENS
POPULARITY = [1 / k / sum(1 / i for i in range(1, 33)) for k in range(1, 33)]


class Lists:
    """Replicas as lists of documents and of what requests leave behind, the least recently used first."""

    def __init__(self, replicas, blocks):
        self.lists, self.blocks = [collections.OrderedDict() for _ in range(replicas)], blocks

    def ask(self, replica, document, name, own_blocks):
        """Whether the document was there."""
        kept = self.lists[replica]
        found = document in kept
        kept[document] = DOCUMENT_BLOCKS
        kept.move_to_end(document)
        kept[name] = own_blocks
        while sum(kept.values()) > self.blocks:
            kept.popitem(last=False)
        return found


def simulated(replicas, blocks, aware, num_requests, own_blocks, num_runs=40):
    found = 0
    for seed in range(num_runs):
        draw, lists = random.Random(seed), Lists(replicas, blocks)
        for n in range(num_requests):
            (document,) = draw.choices(range(32), POPULARITY)
            replica = document % replicas if aware else draw.randrange(replicas)
            found += lists.ask(replica, document, ("own", n), own_blocks)
    return found / (num_runs * num_requests)


@pytest.mark.parametrize("replicas, aware", [(1, True), (3, False), (3, True)])
@pytest.mark.parametrize("blocks", [128, 256, 100_000])
def test_expected_hits_are_those_of_lists(replicas, aware, blocks):
    """A list gives up whole documents, and has up to one less than fits: as many hits as with the room, and as with a document less."""
    found = simulated(replicas, blocks, aware, 300, 5)
    most, least = (expected_hits(POPULARITY, 300, room, 5, replicas, aware) for room in (blocks, blocks - DOCUMENT_BLOCKS))
    # Three deviations of 12,000 requests. Three homes are uneven, and what one has too little of room another cannot give it.
    slack = 0.03 if aware and replicas > 1 else 0.015
    assert least - slack <= found <= most + slack


def test_a_window_is_what_fills_the_list():
    over = window(POPULARITY, 256, 5)
    assert sum(DOCUMENT_BLOCKS * (1 - (1 - p) ** over) for p in POPULARITY) + 5 * over == pytest.approx(256)
    assert window(POPULARITY, None, 5) == float("inf")
