"""Templates that mean harm: how long `gguf` works on them, and how much memory that takes.

Usage: python hostile_templates.py GGUF_BINARY [SECONDS [MEGABYTES [EVERY]]]

Each template of crates/tokenizer/tests/data/hostile.json, or one of EVERY so many, is put into a
model, which is given to `gguf chat-template` and to `gguf check`; a table is printed. Fails where a
command takes more than SECONDS of the clock, or any process of it more than MEGABYTES of memory,
dies of a signal, or shows the words of a panic.
"""

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
# Where a command of ours would take the machine with it: seconds, bytes.
KILL_AFTER, MEMORY = 20, 4 << 30


def text(pieces):
    """A template as its list of pieces says: a text, or a text and how many times."""
    return "".join(piece if isinstance(piece, str) else piece[0] * piece[1] for piece in pieces)


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def model(template):
    """The bytes of a GGUF that has nothing but a few tokens and the template."""
    tokens = ["<s>", "</s>"]
    keys = [
        string("general.architecture") + struct.pack("<I", 8) + string("llama"),
        string("tokenizer.ggml.model") + struct.pack("<I", 8) + string("llama"),
        string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(tokens)) + b"".join(map(string, tokens)),
        string("tokenizer.chat_template") + struct.pack("<I", 8) + string(template),
    ]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys)


def bounded():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def measure(*command):
    """Exit code (of a signal negative), standard error, seconds, megabytes of the largest process."""
    with tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=bounded, start_new_session=True
        )
        timer = threading.Timer(KILL_AFTER, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        # The memory is the largest of the process and of those that it waited for.
        _, status, usage = os.wait4(process.pid, 0)
        took = time.monotonic() - start
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return process.returncode, errors.read().decode(errors="replace"), took, usage.ru_maxrss / 1024


def main(binary, seconds=8.0, megabytes=400.0, every=1):
    seconds, megabytes = float(seconds), float(megabytes)
    templates = dict(list(json.loads(HOSTILE.read_text()).items())[:: int(every)])
    bad, slowest, largest = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        file, messages = Path(folder) / "model.gguf", Path(folder) / "messages.json"
        messages.write_text(json.dumps([{"role": "user", "content": "Hi"}]))
        print(f"{'template':44} {'chat-template':>22} {'check':>22}")
        for name, pieces in templates.items():
            file.write_bytes(model(text(pieces)))
            cells, faults = [], []
            for command in [("chat-template", file, "--messages", messages), ("check", file)]:
                code, errors, took, memory = measure(binary, *command)
                slowest, largest = max(slowest, took), max(largest, memory)
                cells.append(f"{took:6.2f} s {memory:6.0f} MB {code:4}")
                checks = [
                    (code < 0 or code > 1, f"exit {code}"),
                    (took > seconds, "too slow"),
                    (memory > megabytes, "too large"),
                    ("panicked at" in errors or errors.count("\n") > 1, f"says {errors.splitlines()[:2]}"),
                ]
                faults += [f"{command[0]}: {fault}" for is_fault, fault in checks if is_fault]
            print(f"{name:44} {cells[0]:>22} {cells[1]:>22} {'; '.join(faults)}", flush=True)
            if faults:
                bad.append(name)
    print(f"{len(templates)} templates, {len(bad)} of them bad; at most {slowest:.1f} s and {largest:.0f} MB")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(*sys.argv[1:])
