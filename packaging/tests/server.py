"""HTTP server on loopback with the files of a release and an npm registry of its packages."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REPOSITORY = "/owner/gguf-kit"


class Server:
    """Serves files by path, from the first request on."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        files = self.files

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                data = files.get(self.path)
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *parts: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def repository(self) -> str:
        """URL of the repository."""
        return self.address + REPOSITORY

    @property
    def registry(self) -> str:
        """URL of the npm registry."""
        return f"{self.address}/npm/"

    def add_release(self, dist: Path, version: str) -> None:
        """Serves all files of a release, and both installers as those of the newest release."""
        for file in filter(Path.is_file, dist.iterdir()):
            data = file.read_bytes()
            self.files[f"{REPOSITORY}/releases/download/v{version}/{file.name}"] = data
            self.files[f"{REPOSITORY}/releases/latest/download/{file.name}"] = data

    def add_npm_package(self, folder: Path, stage: Path) -> None:
        """Packs a package as `npm publish` does, and serves it."""
        command = ["npm", "pack", "--json", "--pack-destination", stage, folder]
        output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        data = (stage / json.loads(output)[0]["filename"]).read_bytes()
        manifest = json.loads((folder / "package.json").read_text())
        name, version = manifest["name"], manifest["version"]
        self.files[f"/npm/-/{name}.tgz"] = data
        digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
        manifest["dist"] = {"tarball": f"{self.registry}-/{name}.tgz", "integrity": f"sha512-{digest}"}
        listing = {"name": name, "dist-tags": {"latest": version}, "versions": {version: manifest}}
        self.files[f"/npm/{name}"] = json.dumps(listing).encode()
