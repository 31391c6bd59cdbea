"""Compares logits of every class that `gguf convert` supports with llama.cpp and `transformers`.

Usage: python graph_logits.py GGUF_BINARY LIBLLAMA_DIR LLAMA_CPP_DIR ZOO_DIR [--only CLASS,...] [--of ARCHITECTURE,...]
                              [--results FILE] [--write DATA] [--keep DIR]

Takes the tiny random checkpoints that coverage.py makes for a class, doubles their matrices so that a wrong gate or sliding window
shows, converts them to F32 and runs them with `exact` precision. The logits of some dozens of tokens (the last hidden states of models
without an output matrix) are compared with those of llama.cpp for the same file (F32 KV cache, no flash attention) and of
`transformers` for the checkpoint, if it has the class. The greatest difference, in standard deviations of the reference, must be
below `TOLERANCE`, unless `REASONS` explains why the reference is off. Where neither has the model, `graph_references.py` may have
a NumPy implementation.

LIBLLAMA_DIR has llama.cpp's libraries; the Python package llama_cpp (installed with CMAKE_ARGS=-DLLAMA_BUILD=OFF) calls
them. `--results` keeps outcomes in a file and reuses those of classes that are not asked for; `--write docs/models.json` records the
differences and generates docs/models.md again (`models_page.py`). The rest is as in coverage.py.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import models_page
import numpy as np

TOKENS = 72
# More of models of which layers compress so many tokens into one that fewer would show nothing.
MORE_TOKENS = {"DeepseekV4ForCausalLM": 330}
# llama.cpp does not come back from some models.
SECONDS = 60
# llama.cpp rounds more: tables of angles and of functions.
TOLERANCE = {"llama.cpp": 1e-3, "transformers": 1e-4, "numpy": 1e-4}
REFERENCES = set(TOLERANCE)
# llama.cpp evaluates GELU with a table in half precision.
TABLE = (2e-2, "GELU from an F16 table")
UNSCALED = (2e-1, "GELU from an F16 table, amplified by unscaled attention logits")
ANYTHING = float("inf")
# By architecture and reference: the greatest difference that is expected, and why the reference is off.
REASONS = {
    ("arwkv7", "llama.cpp"): (ANYTHING, "reads past heads that are not a multiple of its vector length"),
    ("gemma3", "llama.cpp"): TABLE,
    ("gemma4", "llama.cpp"): UNSCALED,
    ("granitehybrid", "llama.cpp"): (ANYTHING, "partial RoPE on the wrong pairs"),
    ("grok", "llama.cpp"): (ANYTHING, "normalizes expert weights, no soft cap of router logits; GELU from an F16 table"),
    ("grovemoe", "llama.cpp"): (ANYTHING, "group experts read the output of the routed experts"),
    ("hy_v4", "transformers"): (ANYTHING, "NeoX RoPE layout; llama.cpp and gguf-kit interleaved"),
    ("mellum", "llama.cpp"): (ANYTHING, "wrong RoPE base frequency in sliding-window layers"),
    ("minimax-01", "transformers"): (ANYTHING, "RoPE on whole heads"),
    ("minimax-m3", "llama.cpp"): (ANYTHING, "no block-sparse mask without flash attention"),
    ("modern-bert", "llama.cpp"): TABLE,
    ("phimoe", "llama.cpp"): (ANYTHING, "RMS norm and softmax routing instead of LayerNorm and SparseMixer"),
    ("qwen4exp", "llama.cpp"): (ANYTHING, "attends to part of one more block"),
    ("rwkv7", "llama.cpp"): (ANYTHING, "reads past heads that are not a multiple of its vector length"),
    ("smallthinker", "llama.cpp"): (ANYTHING, "sliding window of 4096, whatever the file states"),
    ("spark2_5", "llama.cpp"): TABLE,
}
# Labels of checkpoints on the page. The first checkpoint of a class has none.
LABELS = {
    "deci_kinds": "block_configs", "deci_listed": "per-layer head counts", "deepseek4_without_hash": "without hash routing",
    "jais_scaled_otherwise": "other multipliers", "plamo3_stretched": "RoPE scaling", "qwen4_exp": "second checkpoint",
    "qwen4_exp_that_sees": "second checkpoint", "qwen4_exp_without_ngrams": "without n-grams",
    **dict.fromkeys(("deepseek4", "jais", "mistral4", "plamo3", "smallthinker"), ""),
}  # fmt: skip
INDEXER = {"index_n_heads": 16, "index_head_dim": 64}
BLOCK_INDEXER = {"indexer_n_heads": 16}
# What checkpoints have besides, so that more shows: fields of the configuration of a class that `transformers` makes.
# Indexers have enough heads that hardly ever none fits, when all tokens would be as good.
FIELDS = {
    "AfmoeForCausalLM": {"route_norm": True},
    "DeepseekV32ForCausalLM": INDEXER,
    "GlmMoeDsaForCausalLM": INDEXER,
    **dict.fromkeys(
        ("ModernBertForMaskedLM", "ModernBertForSequenceClassification", "ModernBertModel"), {"layer_norm_eps": 1e-5}
    ),
    "LagunaForCausalLM": {"layer_types": ["full_attention", "sliding_attention"]},
    "Qwen4ExpForCausalLM": BLOCK_INDEXER,
    "Qwen4ExpForConditionalGeneration": {"text_config": BLOCK_INDEXER},
    "MellumForCausalLM": {"layer_types": ["sliding_attention", "full_attention"]},
    "PaddleOCRVLForConditionalGeneration": {
        "text_config": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}},
    },
}
SCALE = 3.5565588200778455
MINIMAX = {
    "model_type": "minimax", "layer_types": ["linear_attention"] * 7 + ["full_attention"], "mlp_alpha_factor": SCALE,
    "full_attn_alpha_factor": SCALE, "linear_attn_alpha_factor": SCALE,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e7},
}
# What the configuration of a class that is made by hand gets, for `transformers` alone or before it is converted.
FOR_TRANSFORMERS = {
    "ChameleonForConditionalGeneration": {"vocabulary_map": {"<image>": 8}},
    "KimiLinearForCausalLM": {"model_type": "kimi_linear", "pad_token_id": 0},
    **dict.fromkeys(("MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM"), MINIMAX),
    "PhiMoEForCausalLM": {"model_type": "phimoe", "attention_bias": True, "lm_head_bias": True, "rope_scaling": dict.fromkeys(("short_mscale", "long_mscale"), 1.2535663410560174)},
    "Dots3NoteTextForCausalLM": {"num_key_value_heads": 4},
    "HYV4ForCausalLM": {"model_type": "hy_v4", "pad_token_id": 0},
    "Qwen4ExpForCausalLM": {"model_type": "qwen4_exp_text"},
    "Qwen4ExpForConditionalGeneration": {"model_type": "qwen4_exp", "text_config": {"model_type": "qwen4_exp_text"}},
}
# Parts of models that text does not go through, or that are made by the program.
ELSEWHERE = ("vqmodel", "vision", "visual", "projector", "slope_rate", "_decay")
# What the configuration of a class that is made by hand has otherwise.
CHANGED = {
    "BambaForCausalLM": {"attn_rotary_emb": 8},
    "Glm5NextForConditionalGeneration": {"swiglu_limit": 0.1},
    "JAISLMHeadModel": {"n_head": 4},
}
# More checkpoints of a class: fields that are another.
VARIANTS = {
    "MiniMaxText01ForCausalLM": {"full-head RoPE": {"rotary_dim": 16}},
    "Qwen4ExpForCausalLM": {"all blocks selected": {"indexer_budget": 128}},
    "SmallThinkerForCausalLM": {"sliding window 4096": {"sliding_window_size": 4096}},
}
# What `transformers` calls classes of others.
NAMES = {
    "ChameleonForCausalLM": "ChameleonForConditionalGeneration",
    "Gemma3nForConditionalGeneration": "Gemma3nForCausalLM",
    "MiniMaxM1ForCausalLM": "MiniMaxForCausalLM",
    "MiniMaxText01ForCausalLM": "MiniMaxForCausalLM",
    "PhiMoEForCausalLM": "PhimoeForCausalLM",
}
# Tensors of a class that random numbers make no sense for: what their names end with, and what is in them.
VALUES = {"ApertusForCausalLM": {"act_fn.eps": -1e-6}}
# By how much matrices of a class grow, if not by 2.
GAINS = {"PlamoForCausalLM": 0.25}


def ids(name, folder):
    """Tokens of all kinds; two that switch adapters on, if some do: the first, then one whose mean with it is a third; where
    n-grams have embeddings, some that end a text, two of them in a row."""
    tokens = np.random.default_rng(11).integers(3, 600, MORE_TOKENS.get(name, TOKENS))
    config = json.loads((folder / "config.json").read_text())
    switching = config.get("adapter_token_ids")
    config = config.get("text_config", config)
    if config.get("ple_layer_ids"):
        tokens[[TOKENS // 4, TOKENS // 4 + 1, TOKENS // 4 + 3, TOKENS // 2]] = config["eos_token_id"]
    if switching:
        tokens[[TOKENS // 4, TOKENS // 2]] = switching[0], switching[2]
    return tokens


def enlarge(folder, gain, values):
    """Matrices times a power of 2, which is exact; some tensors full of one number."""
    import torch
    from safetensors.torch import load_file, save_file

    for path in folder.rglob("*.safetensors"):
        tensors = load_file(path)
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and tensor.dim() > 1 and tensor.dtype in (torch.bfloat16, torch.float16, torch.float32):
                tensors[name] = (tensor * gain).contiguous()
            for end, value in values.items():
                if name.endswith(end):
                    tensors[name] = torch.full_like(tensor, value)
        save_file(tensors, path)


def change(folder, fields):
    path = folder / "config.json"
    path.write_text(json.dumps(merged(json.loads(path.read_text()), fields)))


# ---- references


def of_llama(path, tokens, out, hidden):
    """Logits of llama.cpp, in a process of its own, which it may abort."""
    import llama_cpp as lib

    silent = lib.llama_log_callback(lambda _level, text, _data: os.write(2, text))
    lib.llama_log_set(silent, ctypes.c_void_p(0))
    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    params.n_gpu_layers = 0
    # Weights laid out for the processor need instructions that not every one has.
    params.use_extra_bufts = False
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    assert model, "not loaded"
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 512
    params.type_k = params.type_v = 0
    params.flash_attn_type = 0
    params.n_threads = params.n_threads_batch = 1
    if hidden:
        params.embeddings, params.pooling_type = True, 0
    context = lib.llama_init_from_model(model, params)
    assert context, "no context"
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.logits[i] = token, i, 1
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
    assert lib.llama_decode(context, batch) == 0
    if hidden:
        size, get = lib.llama_model_n_embd(model), lib.llama_get_embeddings_ith
    else:
        size, get = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model)), lib.llama_get_logits_ith
    rows = [np.ctypeslib.as_array(get(context, i), shape=(size,)).copy() for i in range(len(tokens))]
    np.save(out, np.array(rows))


# Encoders of text: what comes out are hidden states.
ENCODERS = {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "modern-bert", "neo-bert", "eurobert"}


def has_logits(path):
    return architecture(path) not in ENCODERS


def architecture(path):
    import gguf

    return gguf.GGUFReader(path).fields["general.architecture"].contents()


def of_transformers(name, folder, tokens, hidden):
    """Logits of `transformers` for the checkpoint."""
    import torch
    import transformers

    cls = getattr(transformers, NAMES.get(name, name))
    own = FOR_TRANSFORMERS.get(tiny_name(name))
    if own:
        change(folder, own)
    how = {"dtype": torch.float32, "attn_implementation": "eager", "ignore_mismatched_sizes": True}
    made, told = cls.from_pretrained(folder, output_loading_info=True, **how)
    lacking = [*told["missing_keys"], *(name for name, *_ in told["mismatched_keys"])]
    lacking = [name for name in lacking if not any(part in name for part in ELSEWHERE)]
    lacking += [name for name in told["unexpected_keys"] if name.endswith("bias")]
    assert not lacking, f"has other names: {lacking[:3]}"
    model = made.eval()
    with torch.no_grad():
        made = model(input_ids=torch.tensor(tokens)[None], use_cache=False, **({"output_hidden_states": True} if hidden else {}))
    if not hidden:
        return made.logits[0].float().numpy()
    last = made.last_hidden_state if "last_hidden_state" in made else made.hidden_states[-1]
    return last[0].float().numpy()


def tiny_name(name):
    """The class that the checkpoints of a class are made as."""
    import coverage

    return coverage.SAME_AS.get(name, name)


def reference_in_numpy(arch, path, tokens):
    """Logits of the NumPy implementation, if there is one."""
    if importlib.util.find_spec("graph_references") is None:
        return None
    import graph_references

    return graph_references.run(arch, path, tokens)


# ---- comparing


def compare(name, options, folder, pre):
    """Architecture and differences of a checkpoint."""
    path, out = folder.with_suffix(".gguf"), folder.with_suffix(".npy")
    target = folder / "target"
    draft = ["--target-model-dir", target] if target.is_dir() else []
    ran(options.gguf, "convert", "--force", folder, "-o", path, "--outtype", "f32", *draft, *(["--pre", pre] if pre else []))
    if os.environ.get("GRAPH_STORE"):
        ran(os.environ["GRAPH_STORE"], path)
    arch = architecture(path)
    tokens = [int(token) for token in ids(name, folder)]
    listed = " ".join(map(str, tokens))
    row = {"architecture": arch}
    try:
        flags = ["--precision", "exact", "--cache-type", "f32", "--force"]
        if os.environ.get("GRAPH_STORE"):
            flags += ["--graph", "stored"]
        ran(options.gguf, "logits", path, "--ids", listed, "-o", out, *flags)
    except RuntimeError as fault:
        return row | {"fault": str(fault)}
    found = np.load(out)
    row["reads"] = sensitivity(found)
    references = {
        "llama.cpp": lambda: llama(options, path, listed),
        "transformers": lambda: of_transformers(name, folder, tokens, not has_logits(path)),
        "numpy": lambda: reference_in_numpy(arch, path, tokens),
    }
    for whose, make in references.items():
        try:
            expected = make()
            if expected is not None:
                row[whose] = difference(found, expected)
        except Exception as fault:
            row[f"{whose}: fault"] = f"{type(fault).__name__}: {fault}"[-300:]
    return row


def sensitivity(found):
    """By how much a row differs from the one before it: nothing would show in a model that says the same of all."""
    return float(np.abs(np.diff(found, axis=0)).mean() / found.std())


def difference(found, expected):
    if found.shape != expected.shape:
        # Rows of the vocabulary beyond its tokens.
        assert found.shape[0] == expected.shape[0], f"{found.shape}, not {expected.shape}"
        least = min(found.shape[1], expected.shape[1])
        found, expected = found[:, :least], expected[:, :least]
    return float(np.abs(found - expected).max() / expected.std())


def llama(options, path, listed):
    out = path.with_suffix(".llama.npy")
    here = Path(__file__).resolve()
    environment = os.environ | {"LLAMA_CPP_LIB_PATH": str(options.libllama)}
    command = [sys.executable, here, "--as-llama", path, listed, out, *([] if has_logits(path) else ["hidden"])]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, timeout=SECONDS)
    if done.returncode != 0:
        words = ("error", "ASSERT", "missing")
        lines = [line for line in done.stderr.splitlines() if any(word in line for word in words)]
        raise RuntimeError((lines or done.stderr.splitlines() or ["nothing said"])[0])
    return np.load(out)


def ran(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


def work_on(name, options, by_hand, results):
    """All checkpoints of a class, in a process of its own."""
    import coverage
    import tiny_checkpoints
    import torch

    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    made_as = coverage.SAME_AS.get(name, name)
    own = FIELDS.get(made_as)
    if own:
        old = tiny_checkpoints.FIELDS.get(made_as, {})
        tiny_checkpoints.FIELDS[made_as] = merged(old, own)
    rows = {}
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(options.keep or temporary) / name
        work.mkdir(parents=True)
        try:
            for folder, pre, label in coverage.checkpoints(name, by_hand, options.zoo, work):
                if label.endswith("without head_dim"):
                    continue
                enlarge(folder, GAINS.get(made_as, 2.0), VALUES.get(made_as, {}))
                change(folder, CHANGED.get(made_as, {}))
                for variant, fields in VARIANTS.get(made_as, {}).items():
                    other = folder.with_name(f"{folder.name} {variant}")
                    shutil.copytree(folder, other)
                    change(other, fields)
                    rows[f"{label}, {variant}"] = compare(name, options, other, pre)
                rows[label] = compare(name, options, folder, pre)
        except Exception as fault:
            rows[name] = {"architecture": "", "fault": f"{type(fault).__name__}: {fault}"[-600:]}
    results.put(rows)


def merged(old, new):
    inner = {key: old[key] | new[key] for key in old.keys() & new.keys() if isinstance(new[key], dict)}
    return old | new | inner


# ---- the results


def deviations(row):
    """By reference, why it is off; `None` if a difference is greater than expected."""
    found = {}
    for reference in REFERENCES & row.keys():
        limit, reason = REASONS.get((row["architecture"], reference), (TOLERANCE[reference], ""))
        if not row[reference] < limit:
            return None
        if reason and row[reference] >= TOLERANCE[reference]:
            found[reference] = reason
    return found


def verdict(row):
    """Whether a row is right (`None`: there is no exact reference), and a remark."""
    found = None if "fault" in row else deviations(row)
    if found is None:
        return False, row.get("fault", "WRONG")
    if not REFERENCES & row.keys() - found.keys():
        return None, "compared with nothing that is exact"
    return True, "; ".join(f"{reference}: {reason}" for reference, reason in found.items())


def case_name(name, label, is_alone):
    """The class, with what distinguishes its checkpoints."""
    bits = [] if is_alone else [LABELS.get(bit, bit) for bit in label.split(", ") if bit != name]
    return ", ".join([name, *filter(None, bits)])


def write_into(path, results):
    """Records the differences of all classes, and writes the page."""
    data = models_page.load(path)
    for name, rows in results.items():
        for label, row in rows.items():
            if "fault" not in row and (found := deviations(row)) is not None:
                case = case_name(name, label, len(rows) == 1)
                differences = {key: row[key] for key in ("llama.cpp", "transformers", "numpy") if key in row}
                models_page.record_logits(data, row["architecture"], case, differences, deviations=found)
    models_page.save(data, path)
    models_page.main([])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf")
    parser.add_argument("libllama", type=Path)
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("zoo", type=Path)
    for name in ("--only", "--of"):
        parser.add_argument(name, type=lambda names: names.split(","))
    for name in ("--results", "--write", "--keep"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()

    import coverage
    import torch  # noqa: F401  before the processes, so that each starts fast
    import transformers

    coverage.SECONDS = 900
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    registered = coverage.registered(options.llama_cpp)
    listed = subprocess.run([options.gguf, "convert", "--print-supported-models"], capture_output=True, text=True)
    ours = dict(line.split() for line in listed.stdout.splitlines() if not line.endswith("clip"))
    by_hand, _ = coverage.cases()
    wanted = options.only or [
        name for name in registered if name in ours and (options.of is None or ours[name] in options.of)
    ]
    results = json.loads(options.results.read_text()) if options.results and options.results.is_file() else {}
    wrong = 0
    for name in wanted:
        if name in results and not (options.only or options.of):
            continue
        found = coverage.outcome(work_on, name, options, by_hand.get(coverage.SAME_AS.get(name, name), []))
        results[name] = found if isinstance(found, dict) else {name: {"architecture": "", "fault": found[0]}}
        for label, row in results[name].items():
            right, remark = verdict(row)
            wrong += right is not True
            numbers = {key: f"{value:.1e}" if isinstance(value, float) else value for key, value in row.items()}
            print(f"{'ok' if right else 'WRONG' if right is False else 'OPEN'} {label}: {numbers} {remark}", flush=True)
        if options.results:
            options.results.write_text(json.dumps(results, indent=1))
    if options.write:
        write_into(options.write, results)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    if sys.argv[1] == "--as-llama":
        of_llama(Path(sys.argv[2]), [int(token) for token in sys.argv[3].split()], sys.argv[4], "hidden" in sys.argv[5:])
    else:
        main()
