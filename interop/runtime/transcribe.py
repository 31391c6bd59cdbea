"""Compares transcripts and timestamps of `gguf transcribe` with transformers, for speech synthesized by espeak-ng.

Usage: python interop/runtime/transcribe.py GGUF_BINARY WHISPER FOLDER [SPECTROGRAM]

WHISPER is a multilingual Whisper checkpoint, such as Whisper base; the model and audio go to FOLDER; SPECTROGRAM is the example of
crates/speech. Needs torch, transformers, numpy; espeak-ng, sox; flac, lame, oggenc for compressed audio.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import wave

import numpy as np
import torch
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizerFast

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("gguf", "whisper", "folder"):
    parser.add_argument(name)
parser.add_argument("spectrogram", nargs="?")
options = parser.parse_args()
gguf, checkpoint, folder, example = options.gguf, options.whisper, options.folder, options.spectrogram
os.makedirs(folder, exist_ok=True)
failed = 0

ENGLISH = "The quick brown fox jumps over the lazy dog. In the beginning God created the heaven and the earth. " \
          "The capital of France is Paris, and the capital of Germany is Berlin."
GERMAN = "Guten Morgen. Heute ist ein schöner Tag, und die Sonne scheint. Ich möchte gerne zwei Tassen Kaffee " \
         "und ein Stück Kuchen."
LONG = "We are going to read a story about a little house on a hill. The house was old, and nobody had lived in it " \
       "for many years. One day a young woman came up the road with a heavy bag on her back. She stopped in " \
       "front of the door and looked at the windows. The roof was broken, and the garden was full of grass. " \
       "She smiled, put down her bag, and opened the door. Inside there was a table, a chair, and a cold stove. " \
       "On the next morning she went down to the village and bought bread, milk, and a box of nails. The people " \
       "asked her where she came from, and she told them about the sea and the ships and the city of her childhood. " \
       "In the evening she repaired the roof, and in the following week she painted all the walls white."


def check(what, right, detail=""):
    global failed
    failed += not right
    print(("ok      " if right else "DIFFERS ") + what + (f"\n        {detail}" if detail and not right else ""), flush=True)


def run(*words, text=None):
    return subprocess.run(words, check=True, input=text, capture_output=True, text=True).stdout


def speech(name, voice, text):
    """Synthesizes speech; returns the file of espeak-ng, and the same at 16 kHz."""
    made, same = f"{folder}/{name}.22050.wav", f"{folder}/{name}.wav"
    run("espeak-ng", "-v", voice, "-s", "145", "-w", made, text)
    run("sox", "-D", made, "-r", "16000", same)
    return made, same


def samples(path):
    with wave.open(path) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768


model = WhisperForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.float32).eval()
extractor = WhisperFeatureExtractor.from_pretrained(checkpoint)
tokenizer = WhisperTokenizerFast.from_pretrained(checkpoint)


def theirs(path, **how):
    sound = samples(path)
    long = len(sound) > 480000
    features = extractor(sound, sampling_rate=16000, return_tensors="pt", truncation=not long,
                         padding="longest" if long else "max_length")
    with torch.no_grad():
        made = model.generate(features.input_features, num_beams=1, do_sample=False, return_segments=True,
                              return_dict_in_generate=False, **how)
    return made


def text_of(made):
    return tokenizer.decode(made["sequences"][0], skip_special_tokens=True).strip()


def segments_of(made):
    out = []
    for segment in made["segments"][0]:
        text = tokenizer.decode(segment["tokens"], skip_special_tokens=True).strip()
        out.append((round(float(segment["start"]), 2), round(float(segment["end"]), 2), text))
    return out


# transformers compares beams in another way than OpenAI's implementation: beam_search.py has that.
GREEDY = ["--beam-size", "1"]


def ours(*words):
    made = [json.loads(line) for line in run(gguf, "transcribe", whisper, *words, *GREEDY, "--format", "json").splitlines()]
    return made[0] if len(made) == 1 else made


def plain(*words):
    return run(gguf, "transcribe", whisper, *words, *GREEDY).strip()


def segments(made):
    return [(round(s["start"], 2), round(s["end"], 2), s["text"].strip()) for s in made["segments"]]


whisper = f"{folder}/whisper.gguf"
if not os.path.exists(whisper):
    run(gguf, "convert", checkpoint, "-o", whisper)

for name, voice, said in [("english", "en", ENGLISH), ("german", "de", GERMAN)]:
    made, same = speech(name, voice, said)
    code = voice
    text = text_of(theirs(same, language=code, task="transcribe"))
    print(f"{name}: {text}")
    for precision in ("exact", "fast"):
        how = ["--precision", precision]
        found = plain(same, "--language", code, *how)
        check(f"{name}, {precision}: text", found == text, found)
        found = plain(same, *how)
        check(f"{name}, {precision}: text, detected language", found == text, found)
        expected = segments_of(theirs(same, language=code, task="transcribe", return_timestamps=True))
        found = ours(same, *how)
        check(f"{name}, {precision}: segments", segments(found) == expected, f"{segments(found)}; expected {expected}")
        check(f"{name}, {precision}: language {found['language']} ({found['language_probability']})",
              found["language"] == code)
    english = text_of(theirs(same, language=code, task="translate"))
    found = plain(same, "--language", code, "--translate")
    check(f"{name}: translation: {english}", found == english, found)
    if example:
        # Resampling differs between programs, so transformers reads our spectrogram.
        run(example, made, "80", f"{folder}/spectrogram")
        heard = np.fromfile(f"{folder}/spectrogram", np.float32).reshape(-1, 80).T[None, :, :3000]
        with torch.no_grad():
            ids = model.generate(torch.from_numpy(heard.copy()), language=code, task="transcribe", num_beams=1,
                                 do_sample=False)
        text = tokenizer.decode(ids[0], skip_special_tokens=True).strip()
        found = plain(made)
        check(f"{name}: at 22.05 kHz", found == text, f"{found}\n        expected {text}")
    # Compressed audio is decoded for transformers by the reference decoder.
    forms = [("flac", ["flac", "-f", "-s", same, "-o"], ["flac", "-f", "-s", "-d", "-o", None]),
             ("mp3", ["lame", "--quiet", "-b", "64", same], ["lame", "--quiet", "--decode", None]),
             ("ogg", ["oggenc", "-Q", same, "-o"], ["oggdec", "-Q", "-o", None])]
    for form, encode, decode in forms:
        if not shutil.which(encode[0]):
            print(f"SKIPPED {form}: {encode[0]} is missing")
            continue
        path, back = f"{folder}/{name}.{form}", f"{folder}/{name}.{form}.wav"
        run(*encode, path)
        run(*decode[:-1], *([path, back] if form == "mp3" else [back, path]))
        found, text = plain(back), text_of(theirs(back, language=code, task="transcribe"))
        check(f"{name}: {form}, reference decoder", found == text, f"{found}\n        expected {text}")
        # The reference decoder rounds to 16 bits, which can change an unclear word.
        if example:
            heard = []
            for one in (path, back):
                run(example, one, "80", f"{folder}/spectrogram")
                heard.append(np.fromfile(f"{folder}/spectrogram", np.float32))
            far = np.abs(heard[0] - heard[1]).mean()
            check(f"{name}: {form}, mean difference of spectrograms {far:.1e}", far <= 1e-3)
        print(f"        {form}: {plain(path)}")
    if example:
        for bands in (80, 128):
            run(example, same, str(bands), f"{folder}/spectrogram")
            found = np.fromfile(f"{folder}/spectrogram", np.float32).reshape(-1, bands)
            sound = WhisperFeatureExtractor(feature_size=bands)(samples(same), sampling_rate=16000)["input_features"][0]
            far = np.abs(found - np.asarray(sound).T).max()
            check(f"{name}: spectrogram of {bands} mel bins, greatest difference {far:.2e}", far <= 1e-4)

made, same = speech("long", "en", LONG)
expected = segments_of(theirs(same, language="en", task="transcribe", return_timestamps=True, condition_on_prev_tokens=True,
                              temperature=(0.0,), compression_ratio_threshold=None, logprob_threshold=None,
                              no_speech_threshold=None))
found = ours(same, "--language", "en", "--precision", "exact")
print(f"long ({found['duration']} s): {found['text']}")
print(run(gguf, "transcribe", whisper, same, *GREEDY, "--format", "srt"))
check("long: text", found["text"] == " ".join(text for _, _, text in expected),
      f"{' '.join(text for _, _, text in expected)}")
check("long: segments", segments(found) == expected, f"{segments(found)}\n    expected {expected}")

silence = f"{folder}/silence.wav"
run("sox", "-n", "-r", "16000", "-b", "16", silence, "trim", "0", "5")
# Whisper may transcribe silence as words ("you"), in transformers too.
text = text_of(theirs(silence, language="en", task="transcribe", return_timestamps=True, temperature=(0.0,),
                      no_speech_threshold=0.6, logprob_threshold=-1.0))
found = ours(silence, "--language", "en")["text"]
check(f"silence: {text!r}", found == text, found)
sys.exit(failed > 0)
