"""A hub on loopback with the protocol of the Hugging Face hub, and faults on order.

Files of at least LFS_BYTES are kept as LFS: named by the SHA-256 of their bytes and served by a redirect to a second host
name (127.0.0.1 redirects to localhost and back), as the real hub redirects to its content servers.
"""

import collections
import contextlib
import hashlib
import http.server
import json
import re
import socket
import ssl
import threading
import time
import urllib.parse

LFS_BYTES = 10_000


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def blob_of(data):
    return hashlib.sha256(data).hexdigest() if len(data) >= LFS_BYTES else git_sha1(data)


class Repo:
    """Revisions of one repository: {commit: {path: bytes}}, and branches and tags."""

    def __init__(self, files, gated=False, disabled=False, private=False):
        self.commits, self.refs = {}, {}
        self.gated, self.disabled, self.private = gated, disabled, private
        self.commit(files)

    def commit(self, files, ref="main"):
        commit = hashlib.sha1(repr(sorted((path, blob_of(data)) for path, data in files.items())).encode()).hexdigest()
        self.commits[commit] = dict(files)
        self.refs[ref] = commit
        return commit

    def commit_of(self, revision):
        return revision if revision in self.commits else self.refs.get(revision)


class FakeHub:
    """`faults`: a function from (kind, path, request headers) to the name of a fault, or None. kind: api, file or cdn."""

    def __init__(self, repos, faults=None, host="127.0.0.1", certificate=None, page=1000, token=None, redirects=True,
                 piece=1 << 16):
        self.repos, self.faults, self.page, self.token = repos, faults or (lambda *_: None), page, token
        self.redirects, self.piece = redirects, piece
        self.requests = []  # (method, host, path, headers)
        self.sent = collections.Counter()  # bytes of bodies by path
        self.resumed = []  # (path, first byte) of requests for a range
        self.slow_s = 0.0
        self.hang = threading.Event()
        self.alter = None  # changes the entries of a tree in place
        self.lock = threading.Lock()
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def do_GET(self):
                hub.answer(self)

            do_HEAD = do_GET

            def handle(self):
                with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
                    super().handle()

        class Listener(http.server.ThreadingHTTPServer):
            request_queue_size = 128
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https"
        self.port = self.server.server_port
        self.host = host
        self.cdn_host = "localhost" if host != "localhost" else "127.0.0.1"
        self.url = f"{self.scheme}://{host}:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hang.set()
        self.server.shutdown()
        self.server.server_close()

    def file_requests(self, path=None):
        return [entry for entry in self.requests if ("/resolve/" in entry[2] or entry[2].startswith("/cdn/")) and (path is None or entry[2].endswith("/" + path))]

    # ---- answers

    def answer(self, handler):
        path = urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path)
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query)
        host = handler.headers.get("Host", "")
        with self.lock:
            self.requests.append((handler.command, host, path, {name.lower(): value for name, value in handler.headers.items()}))
        kind = "api" if path.startswith("/api/") else "cdn" if path.startswith("/cdn/") else "file"
        fault = self.faults(kind, path, handler.headers)
        if fault and self.before_answer(handler, fault):
            return
        if kind == "cdn":
            return self.send_file(handler, self.content(path.removeprefix("/cdn/")), {}, fault)
        match = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+)|/tree/([^/]+))?", path) or re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        repo = match and self.repos.get(match[1])
        authorised = self.token is None or handler.headers.get("Authorization") == f"Bearer {self.token}"
        if not repo or (repo.private and not authorised):
            return self.refuse(handler, 404 if handler.headers.get("Authorization") else 401, "RepoNotFound", "Repository not found")
        if repo.disabled:
            return self.refuse(handler, 403, "DisabledRepo", "This repository was disabled.")
        if kind == "api":
            if match[3]:
                return self.send_tree(handler, match[1], repo.commits.get(match[3]), match[3], int(query.get("cursor", ["0"])[0]), fault)
            commit = repo.commit_of(match[2] or "main")
            if not commit:
                return self.refuse(handler, 404, "RevisionNotFound", "Revision Not Found")
            about = {"_id": "1", "id": match[1], "sha": commit, "siblings": [{"rfilename": name} for name in sorted(repo.commits[commit])],
                     "private": False, "gated": repo.gated, "tags": [], "downloads": 0, "likes": 0}
            return self.send_json(handler, about, {}, fault)
        if repo.gated and not authorised:
            status = 403 if handler.headers.get("Authorization") else 401
            return self.refuse(handler, status, "GatedRepo", f"Access to model {match[1]} is restricted and you are not in the authorized list.")
        commit = repo.commit_of(match[2])
        if not commit:
            return self.refuse(handler, 404, "RevisionNotFound", "Revision Not Found")
        data = repo.commits[commit].get(match[3])
        if data is None:
            return self.refuse(handler, 404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        if len(data) >= LFS_BYTES and self.redirects:
            blob = blob_of(data)
            location = f"{self.scheme}://{self.cdn_host}:{self.port}/cdn/{match[1]}/{commit}/{urllib.parse.quote(match[3])}?signature=abc"
            if fault == "redirect_to_ftp":
                location = "ftp://localhost/x"
            if fault == "redirect_loop":
                location = f"{self.url}{urllib.parse.quote(path)}"
            headers = {"Location": location, "X-Repo-Commit": commit, "X-Linked-Etag": f'"{blob}"', "X-Linked-Size": str(len(data)), "Accept-Ranges": "bytes"}
            return self.send(handler, 302, b"moved", headers)
        self.send_file(handler, data, {"ETag": f'"{blob_of(data)}"', "X-Repo-Commit": commit}, fault)

    def content(self, path):
        owner, name, commit, file = path.split("/", 3)
        return self.repos[f"{owner}/{name}"].commits[commit][file]

    def before_answer(self, handler, fault):
        """True where the fault is the whole answer."""
        if fault == "hang":
            self.hang.wait(60)
        elif fault == "close":
            handler.close_connection = True
        elif fault == "reset":
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            handler.connection.close()
            handler.close_connection = True
        elif fault == "garbage":
            handler.wfile.write(b"\x16\x03\x01 no HTTP\r\n\r\n")
            handler.close_connection = True
        elif fault.isdigit():
            extra = {"Retry-After": "0"} if fault == "429" else {}
            self.send(handler, int(fault), b"<html>an error</html>", extra)
        else:
            return False
        return True

    def send_tree(self, handler, name, files, commit, cursor, fault):
        if files is None:
            return self.refuse(handler, 404, "RevisionNotFound", "Revision Not Found")
        entries = []
        folders = sorted({path.rsplit("/", 1)[0] for path in files if "/" in path})
        for folder in folders:
            entries.append({"type": "directory", "oid": "0" * 40, "size": 0, "path": folder})
        for path, data in sorted(files.items()):
            entry = {"type": "file", "oid": git_sha1(data), "size": len(data), "path": path}
            if len(data) >= LFS_BYTES:
                entry["oid"] = git_sha1(b"pointer" + data[:100])
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            entries.append(entry)
        if self.alter:
            self.alter(entries)
        page, rest = entries[cursor:cursor + self.page], entries[cursor + self.page:]
        headers = {}
        if rest:
            headers["Link"] = f'<{self.url}/api/models/{name}/tree/{commit}?recursive=true&expand=false&cursor={cursor + self.page}>; rel="next"'
        self.send_json(handler, page, headers, fault)

    def send_json(self, handler, value, headers, fault):
        body = json.dumps(value).encode()
        if fault == "no_json":
            body = b"<html>" + body
        if fault == "cut":
            return self.send_cut(handler, 200, body, {"Content-Type": "application/json", **headers}, len(body) // 2)
        self.send(handler, 200, body, {"Content-Type": "application/json", **headers})

    def send_file(self, handler, data, headers, fault):
        first, status = 0, 200
        wanted = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        if wanted and fault != "no_ranges":
            first = int(wanted[1])
            self.resumed.append((urllib.parse.unquote(handler.path.split("?")[0]), first))
            if first >= len(data):
                return self.send(handler, 416, b"", {"Content-Range": f"bytes */{len(data)}"})
            if fault == "wrong_range":
                first = max(0, first - 7)
            status = 206
            headers = {**headers, "Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}"}
        body = data[first:]
        if fault == "flip" and body:
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1:]
        if fault == "longer":
            body += b"and more"
        if fault == "shorter":
            body = body[:len(body) * 2 // 3]
        headers = {"Accept-Ranges": "bytes", **headers}
        if fault == "chunked":
            return self.send_chunked(handler, status, body, headers)
        if fault == "cut":
            return self.send_cut(handler, status, body, headers, len(body) // 2)
        self.send(handler, status, body, headers)

    def refuse(self, handler, status, code, message, headers=()):
        self.send(handler, status, json.dumps({"error": message}).encode(), {"X-Error-Code": code, "X-Error-Message": message, **dict(headers)})

    def send(self, handler, status, body, headers):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            self.write(handler, body)

    def send_cut(self, handler, status, body, headers, length):
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        self.write(handler, body[:length])
        handler.close_connection = True

    def send_chunked(self, handler, status, body, headers):
        handler.send_response(status)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            handler.send_header(name, value)
        handler.end_headers()
        for start in range(0, len(body), 5000):
            piece = body[start:start + 5000]
            self.write(handler, b"%x\r\n" % len(piece) + piece + b"\r\n")
        handler.wfile.write(b"0\r\n\r\n")

    def write(self, handler, body):
        path = urllib.parse.unquote(handler.path.split("?")[0])
        for start in range(0, len(body), self.piece):
            piece = body[start:start + self.piece]
            handler.wfile.write(piece)
            self.sent[path] += len(piece)
            if self.slow_s:
                time.sleep(self.slow_s)
