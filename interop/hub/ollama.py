"""The store of Ollama: what `gguf export --to ollama` writes, read as Ollama reads it.

usage: ollama.py GGUF_BINARY CHECKPOINT

The reader follows ollama/ollama: the path of a manifest is the name (types/model/name.go), the manifest is that of a
container image (server/manifest.go), and a blob is named by its SHA-256 (server/layer.go). The store is then served as a
registry, and `gguf pull ollama:` downloads from it; a damaged blob is refused.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KINDS = {f"application/vnd.ollama.image.{kind}" for kind in ("model", "template", "params", "system", "license")}


def read_blob(store, layer):
    algorithm, digits = layer["digest"].split(":")
    data = (store / "blobs" / f"{algorithm}-{digits}").read_bytes()
    assert algorithm == "sha256" and hashlib.sha256(data).hexdigest() == digits, layer
    assert len(data) == layer["size"], layer
    return data


def read(store, model, tag):
    """Returns the layers of a model by the ends of their media types."""
    manifest = json.loads((store / "manifests" / "registry.ollama.ai" / "library" / model / tag).read_text())
    assert manifest["schemaVersion"] == 2, manifest
    assert manifest["mediaType"] == "application/vnd.docker.distribution.manifest.v2+json", manifest
    assert manifest["config"]["mediaType"] == "application/vnd.docker.container.image.v1+json", manifest
    config = json.loads(read_blob(store, manifest["config"]))
    assert config["model_format"] == "gguf" and config["os"] == "linux" and config["architecture"] == "amd64", config
    assert config["rootfs"]["diff_ids"] == [layer["digest"] for layer in manifest["layers"]], config
    assert all(layer["mediaType"] in KINDS for layer in manifest["layers"]), manifest
    return config, {layer["mediaType"].rsplit(".", 1)[1]: read_blob(store, layer) for layer in manifest["layers"]}


def registry(store, damaged):
    class Registry(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            _, v2, namespace, model, kind, last = self.path.split("/")
            root = store / "manifests" / "registry.ollama.ai" / namespace / model
            path = root / last if kind == "manifests" else store / "blobs" / last.replace(":", "-")
            if v2 != "v2" or not path.is_file():
                return self.send_error(404)
            data = path.read_bytes()
            if damaged and kind == "blobs":
                data = data[:-1] + bytes([data[-1] ^ 1])
            start, end = 0, len(data)
            wanted = self.headers.get("Range", "")
            if wanted:
                first, last = wanted.removeprefix("bytes=").split("-")
                start, end = int(first), min(int(last) + 1, len(data))
            self.send_response(206 if wanted else 200)
            if wanted:
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
            self.send_header("Content-Length", str(end - start))
            self.end_headers()
            self.wfile.write(data[start:end])

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"ollama:127.0.0.1:{server.server_port}/library/mine:q8"


def main():
    gguf, checkpoint = str(Path(sys.argv[1]).resolve()), sys.argv[2]
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)

        def run(store, *args):
            environment = {**os.environ, "OLLAMA_MODELS": str(store), "HF_HOME": str(home / "hf")}
            return subprocess.run([gguf, *map(str, args)], env=environment, capture_output=True, text=True)

        model, store = home / "m.gguf", home / "store"
        assert run(store, "convert", checkpoint, "-o", model, "--outtype", "q8_0").returncode == 0
        done = run(store, "export", model, "--to", "ollama", "mine:q8")
        assert done.returncode == 0, done.stderr
        config, layers = read(store, "mine", "q8")
        assert layers["model"] == model.read_bytes() and config["file_type"] == "Q8_0", config
        print("the store is as Ollama reads it:", config["model_family"], config["model_type"], config["file_type"], *layers)

        pulled = home / "pulled"
        done = run(pulled, "pull", registry(store, False))
        assert done.returncode == 0, done.stderr
        assert Path(done.stdout.strip()).read_bytes() == model.read_bytes()
        done = run(home / "damaged", "pull", registry(store, True))
        assert done.returncode == 2 and "damaged" in done.stderr, (done.returncode, done.stderr)
        assert not list((home / "damaged").glob("manifests/*/*/*/*"))
        print("a model is pulled, and a damaged one refused")


if __name__ == "__main__":
    main()
