"""Measures time and memory of conversion beside a copy of the output and llama.cpp's tools.

Usage: python interop/speed/conversion.py GGUF_BINARY LLAMA_CPP_DIR LLAMA_LIBRARY TOKENIZER_DIR
                                          [--gigabytes N] [--runs N] [--ours]

Generates a BF16 Llama checkpoint with random weights and the tokenizer in TOKENIZER_DIR (such as `testdata/Tiny-KJV-Llama-4M`), and
converts it alternately: to F16 with gguf-kit, with llama.cpp's converter, and as a copy of the output with `cp`, without and with
`sync`; to Q4_K_M with gguf-kit in one pass, and with llama.cpp's converter and `llama_model_quantize` of LLAMA_LIBRARY (`libllama.so`
of `llama-cpp-python`) in two. Prints seconds, CPU seconds and peak memory of the fastest run. `--ours` skips llama.cpp's tools. Needs numpy;
llama.cpp's converter needs torch and transformers.
"""

import argparse
import json
import os
import shutil
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.speed.quantization import measured

WIDTH, FEED_FORWARD, VOCABULARY, HEADS, HEADS_KV = 2048, 5632, 2048, 32, 4


def shapes(layers):
    key_value = WIDTH // HEADS * HEADS_KV
    yield "model.embed_tokens.weight", (VOCABULARY, WIDTH)
    yield "lm_head.weight", (VOCABULARY, WIDTH)
    yield "model.norm.weight", (WIDTH,)
    for i in range(layers):
        layer = f"model.layers.{i}"
        yield f"{layer}.input_layernorm.weight", (WIDTH,)
        yield f"{layer}.post_attention_layernorm.weight", (WIDTH,)
        yield f"{layer}.self_attn.q_proj.weight", (WIDTH, WIDTH)
        yield f"{layer}.self_attn.k_proj.weight", (key_value, WIDTH)
        yield f"{layer}.self_attn.v_proj.weight", (key_value, WIDTH)
        yield f"{layer}.self_attn.o_proj.weight", (WIDTH, WIDTH)
        yield f"{layer}.mlp.gate_proj.weight", (FEED_FORWARD, WIDTH)
        yield f"{layer}.mlp.up_proj.weight", (FEED_FORWARD, WIDTH)
        yield f"{layer}.mlp.down_proj.weight", (WIDTH, FEED_FORWARD)


def elements(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def make_checkpoint(folder, tokenizer, gigabytes):
    import numpy as np

    layer = sum(elements(s) for n, s in shapes(1) if ".layers." in n)
    layers = max(1, round(gigabytes * 1e9 / 2 / layer))
    folder.mkdir()
    for name in ("tokenizer.model", "tokenizer_config.json"):
        shutil.copy(tokenizer / name, folder)
    config = json.loads((tokenizer / "config.json").read_text())
    config |= dict(
        hidden_size=WIDTH, intermediate_size=FEED_FORWARD, num_hidden_layers=layers, head_dim=WIDTH // HEADS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS_KV, vocab_size=VOCABULARY, torch_dtype="bfloat16",
    )
    (folder / "config.json").write_text(json.dumps(config))
    header, end = {}, 0
    tensors = sorted(shapes(layers))
    for name, shape in tensors:
        start, end = end, end + 2 * elements(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    header = json.dumps(header).encode()
    header += b" " * (-len(header) % 8)
    rng = np.random.default_rng(1)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for _, shape in tensors:
            weights = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
            file.write((weights.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    print(f"a checkpoint of {end / 1e9:.2f} GB", flush=True)


def official_convert(llama_cpp, source, target):
    """Runs llama.cpp's converter in a process of its own."""
    import runpy

    import torch

    # The converter names types that old versions of torch lack; the checkpoint has no such tensors.
    for missing in ("float8_e4m3fn", "float8_e5m2"):
        if not hasattr(torch, missing):
            setattr(torch, missing, object())
    sys.path[:0] = [llama_cpp, f"{llama_cpp}/gguf-py"]
    sys.argv = ["convert", source, "--outfile", target, "--outtype", "f16"]
    runpy.run_path(f"{llama_cpp}/convert_hf_to_gguf.py", run_name="__main__")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("binary", "llama_cpp", "library", "tokenizer"):
        parser.add_argument(name)
    parser.add_argument("--gigabytes", type=float, default=1.25)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ours", action="store_true")
    parser.add_argument("--official", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.official:
        return official_convert(args.llama_cpp, *args.official)
    with tempfile.TemporaryDirectory() as folder:
        source, ours, copy, theirs, small = (Path(folder) / n for n in ("model", "ours", "copy", "theirs", "small"))
        if (pid := os.fork()) == 0:
            make_checkpoint(source, Path(args.tokenizer), args.gigabytes)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        convert = [args.binary, "convert", "--force", str(source)]
        here = str(Path(__file__).parent)
        quantizer = [sys.executable, f"{here}/quantization.py", args.binary, args.library, "Q4_K_M"]
        works = {
            "f16: ours": [[*convert, "-o", str(ours), "--outtype", "f16"]],
            "f16: cp of the output": [["cp", str(ours), str(copy)]],
            "f16: cp to the disk": [["cp", str(ours), str(copy)], ["sync", "-d", str(copy)]],
            "q4_k_m: ours, one pass": [[*convert, "-o", str(small), "--outtype", "q4_k_m"]],
        }
        if not args.ours:
            convert = [sys.executable, *sys.argv, "--official", str(source), str(theirs)]
            works["f16: llama.cpp"] = [convert]
            works["q4_k_m: llama.cpp, two steps"] = [convert, [*quantizer, "--official", str(theirs), str(small), ""]]
        best = {}
        for _ in range(args.runs):
            for name, commands in works.items():
                # Outputs must not exist before a run.
                for path in {"ours": [ours], "llama.cpp": [theirs]}.get(name.partition(": ")[2], [copy, small]):
                    path.unlink(missing_ok=True)
                costs = [measured(command) for command in commands]
                cpu, wall, memory = (sum(c[0] for c in costs), sum(c[1] for c in costs), max(c[2] for c in costs))
                best[name] = min(best.get(name, (wall, cpu, memory)), (wall, cpu, memory))
    print(f"{'':<30}{'s':>8}{'CPU s':>8}{'MB':>8}")
    for name, (wall, cpu, memory) in best.items():
        print(f"{name:<30}{wall:>8.2f}{cpu:>8.2f}{memory:>8.0f}")


if __name__ == "__main__":
    main()
