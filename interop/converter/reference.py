"""Runs llama.cpp's converter in this process, and compares files with those that it writes."""

import os
import runpy
import sys

from interop.converter import patches


def load(llama_cpp):
    """Imports llama.cpp's converter, with patches where it stops or does not end."""
    import torch

    # A forked process has no threads of its parent.
    torch.set_num_threads(1)
    # Hides progress bars and warnings of libraries.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    sys.path.insert(0, str(llama_cpp))
    sys.path.insert(1, str(llama_cpp / "gguf-py"))
    patches.apply()


def convert(llama_cpp, folder, out, outtype, pre, flags=()):
    """Converts a checkpoint with llama.cpp's converter; `pre` replaces its lookup of the pre-tokenizer."""
    from conversion import base

    lookup = base.TextModel.get_vocab_base_pre
    if pre is not None:
        base.TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    sys.argv = ["convert", str(folder), "--outfile", str(out), "--outtype", outtype, *flags]
    try:
        runpy.run_path(str(llama_cpp / "convert_hf_to_gguf.py"), run_name="__main__")
    finally:
        base.TextModel.get_vocab_base_pre = lookup


def contents(path):
    """Returns the keys with their values, and the tensors with type, shape and data."""
    from gguf import GGUFReader

    reader = GGUFReader(path)
    keys = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    tensors = {t.name: (t.tensor_type.name, list(map(int, t.shape)), t.data.tobytes()) for t in reader.tensors}
    return keys, tensors


def short(value):
    return repr(value)[:80]


def differences(theirs, ours, known):
    """Yields a line for each difference that is not known, and for each known difference that is absent."""
    left = set(known)
    (their_keys, their_tensors), (our_keys, our_tensors) = contents(theirs), contents(ours)
    for what, a, b in (("key", their_keys, our_keys), ("tensor", their_tensors, our_tensors)):
        for name in a.keys() | b.keys():
            if name in left and a.get(name) != b.get(name):
                left.remove(name)
            elif name not in b:
                yield f"{what} {name} is missing: {short(a[name])}"
            elif name not in a:
                yield f"{what} {name} is unexpected: {short(b[name])}"
            elif a[name] != b[name]:
                yield f"{what} {name} is {short(b[name])}, expected {short(a[name])}"
        if a.keys() == b.keys() and list(a) != list(b):
            place = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
            yield f"{what} order: position {place} is {list(b)[place]}, expected {list(a)[place]}"
    for name in left:
        yield f"{name} is equal, but is listed as a known difference"
