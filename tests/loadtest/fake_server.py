"""A server of completions that says nothing sensible, well or badly on purpose: what a load driver is tested against.

    python tests/loadtest/fake_server.py INTERVAL_S HOLD     serves on a free port, which it prints, until it is ended
"""

import asyncio
import collections
import json
import resource
import sys
import threading

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
FAULTS = (
    "cut before", "cut", "500", "503", "429", "one less", "one more", "no [DONE]", "no finish", "no usage", "stop", "garbage", "error event",
    "behind [DONE]", "no http", "whole", "silent",
)  # fmt: skip


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(text=None, finish=None, usage=None, chat=False):
    if usage is not None:
        said = {"choices": [], "usage": usage}
    elif chat:
        said = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    else:
        said = {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}
    return chunk(b"data: " + json.dumps(said).encode() + b"\n\n")


def plain(status, body):
    text = json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(text)) + text


class FakeServer:
    """In a thread of its own. `fault(index, body)` names one of FAULTS for a request, or nothing for a right answer.

    No answer begins before `hold` requests have come: who waits for answers before asking again waits for ever. Nor does one
    begin before each of the `pages` has been asked for so many times.
    """

    def __init__(self, fault=lambda index, body: None, hold=0, interval_s=0.0, pages=None):
        self.fault, self.hold, self.interval_s = fault, hold, interval_s
        self.pages, self.num_gets = pages or {}, collections.Counter()
        self.bodies, self.num_connections, self.keys = [], 0, set()
        self.open_streams = self.most_open = 0
        self.loop = asyncio.new_event_loop()

    def __enter__(self):
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self.thread.start()
        started.wait(30)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join(30)

    def _run(self, started):
        self.loop.run_until_complete(self.serve(lambda port: started.set()))
        self.loop.close()

    async def serve(self, told):
        self.stopped, self.held = asyncio.Event(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=4096)
        port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        told(port)
        await self.stopped.wait()
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader, writer):
        self.num_connections += 1
        try:
            while await self._one(reader, writer):
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader, writer):
        """Whether the connection is kept."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = first.split(" ")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        self.keys.add(headers.get("authorization"))
        if method == "GET":
            self.num_gets[path] += 1
            self._let_go()
            known = {"/live": {}, "/v1/models": {"data": [{"id": "fake"}]}}
            writer.write(plain(200, known[path]) if path in known else plain(404, {}))
            return True
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        index = len(self.bodies)
        self.bodies.append(body | {"path": path})
        self._let_go()
        await self.held.wait()
        self.open_streams += 1
        self.most_open = max(self.most_open, self.open_streams)
        try:
            return await self._answer(writer, body, self.fault(index, body), "chat" in path)
        finally:
            self.open_streams -= 1

    def _let_go(self):
        if len(self.bodies) >= self.hold and all(self.num_gets[path] >= num for path, num in self.pages.items()):
            self.held.set()

    async def _answer(self, writer, body, fault, chat):
        num_tokens = body["max_tokens"]
        if fault == "cut before":
            return False
        if fault == "silent":
            await self.stopped.wait()
            return False
        if fault == "no http":
            writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
            return False
        if fault and fault.isdigit():
            writer.write(plain(int(fault), {"error": {"message": "no"}}))
            return True
        usage = {"prompt_tokens": 7, "completion_tokens": num_tokens + {"one less": -1, "one more": 1}.get(fault, 0)}
        finish = {"stop": "stop", "no finish": None}.get(fault, "length")
        if not body["stream"] or fault == "whole":
            choice = {"index": 0, "finish_reason": finish} | ({"message": {"content": "a b"}} if chat else {"text": "a b"})
            writer.write(plain(200, {"choices": [choice], "usage": usage}))
            return True
        writer.write(STREAM)
        for i in range(num_tokens):
            if fault == "cut" and i == num_tokens // 2:
                return False
            if self.interval_s:
                await asyncio.sleep(self.interval_s)
            writer.write(event("a ", finish if i == num_tokens - 1 else None, chat=chat))
        if fault == "garbage":
            writer.write(chunk(b"data: {]\n\n"))
        if fault == "error event":
            writer.write(chunk(b'data: {"error": {"message": "no"}}\n\n'))
        if fault != "no usage":
            writer.write(event(usage=usage))
        if fault != "no [DONE]":
            writer.write(chunk(b"data: [DONE]\n\n"))
        if fault == "behind [DONE]":
            writer.write(event("a"))
        writer.write(b"0\r\n\r\n")
        return True


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(FakeServer(interval_s=float(sys.argv[1]), hold=int(sys.argv[2])).serve(lambda port: print(port, flush=True)))
