#!/usr/bin/env python3
"""How fast the package `gguf-kit` reads and writes beside the official package `gguf`, in one run.

    interop/speed/python_package.py MODEL

`MODEL` is a GGUF with a large vocabulary. Both packages must be installed (`gguf_kit` built for release).
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import gguf
import gguf_kit
import gguf_kit.compat as ours

model = sys.argv[1]


def timed(work, times):
    """The median, in seconds."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def write(package, path):
    """The keys of the model, written anew."""
    writer = package.GGUFWriter(path, "llama")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_scores(scores)
    writer.add_token_merges(merges)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


metadata = gguf_kit.open(model).metadata
tokens = metadata["tokenizer.ggml.tokens"]
types = metadata["tokenizer.ggml.token_type"].tolist()
scores = [float(i) for i in range(len(tokens))]
merges = metadata.get("tokenizer.ggml.merges") or tokens

official = timed(lambda: gguf.GGUFReader(model), 1)
for name, work in (
    ("gguf_kit.open", lambda: gguf_kit.open(model)),
    ("gguf_kit.compat.GGUFReader", lambda: ours.GGUFReader(model)),
    ("the same, and all tokens", lambda: ours.GGUFReader(model).get_field("tokenizer.ggml.tokens").contents()),
):
    found = timed(work, 21)
    print(f"{name}: {found * 1000:.2f} ms; the official reader: {official * 1000:.0f} ms, {official / found:.0f} times")

with tempfile.TemporaryDirectory() as folder:
    a, b = Path(folder) / "a.gguf", Path(folder) / "b.gguf"
    theirs, found = timed(lambda: write(gguf, a), 5), timed(lambda: write(ours, b), 5)
    same = "the same bytes" if a.read_bytes() == b.read_bytes() else "OTHER BYTES"
    print(f"writing {len(tokens)} tokens: {found * 1000:.0f} ms, official {theirs * 1000:.0f} ms, {theirs / found:.1f} times; {same}")
