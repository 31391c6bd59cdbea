"""Writes mel_filters.csv: all weights above zero that transformers 5.23.0 computes for Whisper."""
from transformers.audio_utils import mel_filter_bank

with open("mel_filters.csv", "w") as out:
    out.write("bands,band,bin,weight\n")
    for bands in (80, 128):
        weights = mel_filter_bank(201, bands, 0.0, 8000.0, 16000, norm="slaney", mel_scale="slaney")
        for band in range(bands):
            for bin in range(201):
                if weights[bin, band] > 0:
                    out.write(f"{bands},{band},{bin},{float(weights[bin, band])!r}\n")
