"""The cache of the Hub, shared with huggingface_hub: what one downloads, the other finds.

usage: cache.py GGUF_BINARY

A mock hub on the loopback interface serves two files. Each is downloaded by one program and opened by the other.
Needs: huggingface_hub.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {name: bytes((i * 7 + len(name)) % 251 for i in range(3_000_000)) for name in ("a-Q4_0.gguf", "sub/b-Q8_0.gguf")}
served = []


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.respond(False)

    def do_GET(self):
        self.respond(True)

    def respond(self, with_body):
        path = self.path.split("?")[0]
        if path.startswith("/api/models/org/repo/tree/"):
            entries = ",".join(f'{{"type":"file","path":"{name}","size":{len(data)},"oid":"0"}}' for name, data in FILES.items())
            return self.send(200, f"[{entries}]".encode(), {"Content-Type": "application/json"}, with_body)
        found = re.fullmatch(r"/org/repo/resolve/[^/]+/(.+)", path)
        if not found or found[1] not in FILES:
            return self.send(404, b"", {}, with_body)
        data = FILES[found[1]]
        tag = f'"{hashlib.sha256(data).hexdigest()}"'
        headers = {"X-Repo-Commit": COMMIT, "ETag": tag, "X-Linked-ETag": tag, "X-Linked-Size": str(len(data)), "Accept-Ranges": "bytes"}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not wanted:
            return self.send(200, data, headers, with_body, found[1])
        first, last = int(wanted[1]), min(int(wanted[2] or len(data) - 1), len(data) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        self.send(206, data[first : last + 1], headers, with_body, found[1])

    def send(self, status, body, headers, with_body, name=None):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)
            if name:
                served.append((name, len(body)))


def main():
    gguf = str(Path(sys.argv[1]).resolve())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": home, "HF_HUB_DISABLE_XET": "1"}
        os.environ.update(environment)
        import huggingface_hub

        def pull(name):
            output = subprocess.run([gguf, "pull", f"hf:org/repo:{name}"], env=environment, capture_output=True, text=True)
            assert output.returncode == 0, output.stderr
            return Path(output.stdout.strip())

        def fetched(name):
            return sum(count for other, count in served if other == name)

        # Downloaded by huggingface_hub, found by gguf: only the beginning of the file is read for its version.
        theirs = Path(huggingface_hub.hf_hub_download("org/repo", "a-Q4_0.gguf"))
        before = fetched("a-Q4_0.gguf")
        assert pull("Q4_0") == theirs, (pull("Q4_0"), theirs)
        assert fetched("a-Q4_0.gguf") - before < len(FILES["a-Q4_0.gguf"]), "downloaded again"
        # Downloaded by gguf, found by huggingface_hub.
        ours = pull("Q8_0")
        assert ours.read_bytes() == FILES["sub/b-Q8_0.gguf"]
        before = fetched("sub/b-Q8_0.gguf")
        found = huggingface_hub.try_to_load_from_cache("org/repo", "sub/b-Q8_0.gguf")
        assert found and Path(found) == ours, (found, ours)
        assert Path(huggingface_hub.hf_hub_download("org/repo", "sub/b-Q8_0.gguf")) == ours
        assert fetched("sub/b-Q8_0.gguf") == before, "downloaded again"
        scanned = huggingface_hub.scan_cache_dir()
        assert not scanned.warnings, scanned.warnings
        (repository,) = scanned.repos
        assert repository.repo_id == "org/repo" and repository.nb_files == 2, repository
        listed = subprocess.run([gguf, "list"], env=environment, capture_output=True, text=True).stdout
        assert listed.count("hf:org/repo:") == 2, listed
    print("both programs find what the other has downloaded")


if __name__ == "__main__":
    main()
