"""Measures `gguf transcribe` beside faster-whisper and whisper.cpp: a Whisper checkpoint in Q8_0 and in INT8, the programs in turns.

Usage: python interop/speed/transcription.py GGUF CHECKPOINT_DIR RECORDING [--text FILE] [--language CODE] [--threads N] [--rounds N]
                                             [--whisper-cpp BIN_DIR]

faster-whisper transcribes window by window, as `gguf` does, and in batches of windows that are cut at pauses. BIN_DIR has `whisper-cli` and
`whisper-quantize` of whisper.cpp. Times are those of whole processes, medians of the rounds. With the text that was read, prints the word
error rate too. Needs `faster-whisper` and `safetensors` from PyPI; the weights are converted for the others here, since their converters
need torch.
"""

import argparse
import json
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TRANSCRIBE = """
import sys
from faster_whisper import BatchedInferencePipeline, WhisperModel
model, recording, language, threads, beams, batch = sys.argv[1:]
model = WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=int(threads))
options = {"language": language, "beam_size": int(beams)}
if int(batch) > 1:
    segments, _ = BatchedInferencePipeline(model).transcribe(recording, batch_size=int(batch), **options)
else:
    segments, _ = model.transcribe(recording, **options)
print(" ".join(segment.text.strip() for segment in segments))
"""


class Weights:
    """Copies the tensors of a checkpoint into a specification of CTranslate2."""

    def __init__(self, folder):
        from safetensors.numpy import load_file

        tensors = load_file(folder / "model.safetensors")
        self.tensors = {name.removeprefix("model."): data.astype(np.float32) for name, data in tensors.items()}

    def bias(self, name):
        weight = self.tensors[f"{name}.weight"]
        return self.tensors.get(f"{name}.bias", np.zeros(weight.shape[0], np.float32))

    def linear(self, spec, *names):
        spec.weight = np.concatenate([self.tensors[f"{name}.weight"] for name in names])
        spec.bias = np.concatenate([self.bias(name) for name in names])

    def norm(self, spec, name):
        spec.gamma, spec.beta = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]

    def attention(self, spec, name, norm, groups):
        self.norm(spec.layer_norm, norm)
        for linear, parts in zip(spec.linear, [*groups, ["out"]], strict=True):
            self.linear(linear, *(f"{name}.{part}_proj" for part in parts))

    def layer(self, spec, name):
        self.attention(spec.self_attention, f"{name}.self_attn", f"{name}.self_attn_layer_norm", ["qkv"])
        if hasattr(spec, "attention"):
            self.attention(spec.attention, f"{name}.encoder_attn", f"{name}.encoder_attn_layer_norm", ["q", "kv"])
        self.norm(spec.ffn.layer_norm, f"{name}.final_layer_norm")
        self.linear(spec.ffn.linear_0, f"{name}.fc1")
        self.linear(spec.ffn.linear_1, f"{name}.fc2")

    def stack(self, spec, name):
        spec.position_encodings.encodings = self.tensors[f"{name}.embed_positions.weight"]
        self.norm(spec.layer_norm, f"{name}.layer_norm")
        for number, layer in enumerate(spec.layer):
            self.layer(layer, f"{name}.layers.{number}")


def convert(folder, out):
    from ctranslate2.specs import whisper_spec

    def read(name):
        return json.loads((folder / name).read_text())

    config, generation, tokenizer = read("config.json"), read("generation_config.json"), read("tokenizer.json")
    spec = whisper_spec.WhisperSpec(
        config["encoder_layers"], config["encoder_attention_heads"], config["decoder_layers"], config["decoder_attention_heads"]
    )
    weights = Weights(folder)
    for number, conv in enumerate([spec.encoder.conv1, spec.encoder.conv2], 1):
        conv.weight, conv.bias = (weights.tensors[f"encoder.conv{number}.{part}"] for part in ["weight", "bias"])
    weights.stack(spec.encoder, "encoder")
    weights.stack(spec.decoder, "decoder")
    spec.decoder.embeddings.weight = spec.decoder.projection.weight = weights.tensors["decoder.embed_tokens.weight"]
    ids = tokenizer["model"]["vocab"] | {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    tokens = {number: token for token, number in ids.items()}
    first = len(ids)
    spec.register_vocabulary([tokens.get(n, f"<|{(n - first) * 0.02:.2f}|>") for n in range(config["vocab_size"])])
    spec.config.suppress_ids = generation["suppress_tokens"]
    spec.config.suppress_ids_begin = generation["begin_suppress_tokens"]
    spec.config.lang_ids = sorted(generation.get("lang_to_id", {}).values())
    layers, heads = config["decoder_layers"], config["decoder_attention_heads"]
    spec.config.alignment_heads = [(layer, head) for layer in range(layers // 2, layers) for head in range(heads)]
    spec.validate()
    spec.optimize(quantization="int8")
    spec.save(str(out))
    for name in ["tokenizer.json", "preprocessor_config.json"]:
        (out / name).write_bytes((folder / name).read_bytes())


# Names of OpenAI and whisper.cpp for parts of those of a checkpoint, in order of replacement.
OPENAI_NAMES = {
    "encoder.layer_norm": "encoder.ln_post",
    "decoder.layer_norm": "decoder.ln",
    "embed_positions.weight": "positional_embedding",
    "embed_tokens": "token_embedding",
    ".layers.": ".blocks.",
    "self_attn_layer_norm": "attn_ln",
    "encoder_attn_layer_norm": "cross_attn_ln",
    "final_layer_norm": "mlp_ln",
    "self_attn": "attn",
    "encoder_attn": "cross_attn",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "out",
    "fc1": "mlp.0",
    "fc2": "mlp.2",
}


def openai_name(name):
    """Returns the name of OpenAI for a tensor of a checkpoint."""
    for before, after in OPENAI_NAMES.items():
        name = name.replace(before, after)
    return name


def mel_filters(bands):
    """Returns the triangular filters of Slaney for 201 frequencies up to 8 kHz: linear below 1 kHz, logarithmic above."""
    top = 15 + 27 * np.log(8) / np.log(6.4)
    mels = np.linspace(0, top, bands + 2)
    centers = np.where(mels < 15, mels * 200 / 3, 1000 * 6.4 ** ((mels - 15) / 27))
    slopes = (np.linspace(0, 8000, 201) - centers[:, None]) / np.pad(np.diff(centers), (0, 1), constant_values=1)[:, None]
    rising, falling = slopes[:-2], 1 - slopes[1:-1]
    return (np.maximum(0, np.minimum(rising, falling)) * (2 / (centers[2:] - centers[:-2]))[:, None]).astype(np.float32)


def bytes_of_characters():
    """Returns the byte that each character of a byte-level vocabulary stands for."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def write_whisper_cpp(folder, path):
    """Writes a checkpoint in the format of whisper.cpp: matrices in FP16, the rest in FP32."""
    config, tokenizer = (json.loads((folder / name).read_text()) for name in ["config.json", "tokenizer.json"])
    names = ["vocab_size", "max_source_positions", "d_model", "encoder_attention_heads", "encoder_layers", "max_target_positions"]
    names += ["d_model", "decoder_attention_heads", "decoder_layers", "num_mel_bins"]
    filters, characters = mel_filters(config["num_mel_bins"]), bytes_of_characters()
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda entry: entry[1])
    with path.open("wb") as out:
        out.write(b"lmgg" + struct.pack("<13i", *(config[name] for name in names), 1, *filters.shape) + filters.tobytes())
        out.write(struct.pack("<i", len(vocabulary)))
        for token, _ in vocabulary:
            token = bytes(characters[character] for character in token)
            out.write(struct.pack("<i", len(token)) + token)
        for name, data in Weights(folder).tensors.items():
            name = openai_name(name)
            if re.fullmatch(r"encoder\.conv\d\.bias", name):
                data = data.reshape(-1, 1)
            is_matrix = name.endswith("weight") and data.ndim > 1
            encoded = name.encode()
            out.write(struct.pack(f"<{3 + data.ndim}i", data.ndim, len(encoded), is_matrix, *reversed(data.shape)) + encoded)
            out.write(data.astype(np.float16 if is_matrix else np.float32).tobytes())


def quantized_models(options, checkpoint, work):
    """Writes a checkpoint in 8 bits for gguf-kit, faster-whisper and, with --whisper-cpp, for that. Returns the paths."""
    model, peer, halves, quantized = (work / name for name in ["q8_0.gguf", "int8", "f16.bin", "q8_0.bin"])
    subprocess.run([options.gguf, "convert", "-q", checkpoint, "--outtype", "q8_0", "-o", model], check=True)
    peer.mkdir()
    convert(checkpoint, peer)
    if options.whisper_cpp:
        write_whisper_cpp(checkpoint, halves)
        subprocess.run([options.whisper_cpp / "whisper-quantize", halves, quantized, "q8_0"], check=True, capture_output=True)
        halves.unlink()
    return model, peer, quantized


def error_rate(text, reference):
    """Returns the Levenshtein distance of words, divided by the number of words read."""
    text = re.sub(r"\[[\d:. ]+-->[\d:. ]+\]", " ", text)  # Of whisper.cpp, whose windows follow its timestamps.
    found, wanted = (re.findall(r"[a-z0-9']+", words.lower()) for words in [text, reference])
    row = list(range(len(found) + 1))
    for number, word in enumerate(wanted, 1):
        before, row = row, [number]
        for at, other in enumerate(found):
            row.append(min(before[at] + (word != other), before[at + 1] + 1, row[at] + 1))
    return row[-1] / max(len(wanted), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", metavar="GGUF")
    parser.add_argument("checkpoint", metavar="CHECKPOINT_DIR", type=Path)
    parser.add_argument("recording", metavar="RECORDING")
    parser.add_argument("--text", type=Path, help="the text that was read")
    parser.add_argument("--language", default="en")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--whisper-cpp", metavar="BIN_DIR", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        model, peer, quantized = quantized_models(options, options.checkpoint, Path(work))
        ours = [options.gguf, "transcribe", "-q", model, options.recording, "--language", options.language, "-t", options.threads]
        theirs = [sys.executable, "-c", TRANSCRIBE, peer, options.recording, options.language, options.threads]
        programs = {}
        for beams in ["1", "5"]:
            programs[f"gguf, beam {beams}"] = [*ours, "--beam-size", beams]
            programs[f"gguf, beam {beams}, batches of 8"] = [*ours, "--beam-size", beams, "--batch-size", "8"]
            programs[f"faster-whisper, beam {beams}"] = [*theirs, beams, "1"]
            programs[f"faster-whisper, beam {beams}, batches of 8"] = [*theirs, beams, "8"]
        if options.whisper_cpp:
            common = [options.whisper_cpp / "whisper-cli", "-m", quantized, "-f", options.recording, "-l", options.language]
            common += ["-t", options.threads, "--no-prints"]
            programs["whisper.cpp, beam 1"] = [*common, "-bs", "1", "-bo", "1"]
            programs["whisper.cpp, beam 5"] = [*common, "-bs", "5"]
        times, texts = {name: [] for name in programs}, {}
        for _ in range(options.rounds):
            for name, command in programs.items():
                start = time.perf_counter()
                texts[name] = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout
                times[name].append(time.perf_counter() - start)
    median = {name: statistics.median(seconds) for name, seconds in times.items()}
    for name, seconds in median.items():
        line = f"{name:40} {seconds:7.2f} s  {seconds / median['gguf, beam 5, batches of 8']:5.2f} of gguf in batches"
        if options.text:
            line += f"  word error rate {error_rate(texts[name], options.text.read_text()):.3f}"
        print(line)


if __name__ == "__main__":
    main()
