"""Kills workers, nodes and drivers of a Ray cluster, and compares the results with those of a single machine.

Usage: python interop/cluster/ray_cluster.py CHECKPOINT_DIR [RUNS [PARTS]]

Starts a cluster of two nodes on this machine, and builds a model of many blocks from the checkpoint (that of `gguf demo`), so that a
part takes some seconds. Each run quantizes it to Q4_K_M on the cluster, while the script kills (SIGKILL) workers of both nodes at
random times, and the second node, which it starts again. In every third run it also kills the driver, and repeats the command until
it succeeds. The merged file must be byte-identical to that of `gguf_kit.quantize`, and no part or unfinished file may be left. Five
evaluations under the same conditions must have the figures of `gguf_kit.kl_divergence`. Needs `gguf-kit[ray]`.
"""

import argparse
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import gguf_kit
import gguf_kit.ray
import numpy as np
from gguf_kit import compat

# Nodes accept commands from the network: only with this token.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


class Node:
    """A node of the cluster, with all its processes in one session."""

    def __init__(self, *words):
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=2", *words]
        command += ["--disable-usage-stats", "--object-store-memory=80000000", "--node-ip-address=127.0.0.1"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        self.process = subprocess.Popen(command, **quiet)

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def workers(self):
        """Returns the worker processes, busy or idle."""
        listed = subprocess.run(
            ["ps", "-o", "pid=,args=", "-s", str(self.process.pid)], capture_output=True, text=True
        ).stdout
        lines = [line.split(None, 1) for line in listed.splitlines()]
        return [(int(pid), args) for pid, args in lines if args.startswith("ray::") and "Agent" not in args]


def larger(tiny, path, blocks):
    """Writes the model with its blocks repeated."""
    reader = compat.GGUFReader(tiny)
    model = gguf_kit.open(tiny)
    writer = compat.GGUFWriter(path, "llama")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "llama.block_count"):
            continue
        kind = field.types[0]
        inner = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(name, field.contents(), kind, inner)
    writer.add_block_count(blocks)
    own = model.metadata["llama.block_count"]
    for tensor in model.tensors:
        if not tensor.name.startswith("blk."):
            writer.add_tensor(tensor.name, np.ascontiguousarray(tensor.data))
    for block in range(blocks):
        prefix = f"blk.{block % own}."
        for tensor in model.tensors:
            if tensor.name.startswith(prefix):
                name = f"blk.{block}." + tensor.name[len(prefix) :]
                writer.add_tensor(name, np.ascontiguousarray(tensor.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Killer(threading.Thread):
    """Kills processes at random times until `stop` is called."""

    def __init__(self, cluster, killed, seed):
        super().__init__()
        self.cluster, self.killed = cluster, killed
        self.random, self.stopped = random.Random(seed), threading.Event()

    def run(self):
        while not self.stopped.wait(self.random.uniform(0.3, 2)):
            if self.random.random() < 0.15:
                self.cluster.replace_second()
                self.killed["nodes"] += 1
                continue
            workers = self.cluster.head.workers() + self.cluster.second.workers()
            if workers:
                process, title = self.random.choice(workers)
                try:
                    os.kill(process, signal.SIGKILL)
                    self.killed["idle workers" if "IDLE" in title else "busy workers"] += 1
                except ProcessLookupError:
                    pass

    def stop(self):
        self.stopped.set()
        self.join()


class Cluster:
    def __init__(self):
        # Paths of sockets have a maximum length.
        self.folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.head = Node("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self.folder}")
        time.sleep(15)
        self.second = Node(f"--address={self.address}")
        time.sleep(10)

    def replace_second(self):
        self.second.kill()
        self.second = Node(f"--address={self.address}")

    def end(self):
        self.second.kill()
        self.head.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(number, cluster, folder, source, expected, parts, killed):
    """Returns whether one run writes the bytes of a single machine, and leaves no other file."""
    out = folder / f"out-{number}.gguf"
    words = [sys.executable, "-m", "gguf_kit.ray", "quantize", source, out, "Q4_K_M"]
    words += ["--parts", str(parts), "--address", cluster.address, "--retries", "30", "--cpus", "1"]
    chance, killer = random.Random(-number), Killer(cluster, killed, number)
    driver_dies = number % 3 == 0
    killer.start()
    kept = []
    try:
        while True:
            driver = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                output = driver.communicate(timeout=chance.uniform(4, 14) if driver_dies else 600)[1]
            except subprocess.TimeoutExpired:
                driver.kill()
                driver.communicate()
                killed["drivers"] += 1
                # A driver that is always killed early would never finish.
                driver_dies = chance.random() < 0.5
                continue
            kept.append(output.strip().splitlines()[-1] if output.strip() else "")
            break
    finally:
        killer.stop()
    ended = driver.returncode == 0
    # The driver may have been killed after the file was renamed.
    ended = ended or f"error: {out} exists" in output
    same = ended and out.read_bytes() == expected
    left = sorted(file.name for file in folder.iterdir() if f"out-{number}" in file.name and file != out)
    print(f"run {number}: {'same' if same else 'DIFFERENT'}, left {left}, {kept[-1]}", flush=True)
    if not ended:
        print(output, flush=True)
    out.unlink(missing_ok=True)
    return same and not left


def evaluate(number, cluster, folder, models, killed):
    """Returns whether the figures are those of a single machine."""
    text = "In the beginning God created the heaven and the earth. " * 400
    settings = {"context": 128, "chunks": 24}
    killer = Killer(cluster, killed, 1000 + number)
    killer.start()
    try:
        found = gguf_kit.ray.evaluate(
            models, text, reference=folder / "tiny.gguf", parts=6, address=cluster.address, cpus=1, retries=30, **settings
        )
    finally:
        killer.stop()
    same = found == gguf_kit.kl_divergence(folder / "tiny.gguf", models, text, **settings)
    print(f"evaluation {number}: {'same' if same else 'DIFFERENT'}", flush=True)
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("runs", type=int, nargs="?", default=50)
    parser.add_argument("parts", type=int, nargs="?", default=8)
    options = parser.parse_args()
    checkpoint, runs, parts = options.checkpoint, options.runs, options.parts
    killed, start = Counter(), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        tiny, source = folder / "tiny.gguf", folder / "source.gguf"
        gguf_kit.convert(checkpoint, {"f32": tiny})
        larger(tiny, source, 96)
        gguf_kit.quantize(source, {"Q4_K_M": folder / "whole.gguf"})
        expected = (folder / "whole.gguf").read_bytes()
        print(f"{source.stat().st_size / 1e6:.0f} MB to {len(expected) / 1e6:.0f} MB in {parts} parts", flush=True)
        cluster = Cluster()
        try:
            same = sum(run(n, cluster, folder, source, expected, parts, killed) for n in range(1, runs + 1))
            made = gguf_kit.quantize(tiny, {kind: folder / f"{kind}.gguf" for kind in ("Q4_0", "Q8_0")})
            same_figures = sum(evaluate(n, cluster, folder, made.files, killed) for n in range(5))
        finally:
            cluster.end()
    seconds = time.monotonic() - start
    print(f"{same} of {runs} runs and {same_figures} of 5 evaluations are the same; killed: {dict(killed)}; {seconds:.0f} s")
    sys.exit(0 if same == runs and same_figures == 5 else 1)


if __name__ == "__main__":
    main()
