"""Uploads to the Hub: the requests of `gguf upload` beside those of huggingface_hub.

usage: upload.py GGUF_BINARY

A mock hub takes the same files from both programs. It checks every digest, and fails if a storage address sees the token.
The requests that write must be equal: method, path, media type and body. Then each program finds what the other has
uploaded, and an upload that fails in the middle continues.
Needs: huggingface_hub.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

TOKEN = "hf_secret"
PART = 1 << 20
HEAD = "0123456789abcdef0123456789abcdef01234567"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def blob_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class State:
    def __init__(self):
        self.files, self.objects, self.parts, self.log = {}, {}, {}, []
        self.uploads, self.commits, self.exists, self.takes = 0, 0, False, None
        self.leaks = []

    def head(self):
        return f"{int(HEAD, 16) + self.commits:040x}"


def handler(state, storage_port, hub_port):
    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def address(self):
            return f"http://127.0.0.1:{hub_port()}/me/repo"

        def answer(self, status, value=None, headers=None):
            body = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            for key, text in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(key, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def handle_one(self):
            if "chunked" in self.headers.get("Transfer-Encoding", ""):
                self.body = b""
                while size := int(self.rfile.readline(), 16):
                    self.body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = unquote(urlsplit(self.path).path)
            media = self.headers.get("Content-Type", "")
            if self.command == "PUT":
                if self.headers.get("Authorization"):
                    state.leaks.append(path)
                state.log.append((self.command, path, sha256(self.body)))
                return self.put(path)
            if self.command == "POST":
                if media.startswith("application/x-ndjson"):
                    body = [json.loads(line) for line in self.body.splitlines()]
                else:
                    body = json.loads(self.body or b"null")
                state.log.append((self.command, path, media, body))
            else:
                body = None
            if not path.startswith("/complete/") and self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self.answer(401, {"error": "Invalid username or password."})
            self.hub(path, body)

        do_GET = do_HEAD = do_POST = do_PUT = handle_one

        def put(self, path):
            kind, *rest = path.strip("/").split("/")
            if kind == "whole":
                state.objects[sha256(self.body)] = self.body
                return self.answer(200)
            if state.takes is not None:
                if state.takes == 0:
                    return self.answer(403)
                state.takes -= 1
            upload, part = map(int, rest)
            state.parts.setdefault(upload, {})[part] = self.body
            self.answer(200, headers={"ETag": f'"{sha256(self.body)}"'})

        def hub(self, path, body):
            api = "/api/models/me/repo/"
            if path == "/api/repos/create":
                if state.exists:
                    return self.answer(409, {"error": "exists", "url": self.address()})
                state.exists = True
                return self.answer(200, {"url": self.address()})
            if path == "/api/validate-yaml":
                return self.answer(200, {"errors": [], "warnings": []})
            if path.startswith("/complete/"):
                parts = state.parts.pop(int(path.split("/")[2]), {})
                data = b"".join(parts[number] for number in sorted(parts))
                named = [{"partNumber": n, "etag": f'"{sha256(parts[n])}"'} for n in sorted(parts)]
                if sha256(data) != body["oid"] or named != body["parts"]:
                    return self.answer(400, {"error": "SHA-256 does not match"})
                state.objects[body["oid"]] = data
                return self.answer(200, {"success": True})
            if path == "/verify":
                found = state.objects.get(body["oid"])
                return self.answer(200 if found is not None and len(found) == body["size"] else 404, {})
            if not state.exists:
                return self.answer(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
            if path == "/me/repo.git/info/lfs/objects/batch":
                return self.answer(200, {"transfer": "multipart", "objects": [self.batch(o) for o in body["objects"]]})
            if path == api + "preupload/main":
                return self.answer(200, {"files": [self.mode(file) for file in body["files"]]})
            if path == api + "commit/main":
                return self.commit(body)
            if path == api + "revision/main" or path == "/api/models/me/repo":
                return self.answer(200, {"id": "me/repo", "sha": state.head(), "siblings": []})
            if path.startswith(api + "tree/"):
                return self.answer(200, [self.entry(*file) for file in state.files.items()])
            if path.startswith("/me/repo/resolve/"):
                name = path.split("/", 5)[5]
                if name not in state.files:
                    return self.answer(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
            self.answer(404, {"error": f"no {path}"})

        def entry(self, name, file):
            data, large = file
            entry = {"type": "file", "path": name, "size": len(data), "oid": blob_id(data)}
            return {**entry, "lfs": {"oid": sha256(data), "size": len(data), "pointerSize": 134}} if large else entry

        def mode(self, file):
            sample = base64.b64decode(file["sample"])
            data, large = state.files.get(file["path"], (None, False))
            oid = None if data is None else sha256(data) if large else blob_id(data)
            mode = "lfs" if b"\0" in sample or file["path"].endswith(".gguf") else "regular"
            return {"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid}

        def batch(self, given):
            oid, size = given["oid"], given["size"]
            if oid in state.objects:
                return {"oid": oid, "size": size}
            verify = {"href": f"http://127.0.0.1:{hub_port()}/verify"}
            storage = f"http://localhost:{storage_port()}"
            if size <= PART:
                return {"oid": oid, "size": size, "actions": {"upload": {"href": f"{storage}/whole/{oid}?Signature=x"}, "verify": verify}}
            state.uploads += 1
            header = {f"{n:05}": f"{storage}/part/{state.uploads}/{n}?Signature=x" for n in range(1, -(-size // PART) + 1)}
            upload = {"href": f"http://127.0.0.1:{hub_port()}/complete/{state.uploads}", "header": {"chunk_size": str(PART), **header}}
            return {"oid": oid, "size": size, "actions": {"upload": upload, "verify": verify}}

        def commit(self, lines):
            if lines[0]["value"].get("parentCommit", state.head()) != state.head():
                return self.answer(412, {"error": "A commit has happened since"})
            for line in lines[1:]:
                value = line["value"]
                if line["key"] == "file":
                    state.files[value["path"]] = (base64.b64decode(value["content"]), False)
                else:
                    data = state.objects[value["oid"]]
                    assert len(data) == value["size"], value
                    state.files[value["path"]] = (data, True)
            state.commits += 1
            self.answer(200, {"commitOid": state.head(), "commitUrl": f"{self.address()}/commit/{state.head()}", "pullRequestUrl": None})

    return Hub


class Mock:
    """A hub and its storage on another host name."""

    def __init__(self):
        self.state = State()
        made = handler(self.state, lambda: self.storage.server_port, lambda: self.hub.server_port)
        self.hub = ThreadingHTTPServer(("127.0.0.1", 0), made)
        self.storage = ThreadingHTTPServer(("localhost", 0), made)
        for server in (self.hub, self.storage):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self.hub.server_port}"

    def written(self):
        """The requests that write, without what only one of the programs asks."""
        return [entry for entry in self.state.log if entry[1] != "/api/validate-yaml"]


def run(program, mock, home, *args):
    environment = {**os.environ, "HF_ENDPOINT": mock.endpoint, "HF_HOME": str(home), "HF_TOKEN": TOKEN,
                   "XDG_CACHE_HOME": str(home / "cache"), "HF_HUB_DISABLE_XET": "1"}
    return subprocess.run([*program, *map(str, args)], env=environment, capture_output=True, text=True)


CLIENT = """
import sys
from huggingface_hub import HfApi
folder, message, parent = sys.argv[1:]
api = HfApi()
api.create_repo("me/repo", private=True, exist_ok=True)
api.upload_folder(repo_id="me/repo", folder_path=folder, commit_message=message, parent_commit=parent or None)
"""


def normal(entry):
    """A request without what may differ: the order of JSON keys, and of the files of one request."""
    method, path, *rest = entry
    if method == "PUT":
        return entry
    media, body = rest
    if isinstance(body, list):
        body = body[:1] + sorted(body[1:], key=json.dumps)
    elif isinstance(body, dict):
        # The default, which newer versions of huggingface_hub leave out.
        if path == "/api/repos/create":
            body.pop("type", None)
        body = {key: sorted(value, key=json.dumps) if key in ("files", "objects") else value for key, value in body.items()}
    return method, path, media.split(";")[0], json.dumps(body, sort_keys=True)


def main():
    gguf = [str(Path(sys.argv[1]).resolve())]
    client = [sys.executable, "-c", CLIENT]
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        out = home / "out"
        (out / "sub").mkdir(parents=True)
        (out / "README.md").write_text("---\nlicense: mit\n---\n# Model\n")
        (out / "config.json").write_text("{}")
        (out / "a-Q8_0.gguf").write_bytes(bytes(i * 7 % 251 for i in range(3 * PART + 12345)))
        (out / "sub" / "b-Q4_0.gguf").write_bytes(b"GGUF" + bytes(1000))
        ours, theirs = Mock(), Mock()
        done = run(gguf, ours, home, "upload", out, "hf:me/repo", "--private", "-m", "first")
        assert done.returncode == 0, done.stderr
        done = run(client, theirs, home, out, "first", HEAD)
        assert done.returncode == 0, done.stderr
        assert ours.state.files == theirs.state.files and len(ours.state.files) == 4, ours.state.files.keys()
        left, right = (sorted({normal(entry) for entry in mock.written()}) for mock in (ours, theirs))
        for entry in left:
            assert entry in right, f"only gguf sends {entry}\n" + "\n".join(str(other)[:300] for other in right)
        for entry in right:
            assert entry in left, f"only huggingface_hub sends {entry}"
        assert not ours.state.leaks, f"the storage saw the token: {ours.state.leaks}"
        print(f"{len(left)} different requests that write, equal in both programs")

        # Each finds what the other has uploaded.
        for program, mock, args in [
            (gguf, theirs, ("upload", out, "hf:me/repo")),
            (client, ours, (out, "again", "")),
        ]:
            before = mock.state.commits, len([entry for entry in mock.state.log if entry[0] == "PUT"])
            done = run(program, mock, home, *args)
            assert done.returncode == 0, done.stderr
            after = mock.state.commits, len([entry for entry in mock.state.log if entry[0] == "PUT"])
            assert before == after, (before, after)
        print("each program finds what the other has uploaded")

        # The storage stops in the middle; the next run sends the rest.
        mock = Mock()
        mock.state.exists, mock.state.takes = True, 2
        done = run(gguf, mock, home, "upload", out / "a-Q8_0.gguf", "hf:me/repo")
        assert done.returncode == 3 and TOKEN not in done.stderr, (done.returncode, done.stderr)
        mock.state.takes = None
        sent = len(mock.state.log)
        done = run(gguf, mock, home, "upload", out / "a-Q8_0.gguf", "hf:me/repo")
        assert done.returncode == 0, done.stderr
        again = [entry for entry in mock.state.log[sent:] if entry[0] == "PUT"]
        assert len(again) == 2 and mock.state.files["a-Q8_0.gguf"][0] == (out / "a-Q8_0.gguf").read_bytes(), again
        print("an interrupted upload continues")


if __name__ == "__main__":
    main()
