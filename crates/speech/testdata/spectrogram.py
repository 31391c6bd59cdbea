"""Writes spectrogram.csv: numbers of WhisperFeatureExtractor of transformers 5.23.0 (with torch) for a tone
that rises (tests/sound.rs): of a second, and of more than a window."""
import numpy as np
from transformers import WhisperFeatureExtractor


def rising(seconds, rate=16000):
    time = np.arange(int(rate * seconds)) / rate
    turns = 300 * time + 1000 * time * time
    return np.round(8000 * np.sin(2 * np.pi * turns) * np.exp(-time)).astype(np.int16)


def show(name, seconds, chosen):
    for bands in (80, 128):
        extractor = WhisperFeatureExtractor(feature_size=bands)
        sound = rising(seconds).astype(np.float32) / 32768
        whole = extractor(sound, sampling_rate=16000, truncation=False, padding="max_length" if seconds < 30 else "longest")
        numbers = np.asarray(whole["input_features"][0])
        for frame in chosen:
            for band in range(0, bands, 3):
                yield f"{name},{bands},{frame},{band},{numbers[band, frame]!s}\n"


with open("spectrogram.csv", "w") as out:
    out.write("sound,bands,frame,band,number\n")
    out.writelines(show("short", 1.0, [0, 1, 2, 49, 50, 98, 99, 100, 101, 2999]))
    out.writelines(show("long", 31.005, [0, 1, 50, 400, 2998, 2999, 3000, 3098, 3099]))
