"""Compares transcripts of `gguf transcribe` with those of OpenAI's implementation, with beam search and without.

Usage: python interop/runtime/beam_search.py GGUF CHECKPOINT_DIR RECORDING [--beam-size N ...] [--language CODE]

CHECKPOINT_DIR has a Whisper checkpoint of Hugging Face, RECORDING is sampled at 16 kHz, and its first 30 seconds are decoded at
temperature 0 without fallback, with timestamps and without. With timestamps, `gguf` begins another window after the last one, so its
text goes on. Both programs compute in F32, so texts are equal unless two texts are as
probable as each other. Needs openai-whisper, torch and safetensors from PyPI; espeak-ng makes recordings.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np
import torch
import whisper
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.speed.transcription import openai_name


def load(folder):
    """Returns OpenAI's model with the weights of a checkpoint."""
    config = json.loads((folder / "config.json").read_text())
    sizes = ["num_mel_bins", "max_source_positions", "d_model", "encoder_attention_heads", "encoder_layers", "vocab_size"]
    sizes += ["max_target_positions", "d_model", "decoder_attention_heads", "decoder_layers"]
    model = whisper.model.Whisper(whisper.model.ModelDimensions(*(config[name] for name in sizes)))
    tensors = load_file(folder / "model.safetensors")
    weights = {openai_name(name.removeprefix("model.")): tensor.float() for name, tensor in tensors.items()}
    weights.pop("proj_out.weight", None)
    missing = set(model.state_dict()) - set(weights)
    assert not missing, missing
    model.load_state_dict(weights)
    return model.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", metavar="GGUF")
    parser.add_argument("checkpoint", metavar="CHECKPOINT_DIR", type=Path)
    parser.add_argument("recording", metavar="RECORDING", type=Path, nargs="+")
    parser.add_argument("--beam-size", type=int, nargs="+", default=[1, 2, 5])
    parser.add_argument("--language", default="en")
    options = parser.parse_args()
    model, differ = load(options.checkpoint), 0
    with tempfile.TemporaryDirectory() as work:
        converted, part = Path(work) / "whisper.gguf", Path(work) / "part.wav"
        subprocess.run([options.gguf, "convert", "-q", options.checkpoint, "-o", converted, "--outtype", "f32"], check=True)
        for recording in options.recording:
            with wave.open(str(recording)) as file:
                assert file.getframerate() == 16000 and file.getnchannels() == 1, "16 kHz and one channel are needed"
                samples = file.readframes(30 * 16000)
            with wave.open(str(part), "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", "not compressed"))
                file.writeframes(samples)
            audio = whisper.pad_or_trim(np.frombuffer(samples, np.int16).astype(np.float32) / 32768)
            features = whisper.log_mel_spectrogram(audio, n_mels=model.dims.n_mels)
            for beams in options.beam_size:
                for timestamps in [False, True]:
                    how = {"language": options.language, "without_timestamps": not timestamps, "fp16": False}
                    how["beam_size"] = beams if beams > 1 else None
                    theirs = whisper.decode(model, features, whisper.DecodingOptions(**how))
                    command = [options.gguf, "transcribe", "-q", converted, part, "--language", options.language, "--json"]
                    command += ["--no-fallback", "--precision", "exact", "--beam-size", str(beams)]
                    if not timestamps:
                        command.remove("--json")
                    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                    text = json.loads(found)["text"] if timestamps else found.strip()
                    same = text.startswith(theirs.text.strip()) if timestamps else text == theirs.text.strip()
                    differ += not same
                    what = f"{recording.name}, {beams} beams{', timestamps' if timestamps else ''}"
                    print(f"{'ok     ' if same else 'DIFFERS'} {what}: {len(theirs.tokens)} tokens, {theirs.avg_logprob:.4f}", flush=True)
                    if not same:
                        print(f"        ours:   {text}\n        theirs: {theirs.text}")
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
