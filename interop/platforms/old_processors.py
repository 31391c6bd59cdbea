"""Runs commands on emulated x86-64 processors, and compares the files that they write with those of this processor.

Usage: python3 interop/platforms/old_processors.py GGUF_BINARY CHECKPOINT_DIR

Needs `qemu-x86_64`. The processors range from one without SSE4 to one with AVX2. A processor that lacks an instruction which the
program executes ends it by SIGILL, which counts as a failure. Converted, quantized and edited files, and the ids of a text, must be
identical. Generated text may differ: sums are rounded in another order. It must only be produced.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Without SSE4, without AVX, without AVX2, with AVX2.
PROCESSORS = ["core2duo", "Nehalem", "SandyBridge", "Haswell"]

TYPES = "q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k_m q4_k_m q5_k_m q6_k iq3_s iq4_nl iq4_xs tq1_0 tq2_0 mxfp4_moe nvfp4 q1_0 q2_0 bf16 f32".split()

# Types that need an importance matrix.
WITH_MATRIX = "iq2_xxs iq2_xs iq2_s iq3_xxs iq1_s iq1_m".split()

TEXT = "In the beginning God created the heaven and the earth. \N{SNOWMAN} 12,345"


def steps(checkpoint, directory):
    """Returns the commands, in order, that write files into the directory."""
    model = directory / "model.gguf"
    matrix = directory / "imatrix.gguf"
    text = directory / "text.txt"
    text.write_text((TEXT + "\n") * 40)
    yield ["convert", checkpoint, "-o", model]
    yield from (["quantize", model, directory / f"{name}.gguf", name] for name in TYPES)
    yield ["imatrix", model, "-f", text, "-c", 64, "--chunks", 1, "-o", matrix]
    yield ["edit", model, "--set", "general.name=x", "-o", directory / "edited.gguf"]
    yield ["split", model, directory / "part", "--split-max-tensors", 20]


def answers():
    """Returns commands on the model whose standard output must be identical."""
    return [["tokenize", "-p", TEXT, "--json"], ["check"], ["hash"], ["inspect", "--json"]]


def run(command, arguments):
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True)
    if done.returncode:
        print(f"FAILED ({done.returncode}): {' '.join(map(str, [*command, *arguments]))}\n{done.stderr.decode(errors='replace')}")
    return done


def digests(directory):
    """Returns the digests of the written files except the importance matrix, whose sums depend on the order of additions."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(directory.glob("*.gguf")) if path.name != "imatrix.gguf"}


def observe(command, checkpoint, directory, matrix):
    """Runs everything, with the given importance matrix if any; returns digests of files and answers, the number of failures and the seconds of the quantizations."""
    failures, seconds = 0, 0.0
    for arguments in steps(checkpoint, directory):
        start = time.monotonic()
        failures += run(command, arguments).returncode != 0
        seconds += time.monotonic() - start if arguments[0] == "quantize" else 0
    matrix = matrix or directory / "imatrix.gguf"
    for name in WITH_MATRIX:
        output = directory / f"{name}.gguf"
        arguments = ["quantize", directory / "model.gguf", output, name, "--imatrix", matrix]
        failures += run(command, arguments).returncode != 0
    printed = []
    for name, *rest in answers():
        done = run(command, [name, directory / "model.gguf", *rest])
        failures += done.returncode != 0
        printed.append(done.stdout.replace(str(directory).encode(), b""))
    for precision in ("exact", "fast"):
        arguments = ["generate", directory / "q4_k_m.gguf", "--raw", "-p", "And the king", "-n", 8, "--precision", precision]
        done = run(command, arguments)
        failures += done.returncode != 0 or not done.stdout.strip()
    return digests(directory), printed, failures, seconds, matrix


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gguf")
    parser.add_argument("checkpoint")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "here").mkdir()
        files, printed, wrong, base, matrix = observe([arguments.gguf], arguments.checkpoint, root / "here", None)
        if wrong:
            sys.exit("the commands fail on this processor")
        for processor in PROCESSORS:
            directory = root / processor
            directory.mkdir()
            command = ["qemu-x86_64", "-cpu", processor, arguments.gguf]
            found, answered, failures, seconds, _ = observe(command, arguments.checkpoint, directory, matrix)
            differing = [name for name in files.keys() | found.keys() if files.get(name) != found.get(name)]
            differing += [f"gguf {answer[0]}" for answer, a, b in zip(answers(), printed, answered) if a != b]
            print(f"{processor:12} {len(found)} files, {failures} failures, different: {', '.join(sorted(differing)) or 'none'};"
                  f" quantized in {seconds:.1f} s in the emulator, {base:.1f} s here", flush=True)
            wrong += failures + len(differing)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
