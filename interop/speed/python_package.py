"""Measures reading and writing with the package `gguf-kit` beside the official package `gguf`.

Usage: python interop/speed/python_package.py MODEL

MODEL is a GGUF with a large vocabulary. Both packages must be installed (`gguf_kit` as a release build).
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import gguf
import gguf_kit
import gguf_kit.compat as ours

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
model = parser.parse_args().model


def timed(work, times):
    """Returns the median time of the work, in seconds."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def write(package, path):
    """Writes the vocabulary of the model."""
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
    ("gguf_kit.compat.GGUFReader and all tokens", lambda: ours.GGUFReader(model).get_field("tokenizer.ggml.tokens").contents()),
):
    found = timed(work, 21)
    print(f"{name}: {found * 1000:.2f} ms; official reader: {official * 1000:.0f} ms, ratio {official / found:.0f}")

with tempfile.TemporaryDirectory() as folder:
    a, b = Path(folder) / "a.gguf", Path(folder) / "b.gguf"
    theirs, found = timed(lambda: write(gguf, a), 5), timed(lambda: write(ours, b), 5)
    same = "same bytes" if a.read_bytes() == b.read_bytes() else "DIFFERENT BYTES"
    print(f"writing {len(tokens)} tokens: {found * 1000:.0f} ms, official {theirs * 1000:.0f} ms, ratio {theirs / found:.1f}; {same}")
