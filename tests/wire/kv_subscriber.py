"""A router's view of a server's prefix cache, made of its KV events alone: ZeroMQ, msgspec, and no knowledge of quire."""

import msgspec
import zmq

PATIENCE_MS = 120_000
END = (-1).to_bytes(8, "big", signed=True)


def events_as(array_like):
    """vLLM's events, as maps or as arrays, and a decoder of batches that takes nothing else."""

    class BlockStored(msgspec.Struct, tag=True, array_like=array_like, forbid_unknown_fields=True):
        block_hashes: list[int]
        parent_block_hash: int | None
        token_ids: list[int]
        block_size: int
        lora_id: int | None
        medium: str | None
        lora_name: str | None
        extra_keys: list[list[str] | None] | None = None

    class BlockRemoved(msgspec.Struct, tag=True, array_like=array_like, forbid_unknown_fields=True):
        block_hashes: list[int]
        medium: str | None

    class AllBlocksCleared(msgspec.Struct, tag=True, array_like=array_like, forbid_unknown_fields=True):
        pass

    class Batch(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
        ts: float
        events: list[BlockStored | BlockRemoved | AllBlocksCleared]
        data_parallel_rank: int | None = None

    return msgspec.msgpack.Decoder(Batch)


class Subscriber:
    """Hears every batch from when it joined; what was before, it asks for."""

    def __init__(self, endpoint, replay_endpoint, array_like=False, topic=""):
        self.decoder = events_as(array_like)
        self.context = zmq.Context()
        self.live = self._socket(zmq.SUB, endpoint)
        self.live.setsockopt_string(zmq.SUBSCRIBE, topic)
        self.replays = self._socket(zmq.DEALER, replay_endpoint)
        self.next = 0  # number of the first batch not heard
        self.num_live = 0
        self.topics = set()
        self.batches = []
        self.forget()

    def _socket(self, kind, endpoint):
        socket = self.context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.connect(endpoint)
        return socket

    def close(self):
        self.context.destroy(linger=0)

    def forget(self):
        self.blocks = {}  # hash → (parent, tokens, root)
        self.children = {}  # (parent, tokens, root) → hash

    # ---- the wire

    def replay(self, first):
        """(topic, number, payload) of each batch from `first` on that the server still has."""
        self.replays.send_multipart([b"", first.to_bytes(8, "big")])
        told = []
        while True:
            empty, topic, number, payload = self.replays.recv_multipart()
            assert empty == b""
            if number == END:
                assert (topic, payload) == (b"", b"")
                return told
            told.append((topic.decode(), int.from_bytes(number, "big"), payload))

    def catch_up(self):
        """Everything that the server did before this call. Live where a message comes, and from the replay before the first."""
        told = self.replay(self.next)
        last = told[-1][1] if told else self.next - 1
        while self.next <= last:
            topic, number, payload = self._live_message(last)
            if number is None or number > self.next:  # it joined late, or missed some
                for topic, missed, payload in told:
                    if self.next <= missed < (last + 1 if number is None else number):
                        self._hear(topic, missed, payload)
                continue
            if number == self.next:
                self.num_live += 1
                self._hear(topic, number, payload)

    def _live_message(self, last):
        # Once it has heard anything live, everything comes live.
        if self.live.poll(PATIENCE_MS if self.num_live else 100) == 0:
            assert not self.num_live, f"number {last} was published and never came"
            return None, None, None
        topic, number, payload = self.live.recv_multipart()
        assert len(number) == 8
        return topic.decode(), int.from_bytes(number, "big"), payload

    def _hear(self, topic, number, payload):
        assert number == self.next, f"{number} came, and {self.next} was expected"
        self.next += 1
        self.topics.add(topic)
        batch = self.decoder.decode(payload)
        assert batch.data_parallel_rank == 0 and batch.events
        self.batches.append(batch)
        for event in batch.events:
            getattr(self, "_" + type(event).__name__)(event)

    # ---- the index

    def _BlockStored(self, event):
        size = event.block_size
        assert event.medium == "CPU" and event.lora_id is None and event.lora_name is None
        assert len(event.token_ids) == size * len(event.block_hashes)
        parent, root = event.parent_block_hash, None
        if parent is None:
            root = tuple(event.extra_keys[0]) if event.extra_keys else None
        else:
            assert event.extra_keys is None
        assert event.extra_keys is None or event.extra_keys[1:] == [None] * (len(event.block_hashes) - 1)
        for i, block in enumerate(event.block_hashes):
            assert 0 < block < 1 << 64 and block not in self.blocks
            link = (parent, tuple(event.token_ids[i * size:(i + 1) * size]), root)
            assert link not in self.children, "two blocks hold the same"
            self.blocks[block], self.children[link] = link, block
            parent, root = block, None
        self.block_size = size

    def _BlockRemoved(self, event):
        assert event.medium == "CPU"
        for block in event.block_hashes:
            del self.children[self.blocks.pop(block)]

    def _AllBlocksCleared(self, event):
        self.forget()

    def num_cached(self, prompt, root=None):
        """Tokens of a prompt that a request would find in whole blocks. Its last token always runs."""
        parent, num = None, 0
        while self.blocks and num + self.block_size < len(prompt):
            link = (parent, tuple(prompt[num:num + self.block_size]), root)
            if link not in self.children:
                break
            parent, root, num = self.children[link], None, num + self.block_size
        return num
