"""Measures the real-time factor of `gguf transcribe` for the sizes of Whisper, beside faster-whisper and whisper.cpp.

Usage: python interop/speed/whisper_sizes.py GGUF CHECKPOINT_DIR RECORDING [SIZE ...] [--threads N] [--rounds N] [--whisper-cpp BIN_DIR]

CHECKPOINT_DIR is a Whisper checkpoint of any size, for its tokenizer. The weights of each SIZE (`tiny`, `base`, `small`, `medium`, `large`) are random,
but the position embeddings of its decoder spell a hundred words: every 30 seconds the model writes these, as many as a fast speaker says.
So the work is that of speech. All programs have the weights in 8 bits, one beam and no timestamps; gguf-kit and faster-whisper decode
batches of 8 parts. Prints medians of seconds per second of the recording. Needs `faster-whisper` and `safetensors` from PyPI.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.speed.transcription import TRANSCRIBE, quantized_models

# Width, layers and heads of encoder and decoder.
SIZES = {"tiny": (384, 4, 6), "base": (512, 6, 8), "small": (768, 12, 12), "medium": (1024, 24, 16), "large": (1280, 32, 20)}

# Start of transcript, language, task, no timestamps.
PROMPT = 4

BATCH = ["--batch-size", "8", "--beam-size", "1"]


def words(folder, suppressed):
    """Returns the ids of a hundred different words."""
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    ids = sorted(token for text, token in vocabulary.items() if text.startswith("Ġ") and text.isalpha() and text[1:].isascii())
    return [token for token in ids if token not in suppressed][200:300]


def shapes(width, layers, config):
    """Returns the shape of each tensor."""
    bands, frames, positions = config["num_mel_bins"], config["max_source_positions"], config["max_target_positions"]
    yield "encoder.conv1.weight", (width, bands, 3)
    yield "encoder.conv2.weight", (width, width, 3)
    yield "encoder.conv1.bias", (width,)
    yield "encoder.conv2.bias", (width,)
    yield "encoder.embed_positions.weight", (frames, width)
    yield "decoder.embed_positions.weight", (positions, width)
    yield "decoder.embed_tokens.weight", (config["vocab_size"], width)
    for side, attentions in ("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"]):
        norms = [f"{side}.layer_norm"]
        for number in range(layers):
            layer = f"{side}.layers.{number}"
            for attention in attentions:
                norms.append(f"{layer}.{attention}_layer_norm")
                for part in "q", "k", "v", "out":
                    yield f"{layer}.{attention}.{part}_proj.weight", (width, width)
                    if part != "k":
                        yield f"{layer}.{attention}.{part}_proj.bias", (width,)
            norms.append(f"{layer}.final_layer_norm")
            for name, rows, columns in ("fc1", 4 * width, width), ("fc2", width, 4 * width):
                yield f"{layer}.{name}.weight", (rows, columns)
                yield f"{layer}.{name}.bias", (rows,)
        for norm in norms:
            yield f"{norm}.weight", (width,)
            yield f"{norm}.bias", (width,)


def make_checkpoint(example, folder, size):
    """Writes a checkpoint of a size with random weights."""
    from safetensors.numpy import save_file

    width, layers, heads = SIZES[size]
    config, generation = (json.loads((example / name).read_text()) for name in ["config.json", "generation_config.json"])
    config |= {"d_model": width, "num_hidden_layers": layers}
    for side in "encoder", "decoder":
        config |= {f"{side}_layers": layers, f"{side}_attention_heads": heads, f"{side}_ffn_dim": 4 * width}
    generation.pop("alignment_heads", None)
    for name in ["tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"]:
        shutil.copy(example / name, folder / name)
    for name, content in ("config.json", config), ("generation_config.json", generation):
        (folder / name).write_text(json.dumps(content))
    random, tensors = np.random.default_rng(1), {}
    for name, shape in shapes(width, layers, config):
        if len(shape) == 1:
            tensors[name] = np.full(shape, name.endswith("norm.weight"), np.float16)
        else:
            # What is added to the residual stream stays below its beginning.
            scale = 0.05 if "embed" in name else 0.002 if "out_proj" in name or "fc2" in name else 0.02
            tensors[name] = (random.standard_normal(shape, np.float32) * scale).astype(np.float16)
    tokens = words(example, set(generation["suppress_tokens"])) + [config["eos_token_id"]]
    # The state of the last token of the prompt predicts the first word.
    at = slice(PROMPT - 1, PROMPT - 1 + len(tokens))
    tensors["decoder.embed_positions.weight"][at] = 20 * tensors["decoder.embed_tokens.weight"][tokens]
    save_file({f"model.{name}": data for name, data in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    return sum(data.size for data in tensors.values())


def commands(options, folder, work):
    """Converts the checkpoint for all programs, and returns their command lines."""
    model, peer, quantized = quantized_models(options, folder, work)
    found = {
        "gguf": [options.gguf, "transcribe", "-q", model, options.recording, "--language", "en", "-t", options.threads, *BATCH],
        "faster-whisper": [sys.executable, "-c", TRANSCRIBE, peer, options.recording, "en", options.threads, "1", "8"],
    }
    if options.whisper_cpp:
        found["whisper.cpp"] = [options.whisper_cpp / "whisper-cli", "-m", quantized, "-f", options.recording, "-l", "en", "-t", options.threads]
        found["whisper.cpp"] += ["--no-prints", "--no-timestamps", "-mc", "0", "-bs", "1", "-bo", "1"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", metavar="GGUF")
    parser.add_argument("checkpoint", metavar="CHECKPOINT_DIR", type=Path)
    parser.add_argument("recording", metavar="RECORDING", help="WAV")
    parser.add_argument("sizes", nargs="*", default=list(SIZES), metavar="SIZE", choices=list(SIZES))
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--whisper-cpp", metavar="BIN_DIR", type=Path)
    options = parser.parse_intermixed_args()
    with wave.open(options.recording) as recording:
        duration = recording.getnframes() / recording.getframerate()
    print(f"{duration:.0f} s\n\n| size | weights | program | words | real-time factor | of gguf |\n|---|---:|---|---:|---:|---:|", flush=True)
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as work:
            folder = Path(work, "checkpoint")
            folder.mkdir()
            weights = make_checkpoint(options.checkpoint, folder, size)
            programs = commands(options, folder, Path(work))
            seconds, said = {name: [] for name in programs}, {}
            for _ in range(options.rounds):
                for name, command in programs.items():
                    start = time.perf_counter()
                    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", check=True)
                    seconds[name].append(time.perf_counter() - start)
                    said[name] = len(done.stdout.split())
            factors = {name: statistics.median(times) / duration for name, times in seconds.items()}
            for name, factor in factors.items():
                ratio = factor / factors["gguf"]
                print(f"| {size} | {weights / 1e6:.0f} million | {name} | {said[name]} | {factor:.4f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
