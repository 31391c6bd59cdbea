"""Measures quantization beside llama.cpp, and checks that the bytes are equal.

Usage: python interop/speed/quantization.py GGUF_BINARY LLAMA_LIBRARY [TYPE ...] [--imatrix] [--threads N]
                                            [--parameters MILLIONS] [--runs N]

LLAMA_LIBRARY is `libllama.so` of `llama-cpp-python` from PyPI (in the folder `llama_cpp/lib`). Generates an F16 Llama with random
weights, quantizes it alternately with gguf-kit and with `llama_model_quantize`, each in a process of its own, checks that all tensors
have the same bytes, and prints the minimum of CPU seconds, seconds and peak memory of all runs. Needs `gguf` and `numpy` from PyPI.
"""

import argparse
import ctypes
import multiprocessing
import os
import sys
import tempfile
import time

WIDTH, FEED_FORWARD, VOCABULARY, HEADS, HEADS_KV = 1024, 2816, 8192, 16, 4


def tensor_shapes(layers):
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
        yield f"blk.{i}.ffn_gate.weight", (FEED_FORWARD, WIDTH)
        yield f"blk.{i}.ffn_up.weight", (FEED_FORWARD, WIDTH)
        yield f"blk.{i}.ffn_down.weight", (WIDTH, FEED_FORWARD)


def make_model(path, imatrix, millions):
    """Writes normally distributed weights, and an importance matrix with a large spread over columns."""
    import numpy as np
    from gguf import GGUFWriter

    per_layer = sum(int(np.prod(s)) for n, s in tensor_shapes(1) if n.startswith("blk"))
    layers = max(1, round((millions * 1e6 - 2 * VOCABULARY * WIDTH) / per_layer))
    rng = np.random.default_rng(1)
    model = GGUFWriter(path, "llama", use_temp_file=False)
    model.add_block_count(layers)
    model.add_context_length(2048)
    model.add_embedding_length(WIDTH)
    model.add_feed_forward_length(FEED_FORWARD)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS_KV)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_vocab_size(VOCABULARY)
    weights = GGUFWriter(imatrix, "", use_temp_file=False)
    weights.kv_data[0].pop("general.architecture", None)
    weights.add_type("imatrix")
    weights.add_array("imatrix.datasets", ["random"])
    weights.add_uint32("imatrix.chunk_count", 1)
    weights.add_uint32("imatrix.chunk_size", 512)
    total = 0
    for name, shape in tensor_shapes(layers):
        total += int(np.prod(shape))
        x = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        if len(shape) == 1:
            model.add_tensor(name, x + 1)
            continue
        model.add_tensor(name, x.astype(np.float16))
        columns = np.exp(rng.standard_normal(shape[1])).astype(np.float32)
        weights.add_tensor(f"{name}.in_sum2", (columns * 512).reshape(1, -1))
        weights.add_tensor(f"{name}.counts", np.array([[512]], dtype=np.float32))
    for writer in [model, weights]:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    print(f"{total / 1e6:.0f} million parameters", flush=True)


class Importance(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("data", ctypes.POINTER(ctypes.c_float)),
        ("size", ctypes.c_size_t),
    ]


class Parameters(ctypes.Structure):
    """`llama_model_quantize_params`."""

    _fields_ = [
        *[(name, ctypes.c_int) for name in ["nthread", "ftype", "output_type", "embedding_type"]],
        *[
            (name, ctypes.c_bool)
            for name in "requantize output only_copy pure keep_split dry_run".split()
        ],
        ("imatrix", ctypes.POINTER(Importance)),
        *[(name, ctypes.c_void_p) for name in ["overrides", "types", "prune_layers"]],
        ("max_buf_size", ctypes.c_size_t),
    ]


def official(library, source, target, file_type, threads, imatrix):
    """Runs `llama_model_quantize`, and writes the time that the start of Python took."""
    import numpy as np
    from gguf import GGUFReader, LlamaFileType

    log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
    library = ctypes.CDLL(library)
    library.llama_log_set(log, None)
    library.llama_backend_init()
    library.llama_model_quantize_default_params.restype = Parameters
    parameters = library.llama_model_quantize_default_params()
    parameters.nthread = threads
    parameters.ftype = LlamaFileType[f"MOSTLY_{file_type}"]
    if imatrix:
        sums = {t.name: t.data for t in GGUFReader(imatrix).tensors}
        entries = []
        for name, values in sums.items():
            if name.endswith(".in_sum2"):
                name = name.removesuffix(".in_sum2")
                values = (values / sums[f"{name}.counts"]).astype(np.float32).ravel()
                data = values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
                entries.append(Importance(name.encode(), data, values.size))
                sums[f"{name}.in_sum2"] = values
        array = (Importance * (len(entries) + 1))(*entries)
        parameters.imatrix = array
    with open(f"{target}.start", "w") as start:
        start.write(f"{time.process_time()} {time.clock_gettime(time.CLOCK_MONOTONIC)}")
    code = library.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(parameters))
    sys.exit(code)


def measured(command):
    """Returns CPU seconds, seconds and MB of a process."""
    start = time.monotonic()
    null = os.open(os.devnull, os.O_WRONLY)
    actions = [(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
    process = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(process, 0)
    os.close(null)
    assert status == 0, f"{' '.join(command)}: status {status}"
    cpu = usage.ru_utime + usage.ru_stime
    # `ru_maxrss` includes the memory of this process at the fork, so it must stay small.
    return [cpu, time.monotonic() - start, usage.ru_maxrss / 1000]


def measured_official(command, target):
    """Like `measured`, without the time of the start of Python, but with its memory."""
    began = time.monotonic()
    cpu, wall, memory = measured(command)
    with open(f"{target}.start") as start:
        start_cpu, start_time = map(float, start.read().split())
    return [cpu - start_cpu, wall - (start_time - began), memory]


def compare(a, b):
    from gguf import GGUFReader

    theirs = {tensor.name: tensor for tensor in GGUFReader(a).tensors}
    for tensor in GGUFReader(b).tensors:
        other = theirs.pop(tensor.name)
        assert tensor.tensor_type == other.tensor_type, tensor.name
        assert tensor.data.tobytes() == other.data.tobytes(), f"{tensor.name} differs"
    assert not theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("library")
    parser.add_argument("types", nargs="*")
    parser.add_argument("--imatrix", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parameters", type=float, default=154)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--official", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.official:
        source, target, imatrix = args.official
        return official(args.library, source, target, args.types[0], args.threads, imatrix)
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{name}.gguf" for name in ["f16", "imatrix", "theirs", "ours"]]
        source, imatrix, theirs, mine = paths
        apart = multiprocessing.get_context("spawn")

        def run_apart(function, *arguments):
            process = apart.Process(target=function, args=arguments)
            process.start()
            process.join()
            assert process.exitcode == 0

        run_apart(make_model, source, imatrix, args.parameters)
        print(f"{args.threads} threads")
        print(f"{'':<9}{'llama.cpp':>24}{'ours':>24}{'ratio':>8}{'ratio':>8}")
        print(f"{'type':<9}" + f"{'CPU s':>8}{'s':>8}{'MB':>8}" * 2 + f"{'CPU':>8}{'wall':>8}")
        for name in args.types or "Q8_0 Q4_0 Q2_K Q3_K_M Q4_K_M Q5_K_M Q6_K".split():
            flags = ["--imatrix", imatrix] if args.imatrix else []
            threads = str(args.threads)
            their_command = [sys.executable, __file__, args.binary, args.library, name]
            their_command += ["--threads", threads]
            their_command += ["--official", source, theirs, imatrix if flags else ""]
            our_command = [args.binary, "quantize", "--force", *flags, source, mine, name, threads]
            pairs = [
                (measured_official(their_command, theirs), measured(our_command))
                for _ in range(args.runs)
            ]
            run_apart(compare, theirs, mine)
            a, b = ([min(values) for values in zip(*runs)] for runs in zip(*pairs))
            numbers = "".join(f"{x[0]:>8.2f}{x[1]:>8.2f}{x[2]:>8.0f}" for x in [a, b])
            print(f"{name:<9}{numbers}{a[0] / b[0]:>8.2f}{a[1] / b[1]:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
