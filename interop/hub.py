#!/usr/bin/env python3
"""Convert a checkpoint from a hub on loopback, and compare with the same checkpoint on disk.

usage: hub.py path/to/gguf CHECKPOINT_DIR...

Serves each directory as `hf:org/NAME` the way the Hugging Face hub does (listing, resolve, ranges),
and checks that the output is the same and that weights come by ranges.
"""

import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading


class Hub(http.server.BaseHTTPRequestHandler):
    directories = {}
    whole = []

    def do_GET(self):
        path = self.path.split("?")[0]
        if found := re.fullmatch(r"/api/models/org/([^/]+)/tree/main", path):
            directory = self.directories[found[1]]
            files = [{"type": "file", "path": p.name} for p in directory.iterdir()]
            return self.answer(200, json.dumps(files).encode())
        found = re.fullmatch(r"/org/([^/]+)/resolve/main/([^/]+)", path)
        file = self.directories[found[1]] / found[2] if found else None
        if not file or not file.is_file():
            return self.answer(404, b"")
        data = file.read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not asked:
            self.whole.append(file.name)
            return self.answer(200, data)
        start, end = int(asked[1]), min(int(asked[2]) + 1, len(data))
        self.answer(206, data[start:end], ("Content-Range", f"bytes {start}-{end - 1}/{len(data)}"))

    def answer(self, status, body, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    program, *directories = sys.argv[1:]
    Hub.directories = {pathlib.Path(d).resolve().name: pathlib.Path(d).resolve() for d in directories}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = os.environ | {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}
    with tempfile.TemporaryDirectory() as work:
        near, far = f"{work}/near.gguf", f"{work}/far.gguf"
        for name, directory in Hub.directories.items():
            subprocess.run([program, "convert", "--force", directory, "-o", near], check=True)
            word = f"hf:org/{name}"
            subprocess.run([program, "convert", "--force", word, "-o", far], check=True, env=environment)
            same = pathlib.Path(near).read_bytes() == pathlib.Path(far).read_bytes()
            print(f"{name}: {'the same' if same else 'DIFFERENT'}; fetched whole: {Hub.whole}")
            if not same or Hub.whole:
                sys.exit(1)


main()
