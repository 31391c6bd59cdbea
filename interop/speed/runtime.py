"""Measures prompt processing and token generation beside llama.cpp.

Usage: python interop/speed/runtime.py GGUF_BINARY LLAMA_BENCH [TYPE ...] [--threads N] [--rounds N]
                                       [--prompt N] [--generate N] [--folder DIR] [--layers N]
                                       [--experts N] [--model FILE] [--imatrix FILE] [--peer LLAMA_BENCH]

LLAMA_BENCH is llama.cpp's `llama-bench`, built for this machine; --peer is that of another program, such as ik_llama.cpp. Generates an F16 Llama of 660 million random weights (12 layers,
width 2048, FFN 5632, 32,000 tokens), or with `--experts` a mixture of experts (Qwen2 MoE: FFN 1024, of the experts 8 per token, and one
for all tokens), or takes that of `--model`, quantizes it to each type with `gguf quantize`, and runs `gguf bench` and `llama-bench` on the
file alternately for several rounds. Prints the medians, their ratio, and the shares of the INT8 and memory limits of `gguf bench`. Only
one quantized file exists at a time: 2.7 GB of disk suffice.
Needs `gguf` and `numpy` from PyPI.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

WIDTH, FEED_FORWARD, VOCABULARY, HEADS, HEADS_KV = 2048, 5632, 32000, 32, 4
EXPERT_FEED_FORWARD, EXPERTS_USED = 1024, 8
TYPES = ["Q4_K_M", "Q8_0", "Q4_0", "Q6_K", "IQ4_XS", "Q2_K", "BF16", "F16"]


def tensor_shapes(layers, experts):
    key_value = WIDTH // HEADS * HEADS_KV
    yield "token_embd.weight", (VOCABULARY, WIDTH)
    yield "output_norm.weight", (WIDTH,)
    yield "output.weight", (VOCABULARY, WIDTH)
    for i in range(layers):
        yield f"blk.{i}.attn_norm.weight", (WIDTH,)
        yield f"blk.{i}.attn_q.weight", (WIDTH, WIDTH)
        yield f"blk.{i}.attn_k.weight", (key_value, WIDTH)
        yield f"blk.{i}.attn_v.weight", (key_value, WIDTH)
        yield f"blk.{i}.attn_output.weight", (WIDTH, WIDTH)
        yield f"blk.{i}.ffn_norm.weight", (WIDTH,)
        if not experts:
            yield f"blk.{i}.ffn_gate.weight", (FEED_FORWARD, WIDTH)
            yield f"blk.{i}.ffn_up.weight", (FEED_FORWARD, WIDTH)
            yield f"blk.{i}.ffn_down.weight", (WIDTH, FEED_FORWARD)
            continue
        for part, width in ("q", WIDTH), ("k", key_value), ("v", key_value):
            yield f"blk.{i}.attn_{part}.bias", (width,)
        yield f"blk.{i}.ffn_gate_inp.weight", (experts, WIDTH)
        yield f"blk.{i}.ffn_gate_inp_shexp.weight", (WIDTH,)
        for kind, count in ("exps", [experts]), ("shexp", []):
            yield f"blk.{i}.ffn_gate_{kind}.weight", (*count, EXPERT_FEED_FORWARD, WIDTH)
            yield f"blk.{i}.ffn_up_{kind}.weight", (*count, EXPERT_FEED_FORWARD, WIDTH)
            yield f"blk.{i}.ffn_down_{kind}.weight", (*count, WIDTH, EXPERT_FEED_FORWARD)


def make_model(path, layers, experts):
    """Writes normally distributed weights, and a vocabulary of numbered words."""
    import numpy as np
    from gguf import GGUFWriter

    rng = np.random.default_rng(1)
    model = GGUFWriter(path, "qwen2moe" if experts else "llama", use_temp_file=False)
    if experts:
        model.add_expert_count(experts)
        model.add_expert_used_count(EXPERTS_USED)
        model.add_expert_feed_forward_length(EXPERT_FEED_FORWARD)
        model.add_expert_shared_feed_forward_length(EXPERT_FEED_FORWARD)
    model.add_block_count(layers)
    model.add_context_length(4096)
    model.add_embedding_length(WIDTH)
    model.add_feed_forward_length(FEED_FORWARD)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS_KV)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_rope_dimension_count(WIDTH // HEADS)
    model.add_vocab_size(VOCABULARY)
    model.add_tokenizer_model("llama")
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    tokens += [f"w{i}" for i in range(VOCABULARY - len(tokens))]
    model.add_token_list(tokens)
    model.add_token_scores([-float(i) for i in range(VOCABULARY)])
    model.add_token_types([2, 3, 3] + [6] * 256 + [1] * (VOCABULARY - 259))
    model.add_bos_token_id(1)
    model.add_eos_token_id(2)
    total = 0
    shapes = dict(tensor_shapes(layers, experts))
    for name, shape in shapes.items():
        dtype = np.float32 if len(shape) == 1 else np.float16
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        model.add_tensor_info(name, shape, np.dtype(dtype), nbytes)
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_ti_data_to_file()
    # One tensor at a time, because all together take gigabytes of memory.
    for name, shape in shapes.items():
        total += int(np.prod(shape))
        x = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        if len(shape) == 1:
            x += np.float32("norm" in name)
        else:
            x = x.astype(np.float16)
        model.write_tensor_data(x)
    model.close()
    print(f"{total / 1e6:.0f} million weights", flush=True)


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def ours(args, path):
    """Returns tokens per second of the prompt and of generation, and their shares of what INT8 products and memory allow."""
    result = run([args.gguf, "bench", path, "-p", args.prompt, "-n", args.generate,
                "-t", args.threads, "-r", 1, "--json"])
    prompt, generation = result["prompt_tokens_per_second"], result["generation_tokens_per_second"]
    int8 = result["prompt"]["int8_limit_tokens_per_second"]
    return prompt, generation, prompt / int8 if int8 else float("nan"), generation / result["generation"]["memory_limit_tokens_per_second"]


def theirs(args, program, path):
    rows = run([program, "-m", path, "-p", args.prompt, "-n", args.generate,
                "-t", args.threads, "-r", 1, "-o", "json"])
    speed = {row["n_gen"] == 0: row["avg_ts"] for row in rows}
    return speed[True], speed[False]


def medians(rounds):
    return [statistics.median(column) for column in zip(*rounds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("llama_bench")
    parser.add_argument("types", nargs="*", default=TYPES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--experts", type=int, default=0)
    parser.add_argument("--model", default=None, help="instead of random weights")
    parser.add_argument("--peer", default=None, metavar="LLAMA_BENCH", help="of another program")
    parser.add_argument("--imatrix", default=None, help="for the types that need one")
    parser.add_argument("--folder", default=None, help="keep the models there, for another run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or temporary
        stem = os.path.join(folder, f"random-{args.layers}" + (f"-{args.experts}" if args.experts else ""))
        if args.model:
            stem = os.path.join(folder, os.path.basename(args.model).removesuffix(".gguf"))
        source = f"{stem}-F16.gguf"
        if args.model and not os.path.exists(source):
            subprocess.run([args.gguf, "quantize", "--allow-requantize", args.model, source, "F16"], check=True, capture_output=True)
        elif not os.path.exists(source):
            make_model(source, args.layers, args.experts)
        peers = [args.llama_bench] + ([args.peer] if args.peer else [])
        columns = ["llama.cpp", "ratio"] + (["peer", "ratio"] if args.peer else [])
        header = ["", "prompt: ours", *columns, "of INT8", "generation: ours", *columns, "of reading"]
        print(f"| {' | '.join(header)} |\n|---|{'---:|' * (len(header) - 1)}", flush=True)
        for name in args.types:
            path = source
            if name != "F16":
                path = f"{stem}-{name}.gguf"
                if not os.path.exists(path):
                    importance = ["--imatrix", args.imatrix] if args.imatrix else []
                    subprocess.run([args.gguf, "quantize", source, path, name, *importance], check=True, capture_output=True)
            rounds = [[ours(args, path), *(theirs(args, peer, path) for peer in peers)] for _ in range(args.rounds)]
            if path != source and args.folder is None:
                os.remove(path)
            mine, *others = map(medians, zip(*rounds))
            cells = [name]
            for test in 0, 1:
                cells.append(f"{mine[test]:.1f}")
                for other in others:
                    cells += [f"{other[test]:.1f}", f"{mine[test] / other[test]:.2f}"]
                cells.append("" if math.isnan(mine[2 + test]) else f"{mine[2 + test]:.2f}")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
