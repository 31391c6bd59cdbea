"""Measures time, memory, transferred bytes and cost of quantization, and predicts them for clusters.

Usage: python interop/cluster/scale.py GGUF_BINARY [GIGABYTES ...]

Measures on this machine, with random models of 1, 2 and 4 GB: time and memory of a whole run, time of a plan, of parallel parts and of
merging, and, with `moto` and `boto3`, cost and transferred bytes of uploads. Then prints the tables of `docs/scale.md`: predictions for
1 to 1,000 workers and models of 1 GB to 1 TB, with the bottleneck. The formulas are in `times`, the assumptions in `ASSUMED`; all other
values are measured. Needs numpy.
"""

import argparse
import http.client
import http.server
import logging
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Callable, NamedTuple

import numpy as np

GGUF = "gguf"
TYPE = "Q4_K_M"
BITS = 4.85 / 16
"""Bytes of the output per byte of an F16 input."""

ASSUMED = {
    "cores of a worker": 8,
    "network of a worker, B/s": 1.25e9,
    "start of a task, s": 2.0,
    "a shared file system, B/s": 5e9,
    "core for an hour, $": 0.04,
    "GET, $": 0.4e-6,
    "PUT, $": 5e-6,
}
READ_AT_ONCE, SENT_AT_ONCE = 4 << 20, 16 << 20


# Tensors of models.


def llama(vocabulary: int, width: int, ff: int, kv: int, layers: int) -> list[int]:
    """Returns the number of elements of each tensor of a Llama, in file order."""
    block = [width, width * width, width * kv, width * kv, width * width, width, 3 * [width * ff]]
    flat = [n for item in block for n in (item if isinstance(item, list) else [item])]
    return [vocabulary * width] + flat * layers + [width, vocabulary * width]


def deepseek() -> list[int]:
    """Returns the number of elements of each tensor of DeepSeek V3, whose experts are stacked."""
    width, expert, experts = 7168, 2048, 256
    attention = [width * 1536, 1536 * 128 * 192, width * 576, 512 * 128 * 256, 128 * 128 * width]
    dense = attention + [width * 18432] * 3
    sparse = attention + [width * experts] + [width * expert * experts] * 3 + [width * expert] * 3
    return [129280 * width] + dense * 3 + sparse * 58 + [129280 * width]


MODELS = {
    "0.5B": llama(128256, 1024, 2816, 256, 28),
    "8B": llama(128256, 4096, 14336, 1024, 32),
    "70B": llama(128256, 8192, 28672, 1024, 80),
    "405B": llama(128256, 16384, 53248, 1024, 126),
    "671B": deepseek(),
}


def largest_share(tensors: list[int], parts: int) -> float:
    """Returns the largest share of a worker under `--part`, as `even_parts` in crates/pipeline/src/shards.rs computes it."""
    parts = min(parts, len(tensors))
    total, start, done, largest = sum(tensors), 0, 0, 0
    for part in range(1, parts + 1):
        latest, goal, end, begun = len(tensors) - (parts - part), total * part // parts, start + 1, done
        done += tensors[start]
        while end < latest and (done + tensors[end] // 2 <= goal or part == parts):
            done += tensors[end]
            end += 1
        largest, start = max(largest, done - begun), end
    return largest / total


# Measurements.


class Ran(NamedTuple):
    seconds: float
    cpu: float
    peak: int


def run(*words: object, **variables: str) -> Ran:
    """Runs a command; returns wall time, CPU time, and peak memory without mapped files, in bytes."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    words = [GGUF, *map(str, words), "--quiet"]
    begun, peak, ended = time.monotonic(), 0, 0
    process = os.posix_spawn(GGUF, words, os.environ | variables, file_actions=quiet)
    while not ended:
        # `ru_maxrss` includes this interpreter, which starts the process.
        status = Path(f"/proc/{process}/status").read_text()
        anonymous = [int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")]
        peak = max([peak, *anonymous])
        time.sleep(0.005)
        ended, status, usage = os.wait4(process, os.WNOHANG)
    if status:
        sys.exit(f"{words} ended with {status}")
    return Ran(time.monotonic() - begun, usage.ru_utime + usage.ru_stime, peak * 1024)


def often(work: Callable[[], Ran], times: int = 3) -> Ran:
    runs = [work() for _ in range(times)]
    return Ran(*(median(values) for values in zip(*runs)))


def make(path: Path, gigabytes: float, tensors: int = 0) -> None:
    """Writes matrices of normally distributed F16 weights: so many, or else as many as needed with 32 MB each."""
    rng = np.random.default_rng(1)
    size = int(gigabytes * 1e9 / tensors) if tensors else 32 << 20
    rows = max(1, size // 2 // 4096)
    count = tensors or round(gigabytes * 1e9 / (rows * 4096 * 2))
    weights = (rng.standard_normal(rows * 4096, dtype=np.float32) * 0.02).astype(np.float16).tobytes()

    def string(text: str) -> bytes:
        return struct.pack("<Q", len(text)) + text.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, count, 2)
    head += string("general.architecture") + struct.pack("<I", 8) + string("llama")
    head += string("llama.block_count") + struct.pack("<II", 4, count)
    for i in range(count):
        head += string(f"blk.{i}.ffn_up.weight") + struct.pack("<IQQIQ", 2, 4096, rows, 1, i * len(weights))
    head += b"\0" * (-len(head) % 32)
    with path.open("wb") as file:
        file.write(head)
        for _ in range(count):
            file.write(weights)


def measure_runs(folder: Path, sizes: list[float]) -> float:
    """Measures whole runs; returns input bytes per core and second."""
    print("| input | cores | time | input per core and second | peak memory |\n|---|---|---|---|---|")
    rates, cores = [], os.cpu_count() or 1
    for size in sizes:
        source = folder / f"{size}.gguf"
        make(source, size)
        length = source.stat().st_size
        for threads in sorted({1, cores}):
            ran = often(lambda: run("quantize", source, folder / "o.gguf", TYPE, threads, "--force"))
            rates.append(length / ran.cpu)
            shown = f"{length / ran.seconds / threads / 1e6:.0f} MB"
            print(f"| {size:g} GB | {threads} | {ran.seconds:.1f} s | {shown} | {ran.peak / 1e6:.0f} MB |", flush=True)
    return median(rates)


def measure_parts(folder: Path, source: Path) -> None:
    """Measures parallel parts and merging."""
    cores = os.cpu_count() or 1
    whole = often(lambda: run("quantize", source, folder / "o.gguf", TYPE, cores, "--force"))
    words = lambda part: [GGUF, "quantize", "--part", f"{part}/{cores}", str(source), str(folder / "p.gguf"), TYPE, "1"]
    begun = time.monotonic()
    parts = [subprocess.Popen(words(part) + ["--force", "-q"]) for part in range(1, cores + 1)]
    assert all(part.wait() == 0 for part in parts)
    seconds = time.monotonic() - begun
    first = folder / f"p-00001-of-{cores:05}.gguf"
    merged = often(lambda: run("merge", first, folder / "m.gguf", "--force"))
    assert (folder / "m.gguf").read_bytes() == (folder / "o.gguf").read_bytes()
    length = (folder / "m.gguf").stat().st_size
    print(f"one run on {cores} threads {whole.seconds:.1f} s; {cores} parallel parts {seconds:.1f} s")
    print(f"merging: {length / merged.seconds / 1e9:.2f} GB/s, {merged.peak / 1e6:.0f} MB")


def measure_plans(folder: Path) -> None:
    for tensors in (300, 1200):
        source = folder / "plan.gguf"
        make(source, 0.02 * tensors / 300, tensors)
        ran = often(lambda: run("quantize", source, folder / "x.gguf", TYPE, "--dry-run"))
        print(f"a plan of {tensors} tensors: {ran.seconds * 1e3:.0f} ms")


class Wire(http.server.BaseHTTPRequestHandler):
    """Forwards requests, and counts bytes and requests."""

    protocol_version = "HTTP/1.1"
    store = ("", 0)
    counts: dict[str, int] = {}

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        connection = http.client.HTTPConnection(*Wire.store)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        data = answer.read()
        for name, count in ((f"{self.command}s", 1), ("sent", len(body)), ("received", len(data))):
            Wire.counts[name] = Wire.counts.get(name, 0) + count
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else len(data)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward

    def log_message(self, *_: object) -> None:
        pass


def measure_object_stores(folder: Path, source: Path) -> None:
    """Measures CPU time and transferred bytes of remote inputs and outputs."""
    try:
        import boto3
        from moto.server import ThreadedMotoServer
    except ImportError:
        print("SKIPPED: object stores, because moto or boto3 is missing")
        return
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    Wire.store = server.get_host_and_port()
    wire = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wire)
    wire.daemon_threads = True
    threading.Thread(target=wire.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{wire.server_port}"
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    s3 = boto3.client("s3", endpoint_url=endpoint, **keys)
    s3.create_bucket(Bucket="models")
    s3.upload_file(str(source), "models", "in.gguf")
    variables = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    local = often(lambda: run("quantize", source, folder / "o.gguf", TYPE, "--force"), 1)
    Wire.counts = {}
    remote = run("quantize", "s3://models/in.gguf", "s3://models/out.gguf", TYPE, AWS_REGION="us-east-1", **variables)
    whole = dict(Wire.counts)
    Wire.counts = {}
    for part in (1, 2, 3, 4):
        run("quantize", "--part", f"{part}/4", "s3://models/in.gguf", "s3://models/p.gguf", TYPE, AWS_REGION="us-east-1", **variables)
    length, made = source.stat().st_size, (folder / "o.gguf").stat().st_size
    extra = (remote.cpu - local.cpu) / ((length + made) / 1e9)
    print(f"input {length / 1e6:.0f} MB, output {made / 1e6:.0f} MB; a whole run: {whole}; four parts: {Wire.counts}")
    print(f"CPU time per transferred GB: {extra:.2f} s; peak memory {remote.peak / 1e6:.0f} MB")
    server.stop()


# Predictions.


def times(tensors: list[int], workers: int, rate: float) -> tuple[float, str]:
    """Returns the seconds until all parts are in an object store, and the bottleneck.

    A part is read, encoded and sent at the same time: its slowest step counts. `rate` is input bytes per core and
    second.
    """
    share = largest_share(tensors, workers)
    length = 2 * sum(tensors)
    steps = {
        "computation": length * share / (rate * ASSUMED["cores of a worker"]),
        "network": length * share / ASSUMED["network of a worker, B/s"],
    }
    slowest = max(steps, key=lambda step: steps[step])
    start = ASSUMED["start of a task, s"]
    if steps[slowest] < start:
        return start + steps[slowest], "start"
    # Above twice the even share, the largest tensor is the bottleneck.
    name = "largest tensor" if share * workers > 2 else slowest
    return start + steps[slowest], name


def tables(rate: float) -> None:
    workers = (1, 10, 100, 1000)
    print(f"\n{rate / 1e6:.0f} MB of input per core and second; assumed: {ASSUMED}\n")
    print("| model | input | " + " | ".join(f"{count:,} workers" for count in workers) + " |")
    print("|---|---|" + "---|" * len(workers))
    for name, tensors in MODELS.items():
        cells = []
        for count in workers:
            seconds, why = times(tensors, count, rate)
            hours = min(count, len(tensors)) * ASSUMED["cores of a worker"] * seconds / 3600
            cost = hours * ASSUMED["core for an hour, $"]
            length = 2 * sum(tensors)
            cost += length / READ_AT_ONCE * ASSUMED["GET, $"] + length * BITS / SENT_AT_ONCE * ASSUMED["PUT, $"]
            shown = f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
            cells.append(f"{shown}, ${cost:.2f} ({why})")
        print(f"| {name} | {2 * sum(tensors) / 1e9:,.0f} GB | " + " | ".join(cells) + " |")
    print("\n| model | tensors | largest | maximum speedup by parts | merging, 1 worker | on a shared file system |")
    print("|---|---|---|---|---|---|")
    for name, tensors in MODELS.items():
        length = 2 * sum(tensors)
        merging = 2 * BITS * length / ASSUMED["network of a worker, B/s"]
        shared = length * (1 + BITS) / ASSUMED["a shared file system, B/s"]
        gain = max(1 / largest_share(tensors, count) for count in workers)
        largest = f"{max(tensors) / sum(tensors):.1%}"
        print(f"| {name} | {len(tensors)} | {largest} | {gain:.0f}x | {merging:.0f} s | at least {shared:.0f} s |")


def main() -> None:
    global GGUF
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", type=os.path.abspath)
    parser.add_argument("gigabytes", type=float, nargs="*", default=[1.0, 2.0, 4.0])
    options = parser.parse_args()
    GGUF, sizes = options.gguf, options.gigabytes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rate = measure_runs(folder, sizes)
        source = folder / f"{sizes[0]}.gguf"
        measure_parts(folder, source)
        measure_plans(folder)
        # moto reads the whole object for each range request.
        small = folder / "small.gguf"
        make(small, 0.2)
        measure_object_stores(folder, small)
    tables(rate)


if __name__ == "__main__":
    main()
