#!/usr/bin/env python3
"""Loads the decoded tensors of a GGUF into a model of `transformers`, and compares what both predict.

    transformers_model.py model.gguf "In the beginning"

Needs: pip install gguf-kit torch transformers

The model is exported as a checkpoint would be (`gguf export` undoes what a conversion does to names and rows), so that
every family that can be exported works.
"""

import subprocess
import sys
import tempfile

import gguf_kit
import torch
from transformers import AutoModelForCausalLM

source, text = sys.argv[1:3]
ids = gguf_kit.Tokenizer(source).encode(text)

with tempfile.TemporaryDirectory() as folder:
    checkpoint = f"{folder}/checkpoint"
    subprocess.run([sys.executable, "-m", "gguf_kit", "--quiet", "export", source, checkpoint], check=True)
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)

# A tensor can also be put in its place by hand: its numbers are an array of numpy.
with gguf_kit.open(source) as opened:
    norm = torch.from_numpy(opened["output_norm.weight"].decode())
    with torch.no_grad():
        model.model.norm.weight.copy_(norm)

with torch.no_grad():
    theirs = model(torch.tensor([ids])).logits[0].numpy()
ours = gguf_kit.Runner(source, exact=True).logits(ids)
print(f"{len(ids)} tokens, greatest difference of logits {abs(theirs - ours).max():.2g}")
print("next:", gguf_kit.Tokenizer(source).decode([int(theirs[-1].argmax())]))
