"""How loadtest/load.py reads answers: the same however they are cut into pieces, and nothing that is no answer."""

import random

import pytest
from driver.wire import MAX_HEAD_BYTES, AnswerReader, BadAnswer

EVENTS = [b'{"a": "\xc3\xa9"}', b"two\nlines", b"", b"[DONE]"]


def body(end):
    lines = [b": a comment", b"", b"data: " + EVENTS[0], b"", b"event: x", b"data: two", b"data:lines", b"id: 7", b"", b"data", b"",
             b"retry: 3", b"", b"data: [DONE]", b"", b""]  # fmt: skip
    return end.join(lines)


def chunked(data, sizes):
    out, at = b"", 0
    while at < len(data):
        part = data[at : at + sizes[at % len(sizes)]]
        out += b"%X;x=y\r\n%s\r\n" % (len(part), part)
        at += len(part)
    return out + b"0\r\nTrailer: 1\r\n\r\n"


def head(*lines):
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Type: text/event-stream; charset=utf-8", *lines, b"", b""])


def forms():
    for end in (b"\n", b"\r\n"):
        text = body(end)
        yield head(b"Transfer-Encoding: chunked") + chunked(text, [1, 5, 60])
        yield b"HTTP/1.1 100 Continue\r\n\r\n" + head(b"transfer-encoding: Chunked") + chunked(text, [1000])
        yield head(b"Content-Length: %d" % len(text)) + text


FORMS = list(forms())


def read(pieces):
    reader, events = AnswerReader(), []
    for piece in pieces:
        events += reader.feed(piece)
    return reader, events


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_a_stream_is_the_same_at_every_split(form):
    for at in range(len(form) + 1):
        reader, events = read([form[:at], form[at:]])
        assert events == EVENTS and reader.done and reader.keep_alive and reader.status == 200, at


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_a_stream_is_the_same_in_pieces_of_any_size(form):
    draw = random.Random(1)
    for most in [1] + [draw.randint(2, 40) for _ in range(50)]:
        pieces, at = [], 0
        while at < len(form):
            size = draw.randint(1, most)
            pieces.append(form[at : at + size])
            at += size
        reader, events = read(pieces)
        assert events == EVENTS and reader.done


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_a_stream_that_is_cut_anywhere_is_not_whole(form):
    for at in range(len(form)):
        reader, events = read([form[:at]])
        assert not reader.end() and events == EVENTS[: len(events)]


def test_events_come_as_soon_as_they_end():
    reader = AnswerReader()
    reader.feed(head(b"Transfer-Encoding: chunked"))
    assert reader.feed(b"ff\r\ndata: 1\n") == []
    assert reader.feed(b"\ndata: 2\n\ndata: 3") == [b"1", b"2"]


def test_without_a_length_the_end_of_the_connection_is_the_end():
    reader, events = read([head() + body(b"\n")])
    assert events == EVENTS and not reader.done and not reader.keep_alive
    assert reader.end()


def test_other_bodies_are_gathered_and_their_connection_is_kept():
    reader, events = read([b"HTTP/1.1 429 Too Many\r\nContent-Length: 4\r\n\r\nab", b"cd"])
    assert (reader.status, reader.body, events, reader.done, reader.keep_alive) == (429, b"abcd", [], True, True)
    assert read([b"HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n"])[0].done
    assert not read([b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"])[0].keep_alive
    assert not read([b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"])[0].keep_alive


@pytest.mark.parametrize(
    "bad",
    [
        b"SSH-2.0\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n123456789\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * (MAX_HEAD_BYTES // 6 + 1),
    ],
    ids=range(13),
)
def test_what_is_no_answer_is_refused(bad):
    with pytest.raises(BadAnswer):
        read([bad])
