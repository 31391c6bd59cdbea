"""Measures long prompts, and generation after them, beside llama.cpp and ik_llama.cpp.

Usage: python interop/speed/contexts.py GGUF_BINARY MODEL LLAMA_BATCHED_BENCH [LLAMA_BATCHED_BENCH ...]
                                        [--tokens N] [--generate N] [--rounds N] [--threads N] [--cache-type TYPE]

LLAMA_BATCHED_BENCH are programs `llama-batched-bench` of the peers, which run with flash attention. Each program reads a prompt of N
tokens, and generates more tokens at that depth; all with a KV cache of TYPE (`f16`). Programs run in turns; the table has medians and
their ratios. States the processor, and the share of time that other virtual machines took, which should be below 5 %.
"""

import argparse
import json
import re
import statistics
import subprocess
from pathlib import Path


def run(*words):
    """Returns standard output, then standard error, where ik_llama.cpp prints its table."""
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
    return done.stdout, done.stderr


def of_gguf(program, options):
    """Returns tokens per second of the prompt and of generation after it."""
    common = ("bench", options.model, "-r", 1, "-t", options.threads, "--cache-type", options.cache_type, "--json")
    prompt = json.loads(run(program, *common, "-p", options.tokens, "-n", 0)[0])["prompt"]
    after = json.loads(run(program, *common, "-p", 0, "-n", options.generate, "-d", options.tokens)[0])["generation"]
    return prompt["mean"], after["mean"]


def of_peer(program, options):
    context = options.tokens + options.generate + 64
    words = ("-m", options.model, "-c", context, "-npp", options.tokens, "-ntg", options.generate, "-npl", 1, "-fa", "on", "-t", options.threads)
    words += ("-ctk", options.cache_type, "-ctv", options.cache_type)
    lines = "".join(run(program, *words)).splitlines()
    header = next([cell.strip() for cell in line.split("|")] for line in lines if "S_PP" in line)
    values = next([cell.strip() for cell in line.split("|")] for line in lines if re.match(r"\|\s*\d", line))
    return tuple(float(values[header.index(name)]) for name in ("S_PP t/s", "S_TG t/s"))


def cpu_times():
    """Returns all ticks of the processors, and those that other virtual machines took."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return sum(ticks), ticks[7]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("model")
    parser.add_argument("peers", nargs="+")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache-type", default="f16")
    options = parser.parse_args()
    model_name = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    print(f"{model_name[1] if model_name else 'unknown processor'}, {options.threads} threads, {options.tokens} tokens, KV cache in {options.cache_type}")
    found = {program: [] for program in (options.gguf, *options.peers)}
    before = cpu_times()
    for _ in range(options.rounds):
        for program, speeds in found.items():
            measure = of_gguf if program == options.gguf else of_peer
            speeds.append(measure(program, options))
    after = cpu_times()
    stolen = (after[1] - before[1]) / (after[0] - before[0])
    print(f"time taken by other virtual machines: {100 * stolen:.1f} %\n")
    print("| program | prompt t/s | ratio | generation t/s | ratio |\n|---|---:|---:|---:|---:|")
    medians = {program: [statistics.median(column) for column in zip(*speeds)] for program, speeds in found.items()}
    ours = medians[options.gguf]
    for program, speeds in medians.items():
        cells = (f"{speed:.1f} | {our / speed:.2f}" for our, speed in zip(ours, speeds))
        print(f"| {program} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
