"""One answer of HTTP/1.1, read in pieces of any size: its status, and its body or the server-sent events in it."""

MAX_HEAD_BYTES = 65536
MAX_LINE_BYTES = 16 << 20


class BadAnswer(ValueError):
    """What came is not HTTP, or not what was asked for. The text is short and has no part of the answer in it."""


class AnswerReader:
    """feed() gives the data of the events that each piece ends; other bodies gather in `body`.

    Lines of events end with LF or CRLF; comments and fields other than data are passed over (WHATWG HTML, 9.2).
    Bodies: chunked, of known length, or up to the end of the connection (RFC 9112, 6.3).
    """

    def __init__(self):
        self.status = 0
        self.headers = {}
        self.body = b""
        self.done = False
        self.keep_alive = False
        self.streams = False  # the body is server-sent events
        self._read = self._read_head
        self._rest = b""  # of the connection, not yet understood
        self._line = b""  # of the events: an unfinished line
        self._data = []  # of the event that has begun
        self._left = 0

    def feed(self, piece):
        """The data of events that end in this piece, in order. BadAnswer when it cannot go on."""
        events = []
        self._rest += piece
        while not self.done and self._read(events):
            pass
        if self.done and self._rest:
            raise BadAnswer("bytes behind the end of the answer")
        return events

    def end(self):
        """The connection has ended. Whether the answer was whole; only one without a length is so."""
        if self._read == self._read_to_end:
            self.done = True
        return self.done

    # Each reads one thing from _rest and says whether there was enough for it.

    def _read_head(self, _):
        end = self._rest.find(b"\r\n\r\n")
        if end < 0:
            if len(self._rest) > MAX_HEAD_BYTES:
                raise BadAnswer(f"a head of more than {MAX_HEAD_BYTES} bytes")
            return False
        first, *lines = self._rest[:end].decode("latin-1").split("\r\n")
        self._rest = self._rest[end + 4 :]
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or len(words[1]) != 3 or not words[1].isdigit():
            raise BadAnswer("no status line of HTTP/1.1")
        status = int(words[1])
        if status < 200:
            return True  # a preliminary one: the answer follows
        self.status = status
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise BadAnswer("a header without a colon")
            self.headers[name.strip().lower()] = value.strip()
        self.keep_alive = words[0] != "HTTP/1.0" and self.headers.get("connection", "").lower() != "close"
        self.streams = self.headers.get("content-type", "").lower().startswith("text/event-stream")
        self._choose_body()
        return True

    def _choose_body(self):
        coding, length = self.headers.get("transfer-encoding", "").lower(), self.headers.get("content-length")
        if coding == "chunked":
            self._read = self._read_chunk_size
        elif coding:
            raise BadAnswer("a transfer coding that was not asked for")
        elif length is not None:
            if not length.isdigit() or len(length) > 12:
                raise BadAnswer("a Content-Length that is no number")
            self._left = int(length)
            self._read = self._read_length
            self.done = self._left == 0
        else:
            self.keep_alive = False
            self._read = self._read_to_end

    def _read_chunk_size(self, _):
        end = self._rest.find(b"\r\n")
        if end < 0:
            return self._wait_for_line()
        size = self._rest[:end].split(b";")[0].strip()
        if not size or len(size) > 8 or size.strip(b"0123456789abcdefABCDEF"):
            raise BadAnswer("a chunk size that is no number")
        self._rest = self._rest[end + 2 :]
        self._left = int(size, 16)
        self._read = self._read_chunk if self._left else self._read_trailer
        return True

    def _read_chunk(self, events):
        if len(self._rest) < self._left + 2:
            # What is there of the chunk is taken at once: a long one need not be gathered first.
            part = min(len(self._rest), self._left)
            if part:
                self._take(self._rest[:part], events)
                self._rest = self._rest[part:]
                self._left -= part
            return False
        if self._rest[self._left : self._left + 2] != b"\r\n":
            raise BadAnswer("a chunk that is longer than its size")
        self._take(self._rest[: self._left], events)
        self._rest = self._rest[self._left + 2 :]
        self._read = self._read_chunk_size
        return True

    def _read_trailer(self, _):
        end = self._rest.find(b"\r\n")
        if end < 0:
            return self._wait_for_line()
        self.done = end == 0
        self._rest = self._rest[end + 2 :]
        return True

    def _wait_for_line(self):
        if len(self._rest) > MAX_HEAD_BYTES:
            raise BadAnswer(f"a line of more than {MAX_HEAD_BYTES} bytes between chunks")
        return False

    def _read_length(self, events):
        part = self._rest[: self._left]
        self._rest = self._rest[len(part) :]
        self._left -= len(part)
        self._take(part, events)
        self.done = self._left == 0
        return False

    def _read_to_end(self, events):
        part, self._rest = self._rest, b""
        self._take(part, events)
        return False

    def _take(self, part, events):
        """Bytes of the body."""
        if not self.streams:
            self.body += part
            if len(self.body) > MAX_LINE_BYTES:
                raise BadAnswer(f"a body of more than {MAX_LINE_BYTES} bytes")
            return
        *lines, self._line = (self._line + part).split(b"\n")
        if len(self._line) > MAX_LINE_BYTES:
            raise BadAnswer(f"an event's line of more than {MAX_LINE_BYTES} bytes")
        for line in lines:
            if line.endswith(b"\r"):
                line = line[:-1]
            if not line:
                if self._data:
                    events.append(b"\n".join(self._data))
                    self._data = []
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line == b"data":
                self._data.append(b"")
