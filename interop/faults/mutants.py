"""Runs commands on randomly changed models, stored graphs, adapters, audio, templates, part files and viewer requests.

Usage: python interop/faults/mutants.py GGUF_BINARY DATA [--seconds N] [--seed N] [--keep DIRECTORY]

DATA is the directory of the reference data. A command must exit with a documented code within 30 seconds of CPU time, never by a signal, and must not
report a panic. The viewer must answer an ordinary request after every changed one. Files that violate this are kept in DIRECTORY.
"""

import argparse
import collections
import http.client
import json
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
AUDIO = ROOT / "crates/speech/testdata"
DOCUMENTED = [0, 1, 2, 3, 4]
SIZES = [0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1]
TEXT = "In the beginning was the word. " * 60
CONVERSATION = [{"role": "user", "content": "Who made heaven and earth?"}, {"role": "assistant", "content": "God."}, {"role": "user", "content": "And?"}]
# Pieces of templates that a mutation inserts.
PIECES = ["{{", "}}", "{%", "%}", "{#", "-", "|", "(", ")", "[", "]", "~", "*", "**", "'", "loop", " for ", " if ", "{% for x in x %}", "messages", "range(9)"]


class Inputs:
    """Files that are changed, with the commands that read them."""

    def __init__(self, binary, data, directory):
        self.binary, self.directory = binary, directory
        base, zoo = str(ROOT / "testdata/Tiny-KJV-Llama-4M"), data / "zoo"
        self.run("convert", base, "-o", self.path("f16.gguf"), "--outtype", "f16")
        self.run("quantize", self.path("f16.gguf"), self.path("model.gguf"), "q4_0", "--prune-layers", "1,2,3")
        self.run("graph", self.path("model.gguf"), "--store", "-o", self.path("stored.gguf"))
        self.run("convert", str(zoo / "llama"), "-o", self.path("base.gguf"))
        self.run("convert", str(zoo / "lora-llama"), "--base", str(zoo / "llama"), "-o", self.path("adapter.gguf"))
        self.run("convert", str(zoo / "whisper"), "-o", self.path("whisper.gguf"))
        Path(self.path("text.txt")).write_text(TEXT)
        chunks = ["-f", self.path("text.txt"), "-c", "32", "--chunks", "2"]
        self.run("perplexity", self.path("model.gguf"), *chunks, "--part", "1/2", "-o", self.path("chunks.part"))
        self.run("imatrix", self.path("model.gguf"), *chunks, "-o", self.path("imatrix.gguf"))
        Path(self.path("messages.json")).write_text(json.dumps(CONVERSATION))
        for name in ["rising.mp3", "rising.ogg", "rising.flac"]:
            shutil.copy(AUDIO / name, directory)
        samples = bytes(x for i in range(8000) for x in ((i * 97) % 20000 - 10000).to_bytes(2, "little", signed=True))
        form = b"fmt " + (16).to_bytes(4, "little") + bytes.fromhex("01000100803e0000007d000002001000")
        body = b"WAVE" + form + b"data" + len(samples).to_bytes(4, "little") + samples
        Path(self.path("tone.wav")).write_bytes(b"RIFF" + len(body).to_bytes(4, "little") + body)
        templates = sorted((data / "zoo").glob("*/chat_template.jinja")) + sorted((data / "zoo").glob("*/tokenizer_config.json"))
        self.templates = [text for text in map(template, templates) if text] or ["{% for m in messages %}{{ m.role ~ m.content }}{% endfor %}"]

    def path(self, name):
        return str(self.directory / name)

    def run(self, *words):
        subprocess.run([self.binary, *words], check=True, capture_output=True)

    def jobs(self):
        """Returns names of files, the number of bytes that change, and the arguments after the binary."""
        model, text, out = self.path("model.gguf"), self.path("text.txt"), self.path
        transcribe = lambda f: ["transcribe", out("whisper.gguf"), f]
        return [
            ("model.gguf", 60_000, lambda f: ["generate", f, "-p", "In the", "-n", "2", "--temp", "0"]),
            ("model.gguf", 60_000, lambda f: ["check", f, "--scan"]),
            ("model.gguf", 60_000, lambda f: ["tokenize", f, "-p", "In the <s> beginning"]),
            ("model.gguf", 60_000, lambda f: ["perplexity", f, "-f", text, "-c", "16", "--chunks", "1"]),
            ("model.gguf", 60_000, lambda f: ["inspect", f, "--memory"]),
            ("model.gguf", 60_000, lambda f: ["export", f, out("exported"), "--force"]),
            ("stored.gguf", 90_000, lambda f: ["generate", f, "-p", "In the", "-n", "2", "--graph", "stored"]),
            ("stored.gguf", 90_000, lambda f: ["graph", f, "--svg", out("graph.svg")]),
            ("adapter.gguf", 3_000, lambda f: ["generate", out("base.gguf"), "-p", "q", "-n", "2", "--lora", f]),
            ("adapter.gguf", 3_000, lambda f: ["lora", "merge", out("base.gguf"), f, "-o", out("merged.gguf"), "--force"]),
            ("whisper.gguf", 20_000, lambda f: ["transcribe", f, out("tone.wav")]),
            ("chunks.part", 3_000, lambda f: ["eval-merge", f]),
            ("imatrix.gguf", 3_000, lambda f: ["quantize", "--imatrix", f, model, out("quantized.gguf"), "q4_k_m", "--allow-requantize", "--force"]),
            ("tone.wav", 100, transcribe),
            ("rising.mp3", 20_000, transcribe),
            ("rising.ogg", 20_000, transcribe),
            ("rising.flac", 20_000, transcribe),
        ]


def template(path):
    """Returns the chat template of a file."""
    text = path.read_text()
    if path.suffix == ".jinja":
        return text
    found = json.loads(text).get("chat_template")
    return found if isinstance(found, str) else None


def changed(rng, data, head):
    """Returns a copy with some changes in its first bytes."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        count = min(len(data), head)
        if count == 0:
            break
        kind, at = rng.randrange(6), rng.randrange(count)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 1, 127, 128, 255])
        elif kind == 2:
            width, value = rng.choice([4, 8]), rng.choice([*SIZES, rng.getrandbits(16)])
            data[at:at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
        elif kind == 3:
            del data[at:at + rng.randrange(1, 9)]
        elif kind == 4:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            other, length = rng.randrange(count), rng.randrange(1, 16)
            data[at:at + length] = data[other:other + length]
    if rng.random() < 0.05:
        data = data[:rng.randrange(len(data) + 1)]
    return bytes(data)


def changed_template(rng, text):
    """Returns a copy of a template with pieces removed, repeated and inserted."""
    for _ in range(rng.choice([1, 2, 4, 8])):
        at, length = rng.randrange(len(text) + 1), rng.randrange(1, 40)
        kind = rng.randrange(3)
        if kind == 0:
            text = text[:at] + text[at + length:]
        elif kind == 1:
            text = text[:at] + text[at:at + length] * rng.randrange(2, 4) + text[at:]
        else:
            text = text[:at] + rng.choice(PIECES) + text[at:]
    return text


class Viewer:
    """A running viewer, whose answers are checked."""

    MODEL = "api/1/models/0/"
    PATHS = [
        "", "api/1/models", MODEL + "summary", MODEL + "findings", MODEL + "memory?context=64", MODEL + "graph?tokens=1", MODEL + "graph.svg",
        MODEL + "keys?search=a&limit=3", MODEL + "key?name=general.name", MODEL + "tensors?limit=5", MODEL + "map",
        MODEL + "tensor/tile?name=token_embd.weight&level=0&x=0&y=0", MODEL + "tensor/statistics?name=blk.0.attn_q.weight",
        MODEL + "tensor/rows?name=token_embd.weight&start=0&count=1&columns=8", MODEL + "tensor/block?name=token_embd.weight&index=1",
        MODEL + "bytes?file=0&offset=0&length=64", MODEL + "spans?file=0&offset=0&length=64", MODEL + "tokens?search=the&limit=5",
    ]

    POSTS = [
        (MODEL + "tokenize", json.dumps({"text": "In the beginning", "add_special": True, "parse_special": True})),
        (MODEL + "template", json.dumps({"source": "{{ messages[0].content }}", "messages": CONVERSATION, "add_generation_prompt": True})),
        (MODEL + "edit", json.dumps({"preview": True, "set": [{"key": "general.name", "type": None, "value": "x"}]})),
    ]

    def __init__(self, binary, model):
        command = [binary, "view", model, "--no-open"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = ""
        while "http://" not in line:
            line = self.process.stdout.readline()
            assert line, "the viewer ended"
        self.address = urlsplit(re.search(r"http://\S+", line)[0])

    def request(self, rng):
        method, path, body = rng.choice([*(("GET", path, "") for path in self.PATHS), *(("POST", *post) for post in self.POSTS)])
        path = f"{self.address.path}{path}"
        headers = [f"Host: {self.address.netloc}", "Connection: close", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        return f"{method} {path} HTTP/1.1\r\n" + "".join(f"{h}\r\n" for h in headers) + f"\r\n{body}"

    def fault(self, data):
        """Sends bytes, and returns what is wrong with the viewer afterwards."""
        try:
            with socket.create_connection((self.address.hostname, self.address.port), timeout=5) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(2)
                while connection.recv(65536):
                    pass
        except OSError:
            pass
        if self.process.poll() is not None:
            return f"the viewer ended with code {self.process.returncode}"
        try:
            ordinary = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=20)
            ordinary.request("GET", self.address.path)
            status = ordinary.getresponse().status
        except OSError as error:
            return f"no answer: {error}"
        return None if status == 200 else f"status {status}"


def fault(command):
    """Runs a command, and returns what is wrong with its end."""
    try:
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
        done = subprocess.run(command, capture_output=True, timeout=300, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return "300 seconds"
    if b"panicked" in done.stderr:
        return done.stderr.decode(errors="replace")[:300]
    return None if done.returncode in DOCUMENTED else f"exit code {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("data", type=Path)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("target/mutants"))
    args = parser.parse_args()
    rng, faults, counts = random.Random(args.seed), 0, collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        inputs = Inputs(args.binary, args.data, directory)
        jobs = inputs.jobs()
        sources = {name: (directory / name).read_bytes() for name, *_ in jobs}
        viewer = Viewer(args.binary, inputs.path("f16.gguf"))
        end = time.monotonic() + args.seconds
        while time.monotonic() < end:
            choice = rng.randrange(len(jobs) + 4)
            if choice < len(jobs):
                name, head, words = jobs[choice]
                data, path = changed(rng, sources[name], head), directory / f"changed.{name}"
                path.write_bytes(data)
                kind = f"{words('')[0]} {name}"
                wrong = fault([args.binary, *words(str(path))])
            elif choice < len(jobs) + 2:
                name, kind = "template.jinja", "generate --chat-template"
                data = changed_template(rng, rng.choice(inputs.templates)).encode(errors="replace")
                (directory / name).write_bytes(data)
                words = ["generate", inputs.path("f16.gguf"), "--chat-template", inputs.path(name), "--messages", inputs.path("messages.json"), "-n", "1"]
                wrong = fault([args.binary, *words])
                # In a file, both engines render it, and the checks read it.
                model = str(directory / "template.gguf")
                edit = ["edit", inputs.path("f16.gguf"), "--chat-template-file", inputs.path(name), "-o", model, "--force"]
                if not wrong and subprocess.run([args.binary, *edit], capture_output=True).returncode == 0:
                    engine = ["chat-template", model, "--messages", inputs.path("messages.json"), "--engine", "llama.cpp"]
                    wrong = fault([args.binary, *engine]) or fault([args.binary, "check", model, "--no-data", "--scan"])
            else:
                name, kind = "request", "view"
                data = changed(rng, viewer.request(rng).encode(), 1000)
                wrong = viewer.fault(data)
            counts[kind] += 1
            if wrong:
                faults += 1
                args.keep.mkdir(parents=True, exist_ok=True)
                kept = args.keep / f"{args.seed}-{sum(counts.values())}-{name}"
                kept.write_bytes(data)
                print(f"{kind}: {wrong}: {kept}", flush=True)
        viewer.process.kill()
    for kind, count in sorted(counts.items()):
        print(f"{count:6} {kind}")
    print(f"{sum(counts.values())} runs, {faults} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
