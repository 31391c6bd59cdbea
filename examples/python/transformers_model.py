#!/usr/bin/env python3
"""Loads the dequantized weights of a GGUF file into a `transformers` model, and compares the logits of both.

    transformers_model.py model.gguf "In the beginning"

Requires `pip install gguf-kit torch transformers`.

The weights are exported as a checkpoint (`gguf export` reverses the renaming and permutation of a conversion), so this works for
every architecture that can be exported.
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

# A tensor can also be copied by hand: `decode` returns a NumPy array.
with gguf_kit.open(source) as opened:
    norm = torch.from_numpy(opened["output_norm.weight"].decode())
    with torch.no_grad():
        model.model.norm.weight.copy_(norm)

with torch.no_grad():
    reference = model(torch.tensor([ids])).logits[0].numpy()
logits = gguf_kit.Runner(source, exact=True).logits(ids)
print(f"{len(ids)} tokens, maximum difference of logits {abs(reference - logits).max():.2g}")
print("next:", gguf_kit.Tokenizer(source).decode([int(reference[-1].argmax())]))
