"""Speculative decoding beside generation without drafts, on 40 tasks.

Ten functions of Python's standard library to edit, ten to continue, ten answers in JSON and ten in prose. For each
task, `gguf generate` runs without drafts, with prompt lookup, with a draft model, and with both, in turns; all runs
must generate the same ids. The table has medians of the speed relative to that without drafts, and the lowest one.

With --peer, a folder of llama.cpp's programs, `llama-completion` and `llama-speculative-simple` run the same tasks with the same two models;
the column `llama.cpp` is relative to its own speed without drafts, and its speeds are printed.
"""

import argparse
import inspect
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

EDITS = [
    ("base64", "b32encode", "Rename the parameter s to data"),
    ("calendar", "weekday", "Rename the parameter year to y"),
    ("colorsys", "rgb_to_hsv", "Rename the variable maxc to highest"),
    ("fnmatch", "filter", "Rename the parameter pat to pattern"),
    ("glob", "glob1", "Rename the parameter dirname to directory"),
    ("heapq", "merge", "Rename the variable h to heap"),
    ("shlex", "join", "Add a docstring that gives an example to"),
    ("statistics", "harmonic_mean", "Rename the variable total to amount"),
    ("string", "capwords", "Rename the parameter s to text"),
    ("textwrap", "indent", "Rename the parameter prefix to margin"),
]
CONTINUED = [
    ("ast", "walk"),
    ("base64", "b85encode"),
    ("configparser", "RawConfigParser"),
    ("csv", "DictReader"),
    ("difflib", "get_close_matches"),
    ("fractions", "Fraction"),
    ("gettext", "find"),
    ("mimetypes", "MimeTypes"),
    ("queue", "Queue"),
    ("textwrap", "TextWrapper"),
]
SUBJECTS = [
    "the planets of the solar system",
    "rivers in Europe",
    "programming languages",
    "musical instruments",
    "kinds of cheese",
    "chemical elements",
    "mountains in Asia",
    "sorting algorithms",
    "Olympic sports",
    "trees of temperate forests",
]


def code_of(module, name):
    return inspect.getsource(getattr(__import__(module), name))


def tasks():
    """Returns (kind, arguments) of each task."""
    result = []
    for module, name, request in EDITS:
        code = code_of(module, name)
        text = f"{request} in this function, and return the whole function only:\n\n{code}"
        result.append(("code that is edited", ["-p", text]))
    for module, name in CONTINUED:
        lines = code_of(module, name).splitlines(keepends=True)
        text = "".join(lines[: min(60, len(lines) * 2 // 3)])
        result.append(("code that is continued", ["--raw", "-p", text]))
    for subject in SUBJECTS:
        text = f"List five {subject} as a JSON array of objects with name, description and three properties."
        result.append(("answers in JSON", ["-p", text]))
        result.append(("prose", ["-p", f"Write three paragraphs about {subject}."]))
    return sorted(result, key=lambda task: task[0])


def generate(gguf, model, task, tokens, drafts):
    command = [gguf, "generate", model, *task, "-n", str(tokens), "--temp", "0", "--json", *drafts]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def rendered(gguf, model, task):
    """Returns the prompt of a task in the chat template."""
    if "--raw" in task:
        return task[-1]
    messages = json.dumps([{"role": "user", "content": task[-1]}])
    command = [gguf, "chat-template", model, "--messages", "-"]
    return subprocess.run(command, input=messages, capture_output=True, text=True, check=True).stdout


def of_peer(folder, model, prompt, tokens, draft):
    """Returns tokens per second of llama.cpp without drafts and with a draft model."""

    def speed(pattern, program, *options):
        command = [folder / program, "-m", model, "-p", prompt, "-n", str(tokens), "--temp", "0", "-t", "2", *options]
        run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return float(re.findall(pattern, run.stdout + run.stderr)[-1])

    plain = speed(r" eval time .*?([\d.]+) tokens per second", "llama-completion", "-no-cnv")
    drafting = ("-md", draft, "--spec-type", "draft-simple")
    return plain, speed(r"decoded .* speed:\s+([\d.]+) t/s", "llama-speculative-simple", *drafting)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", metavar="GGUF_BINARY", type=Path)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--draft", metavar="MODEL", help="draft model with the vocabulary of the model")
    parser.add_argument("-n", "--tokens", type=int, default=128, help="tokens per task (default: 128)")
    parser.add_argument("--tasks", type=int, default=10, help="tasks of each kind (default: 10)")
    parser.add_argument("--peer", metavar="FOLDER", type=Path, help="of llama.cpp's programs, which need --draft")
    options = parser.parse_args()

    sources = {"lookup": []}
    if options.draft:
        sources["--draft"] = ["--no-lookup", "--draft", options.draft]
        sources["both"] = ["--draft", options.draft]
    speeds, plain_speeds, peer_speeds, done = {}, [], [], {}
    for kind, task in tasks():
        done[kind] = done.get(kind, 0) + 1
        if done[kind] > options.tasks:
            continue
        plain = [generate(options.gguf, options.model, task, options.tokens, ["--no-lookup"])]
        found = {}
        for name, drafts in sources.items():
            found[name] = generate(options.gguf, options.model, task, options.tokens, drafts)
            if found[name]["ids"] != plain[0]["ids"]:
                sys.exit(f"{name} generated another text: {kind}, task {done[kind]}")
        plain.append(generate(options.gguf, options.model, task, options.tokens, ["--no-lookup"]))
        speed = statistics.mean(run["tokens_per_second"] for run in plain)
        plain_speeds.append(speed)
        line = []
        for name, run in found.items():
            ratio = run["tokens_per_second"] / speed
            speeds.setdefault(name, {}).setdefault(kind, []).append(ratio)
            line.append(f"{name} {ratio:.2f} ({run['accepted_tokens']} of {run['drafted_tokens']})")
        if options.peer:
            prompt = rendered(options.gguf, options.model, task)
            before, after = of_peer(options.peer, options.model, prompt, options.tokens, options.draft)
            peer_speeds.append((before, after))
            speeds.setdefault("llama.cpp", {}).setdefault(kind, []).append(after / before)
            line.append(f"llama.cpp {after / before:.2f} of {before:.1f}")
        print(f"{kind} {done[kind]}: {speed:.1f} tokens/s, {', '.join(line)}", file=sys.stderr, flush=True)

    print(f"Without drafts: {statistics.median(plain_speeds):.1f} tokens/s.")
    if peer_speeds:
        print("llama.cpp: {:.1f} tokens/s, and {:.1f} with drafts.".format(*map(statistics.median, zip(*peer_speeds))))
    print("\n| task | " + " | ".join(speeds) + " |")
    print("|---|" + "---:|" * len(speeds))
    for kind in sorted(done):
        print(f"| {kind} | " + " | ".join(f"{statistics.median(speeds[name][kind]):.2f}" for name in speeds) + " |")
    every = {name: [ratio for ratios in of_kind.values() for ratio in ratios] for name, of_kind in speeds.items()}
    print("| all tasks | " + " | ".join(f"{statistics.median(every[name]):.2f}" for name in speeds) + " |")
    print("| lowest | " + " | ".join(f"{min(every[name]):.2f}" for name in speeds) + " |")


if __name__ == "__main__":
    main()
