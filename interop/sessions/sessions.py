"""Runs the sessions of four people in a pseudo-terminal of 80 and of 120 columns, with a trained model.

usage: sessions.py GGUF MODEL DEMO [NAME...]

GGUF is the binary, MODEL an instruct model with a chat template (SmolLM2 135M Instruct, Q4_1), DEMO the checkpoint of the
demo. Needs: pyte.
"""

import os
import sys
import tempfile

import llama_cpp
import newcomer
import publisher
import repairer
from terminal import Session

SESSIONS = {"newcomer": newcomer, "llama_cpp": llama_cpp, "publisher": publisher, "repairer": repairer}


def main():
    gguf, model, demo = (os.path.abspath(path) for path in sys.argv[1:4])
    names = sys.argv[4:] or list(SESSIONS)
    for name in names:
        for columns in (80, 120):
            print(f"{name}, {columns} columns", flush=True)
            with tempfile.TemporaryDirectory() as directory:
                SESSIONS[name].run(Session(gguf, columns, directory), model, demo)
    print(f"{len(names)} sessions passed at both widths")


main()
