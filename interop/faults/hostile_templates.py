"""Measures time and memory of `gguf` on malicious chat templates.

Usage: python3 interop/faults/hostile_templates.py GGUF_BINARY [SECONDS [MEGABYTES [EVERY]]]

Writes each template of crates/tokenizer/tests/data/hostile.json, or one in EVERY, into a model, runs `gguf chat-template` and
`gguf check` on it, and prints a table. Fails if a command takes more than SECONDS, or one of its processes more than MEGABYTES of
memory, if it dies of a signal, or prints a panic.
"""

import argparse
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HOSTILE = Path(__file__).resolve().parents[2] / "crates" / "tokenizer" / "tests" / "data" / "hostile.json"
# Hard limits of a command: seconds, bytes.
KILL_AFTER, MEMORY = 20, 4 << 30


def text(pieces):
    """Joins the pieces of a template: texts, or a text with its number of repetitions."""
    return "".join(piece if isinstance(piece, str) else piece[0] * piece[1] for piece in pieces)


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def model(template):
    """Returns a GGUF with two tokens and the template."""
    tokens = ["<s>", "</s>"]
    keys = [
        string("general.architecture") + struct.pack("<I", 8) + string("llama"),
        string("tokenizer.ggml.model") + struct.pack("<I", 8) + string("llama"),
        string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(tokens)) + b"".join(map(string, tokens)),
        string("tokenizer.chat_template") + struct.pack("<I", 8) + string(template),
    ]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys)


def set_limits():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def measure(*command):
    """Returns exit code (negative: a signal), standard error, seconds, and megabytes of the largest process."""
    with tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=set_limits, start_new_session=True
        )
        timer = threading.Timer(KILL_AFTER, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        # `ru_maxrss` is the maximum of the process and its children.
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.monotonic() - start
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return process.returncode, errors.read().decode(errors="replace"), elapsed, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("seconds", type=float, nargs="?", default=8.0)
    parser.add_argument("megabytes", type=float, nargs="?", default=400.0)
    parser.add_argument("every", type=int, nargs="?", default=1)
    options = parser.parse_args()
    templates = dict(list(json.loads(HOSTILE.read_text()).items())[:: options.every])
    failed, slowest, largest = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        file, messages = Path(folder) / "model.gguf", Path(folder) / "messages.json"
        messages.write_text(json.dumps([{"role": "user", "content": "Hi"}]))
        print(f"{'template':44} {'chat-template':>22} {'check':>22}")
        for name, pieces in templates.items():
            file.write_bytes(model(text(pieces)))
            cells, failures = [], []
            for command in [("chat-template", file, "--messages", messages), ("check", file)]:
                code, errors, elapsed, memory = measure(options.gguf, *command)
                slowest, largest = max(slowest, elapsed), max(largest, memory)
                cells.append(f"{elapsed:6.2f} s {memory:6.0f} MB {code:4}")
                checks = [
                    (code < 0 or code > 1, f"exit {code}"),
                    (elapsed > options.seconds, "too slow"),
                    (memory > options.megabytes, "too much memory"),
                    ("panicked at" in errors or errors.count("\n") > 1, f"prints {errors.splitlines()[:2]}"),
                ]
                failures += [f"{command[0]}: {failure}" for is_failure, failure in checks if is_failure]
            print(f"{name:44} {cells[0]:>22} {cells[1]:>22} {'; '.join(failures)}", flush=True)
            if failures:
                failed.append(name)
    print(f"{len(templates)} templates, {len(failed)} failed; at most {slowest:.1f} s and {largest:.0f} MB")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
