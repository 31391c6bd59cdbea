"""Writes half a second of the tone of tests/sound.rs as FLAC, MP3 and Ogg Vorbis. Needs flac 1.4, lame 3.100,
oggenc 1.4 (Debian), numpy."""
import subprocess
import wave

import numpy as np

time = np.arange(8000) / 16000
turns = 300 * time + 1000 * time * time
with wave.open("rising.wav", "wb") as file:
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(16000)
    file.writeframes(np.round(8000 * np.sin(2 * np.pi * turns) * np.exp(-time)).astype(np.int16).tobytes())
subprocess.run(["flac", "-s", "-f", "--no-padding", "rising.wav", "-o", "rising.flac"], check=True)
subprocess.run(["lame", "--quiet", "-b", "64", "rising.wav", "rising.mp3"], check=True)
subprocess.run(["oggenc", "-Q", "-q", "1", "--serial", "1", "rising.wav", "-o", "rising.ogg"], check=True)
