"""Compares types of a Whisper model with the same types quantized with GPTQ, by the logits of its decoder.

Usage: python interop/quantization/whisper_calibration.py GGUF_BINARY WHISPER DATA FOLDER [TYPE ...]

WHISPER is a checkpoint of Whisper base, DATA the reference data with two texts; models and audio go to FOLDER. espeak-ng synthesizes
the beginning of calibration.txt with four voices, and twelve passages of heldout.txt with two others. `gguf imatrix --hessian` reads
the first recording. For each of the twelve the decoder of each model reads the spoken words, and its logits are compared with those
of the original model. Prints a table of docs/calibration.md: mean KL divergence in nats, and top-1 agreement. Needs numpy, torch and
transformers (features, tokens); espeak-ng, sox.
"""

import argparse
import re
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
from transformers import WhisperFeatureExtractor, WhisperTokenizerFast

TYPES = "Q8_0 Q6_K Q5_0 Q5_K_M Q4_0 Q4_K_M IQ4_XS Q3_K_M Q2_K".split()
CALIBRATION_VOICES = ["en-us", "en-gb+f3", "en-gb-scotland", "en-us+m3"]
EVALUATION_VOICES = ["en-gb", "en-us+f2"]
PASSAGES = 12
# Words of a passage, which take less than 30 seconds.
WORDS = 50


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


def passages(path):
    words = re.sub(r"\s+", " ", path.read_text()).split(" ")
    return [" ".join(words[i:i + WORDS]) for i in range(0, len(words), WORDS)]


def speak(text, voice, path):
    spoken = path.with_suffix(".spoken.wav")
    run("espeak-ng", "-v", voice, "-w", spoken, text)
    run("sox", spoken, "-r", "16000", "-c", "1", "-b", "16", path)
    return path


def samples(path):
    with wave.open(str(path)) as sound:
        return np.frombuffer(sound.readframes(sound.getnframes()), dtype=np.int16).astype(np.float32) / 32768


def log_probabilities(gguf, model, passage):
    features, ids = passage
    out = features.with_suffix(".logits.npy")
    run(gguf, "logits", model, "--features", features, "--ids", ids, "-o", out, "--force")
    logits = np.load(out).astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def compare(original, other):
    """Returns the mean KL divergence and the top-1 agreement."""
    divergence = np.mean([np.mean((np.exp(p) * (p - q)).sum(axis=1)) for p, q in zip(original, other)])
    same = np.mean(np.concatenate([p.argmax(axis=1) == q.argmax(axis=1) for p, q in zip(original, other)]))
    return divergence, same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    for name in ("checkpoint", "data", "folder"):
        parser.add_argument(name, type=Path)
    parser.add_argument("types", nargs="*", metavar="TYPE", default=TYPES)
    options = parser.parse_args()
    gguf, checkpoint, data, folder, types = options.gguf, options.checkpoint, options.data, options.folder, options.types
    folder.mkdir(parents=True, exist_ok=True)
    texts = data / "tiny-kjv-llama"
    extractor = WhisperFeatureExtractor.from_pretrained(checkpoint)
    tokenizer = WhisperTokenizerFast.from_pretrained(checkpoint, language="en", task="transcribe")

    texts_of_calibration = passages(texts / "calibration.txt")[:PASSAGES]
    parts = [speak(text, CALIBRATION_VOICES[i % len(CALIBRATION_VOICES)], folder / f"part-{i}.wav") for i, text in enumerate(texts_of_calibration)]
    speech = folder / "speech.wav"
    run("sox", *parts, speech)

    evaluated = []
    for i, text in enumerate(passages(texts / "heldout.txt")[:PASSAGES]):
        sound = samples(speak(text, EVALUATION_VOICES[i % len(EVALUATION_VOICES)], folder / f"evaluated-{i}.wav"))
        inputs = extractor(sound, sampling_rate=16000, return_tensors="np").input_features[0]
        features = folder / f"evaluated-{i}.npy"
        np.save(features, inputs.astype(np.float32))
        ids = tokenizer(" " + text).input_ids[:-1]
        evaluated.append((features, " ".join(map(str, ids))))

    original, official, ours = (folder / f"{name}.gguf" for name in ("original", "official", "ours"))
    hessian = folder / "speech.hessian"
    run(gguf, "convert", "--force", checkpoint, "-o", original, "--outtype", "f16")
    run(gguf, "imatrix", original, "-f", speech, "--hessian", "-o", hessian, "--force")
    reference = [log_probabilities(gguf, original, passage) for passage in evaluated]
    print(f"{sum(len(p) for p in reference)} predictions, calibrated with {len(samples(speech)) / 16000:.0f} seconds of audio\n")
    print("| type | bytes | not calibrated | top-1 agreement | calibrated | top-1 agreement | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for name in types:
        run(gguf, "quantize", "--force", original, official, name)
        run(gguf, "quantize", "--force", "--calibration-data", hessian, original, ours, name)
        (a, same_a), (b, same_b) = (
            compare(reference, [log_probabilities(gguf, model, passage) for passage in evaluated]) for model in (official, ours))
        print(f"| {name} | {ours.stat().st_size:,} | {a:.6f} | {same_a:.1%} | {b:.6f} | {same_b:.1%} "
              f"| {b / a:.2f} |", flush=True)


if __name__ == "__main__":
    main()
