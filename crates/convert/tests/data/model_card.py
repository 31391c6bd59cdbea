"""Writes model-ids.json and cards.json: what llama.cpp's converter makes of ids and model cards.

Needs the `gguf` package of llama.cpp (gguf-py, revision of 2026 or later, which reads
`repetition_penalty`). Run it in this folder; the tests compare our results with the files.
"""

import json
import tempfile
from pathlib import Path

import gguf
from gguf.metadata import Metadata

B = 10**9

# Id, parameters (0: unknown; negative: those of a LoRA adapter).
IDS = [
    ("Mistral", 0),
    ("Mistral-7B", 0),
    ("Mistral-7B-Instruct-v0.2", 0),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46702792704),
    ("meta-llama/Llama-2-7b-hf", 6738415616),
    ("meta-llama/Meta-Llama-3.1-405B-Instruct-FP8", 410 * B),
    ("meta-llama/Llama-3.2-1B", 1235814400),
    ("Llama-3.2-11B-Vision-Instruct", 10670220835),
    ("bigscience/bloom-7b1-petals", 7069016064),
    ("bigscience/bloomz-560m", 559214592),
    ("Qwen/Qwen3-235B-A22B-Instruct-2507", 235093634560),
    ("Qwen/Qwen3-30B-A3B", 30532122624),
    ("Qwen2.5-7B-Instruct-1M", 7615616512),
    ("Qwen2.5-Coder-0.5B-Instruct-q4_k_m", 494032768),
    ("microsoft/Phi-3-mini-4k-instruct", 3821079552),
    ("microsoft/Phi-3-medium-128K-instruct", 13960238080),
    ("microsoft/phi-2", 2779683840),
    ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1100048384),
    ("NousResearch/Nous-Hermes-2-Mixtral-8x7B-DPO", 46702809088),
    ("NousResearch/Yarn-Mistral-7b-128k", 7241732096),
    ("NousResearch/Hermes-2-Pro-Llama-3-8B", 8030523392),
    ("Nexusflow/Starling-LM-7B-beta-iter2", 7241748480),
    ("stabilityai/stablelm-2-1_6b-chat", 1644515328),
    ("stabilityai/stable-diffusion-xl-base-1.0", 0),
    ("openai-community/gpt2", 124439808),
    ("openai-community/gpt2-xl", 1557611200),
    ("google/gemma-2-2b-it", 2614341888),
    ("google/gemma-3-270m", 268098176),
    ("google/flan-t5-small", 0),
    ("google/flan-t5-large-780M", 0),
    ("deepseek-ai/DeepSeek-V2-Lite-Chat", 15706484224),
    ("deepseek-ai/deepseek-coder-33b-instruct", 33342992384),
    ("EleutherAI/pythia-1.4b-deduped-v0", 1414647808),
    ("01-ai/Yi-34B-200K", 34388917248),
    ("tiiuae/falcon-7b", 6921720704),
    ("Model-1T-x", 1042 * B),
    ("Model-7B-7b-7B", 0),
    ("Model-7B-13B", 0),
    ("Model-7B-small", 0),
    ("Model-small", 0),
    ("Model-XXL-chat", 0),
    ("Model-1.5b1-x", 10),
    ("Model-32K", 8 * B),
    ("Model-32K", 0),
    ("Model-8B", 64 * B),
    ("Model-8B", 65 * B),
    ("Model-15B", 8 * B),
    ("Model-15.01B", 8 * B),
    ("Model-lora-8B", -20 * 10**6),
    ("Model-LoRA-1M", -20 * 10**6),
    ("Model-8B-lora", 8 * B),
    ("Model-2.4M-x", -20 * 10**6),
    ("Model-2.5M-x", -20 * 10**6),
    ("v1.0", 0),
    ("v1.0-v2", 0),
    ("a-v1-b-v2", 0),
    ("Llama-3", 0),
    ("Llama-3-Instruct", 0),
    ("7B", 0),
    ("7B-chat", 0),
    ("7B-7B", 0),
    ("BF16-model-7B", 0),
    ("model-iq4_xs", 0),
    ("model-f16-FP32-bfp16-Q8_0", 0),
    ("chat-chat", 0),
    ("Model-7B-Q4_K_M-v0.1-beta2", 0),
    ("--a--7B--", 0),
    ("a.b-7B_c", 0),
    ("A friendly name", 0),
    ("org/A friendly-7B", 0),
    ("./local-7B", 0),
    ("../local/model-7B-chat", 0),
    ("org/sub/model-7B", 0),
    ("/rooted-7B", 0),
    ("o'neil-mc-x2y_z-é7-ñandú-Ünder", 0),
    ("日本語-7b-中a文b", 0),
    ("", 0),
    ("-", 0),
]

FULL_CARD = """---
model_name: Vogelhaus 7B Chat
name: The Birdhouse
author: A. Maker
model_creator: ignored
model_version: v2.1
organization: Bird & Co
description: |
  Talks about birds.
  Two lines.
model_finetune: Chat
model_type: vogelhaus
size_label: 7B
url: https://birds.example/7b
model_doi: 10.1000/birds
uuid: 0b2f5a50-6f8f-4d0c-9f0c-2f3c1a1d9f11
repo_url: https://git.example/birds
license: other
license_name: feather-licence
license_link: https://birds.example/licence
base_model: meta-llama/Llama-2-7b-hf
datasets:
- birds/songs-v1.0
- https://huggingface.co/datasets/birds/nests
- https://huggingface.co/birds/eggs-v2
language: en
languages: [de, fr]
tags:
- birds
- chat
pipeline_tag: text-generation
---
# Text --- not read
"""

# What differs from an empty directory named `Some-Model-7B-Chat` of a model of 7 billion.
CARDS = [
    {"case": "nothing"},
    {"case": "nothing but a size", "directory": "weights", "total_params": 4223232},
    {"case": "unknown size", "directory": "weights", "total_params": 0},
    {"case": "experts", "directory": "weights", "total_params": 46702792704,
     "shared_params": 1605505024, "expert_params": 5637144576, "expert_count": 8},
    {"case": "adapter", "directory": "Birds-LoRA", "total_params": -20000000},
    {"case": "every field", "readme": FULL_CARD},
    {"case": "every field, Windows line ends", "readme": FULL_CARD.replace("\n", "\r\n")},
    {"case": "every field, tabs and no end", "readme": FULL_CARD.split("---\n# ")[0].replace("  ", "\t")},
    {"case": "given name", "readme": FULL_CARD, "name": "Given Name"},
    {"case": "no card", "readme": "# A title\n---\nname: x\n---\n"},
    {"case": "empty file", "readme": ""},
    {"case": "empty card", "readme": "---\n---\nname: x\n"},
    {"case": "blank before the card", "readme": "\n---\nname: x\n---\n"},
    {"case": "blank after the dashes", "readme": "--- \nname: x\n---\n"},
    {"case": "byte order mark", "readme": "\ufeff---\nname: x\n---\n"},
    {"case": "list for a card", "readme": "---\n- a\n- b\n---\n"},
    {"case": "text for a card", "readme": "---\njust words\n---\n"},
    {"case": "comments only", "readme": "---\n# nothing\n---\n"},
    {"case": "key twice", "readme": "---\nlicense: mit\nlicense: apache-2.0\n---\n"},
    {"case": "nulls", "readme": "---\nname:\nmodel_name: ~\nauthor: null\nmodel_author: B\n---\n"},
    {"case": "several licences", "readme": "---\nlicense: [mit, apache-2.0]\n---\n"},
    {"case": "Norway", "readme": "---\nlanguage:\n- no\n- en\n- nb\n---\n"},
    {"case": "quotes", "readme": "---\nname: 'it''s'\nauthor: \"a\\tb \\u00e9\"\nlicense: \"mit\"\n---\n"},
    {"case": "folded text", "readme": "---\ndescription: >-\n  one\n  two\n\n  three\nauthor: a\n  b\n---\n"},
    {"case": "anchors", "readme": "---\ntags: &t [a, b]\nlanguages: *t\nauthor: &n A\norganization: *n\n---\n"},
    {"case": "explicit types", "readme": "---\nversion: !!str 1.10\nname: ! x\n---\n"},
    {"case": "colon and hash in text", "readme": "---\nname: a:b#c\nurl: http://x.example/#y\n---\n"},
    {"case": "brackets at the margin", "readme": "---\ntags: [\na,\n'b',\n]\nlanguage: [\n  en\n]\nname: x\n---\n"},
    {"case": "comments and blanks", "readme": "---\ntags: # c\n# c\n-   a  \n\n  # c\n- b # c\n\nname:   x y  \n---\n"},
    {"case": "dash in an item's next line", "readme": "---\ntags:\n- foo\n  - bar\n---\n"},
    {"case": "quoted lines", "readme": "---\nname: \"a\n  b\n\n  c\"\nauthor: 'x\n  y'\n---\n"},
    {"case": "flow mappings", "readme": "---\n{name: x, tags: [a, 'b c', http://d/e]}\n---\n"},
    {"case": "results table", "readme": "---\nlicense: mit\nmodel-index:\n- name: x\n  results:\n"
     "  - task: {type: text-generation}\n    metrics:\n    - {name: acc, value: 0.5, verified: false}\n---\n"},
    {"case": "widget with odd text", "readme": "---\nlicense: mit\nwidget:\n- text: \"<|im_start|>user\\nHi\"\n"
     "- text: |-\n    a: b\n     c\nextra_gated_prompt: >-\n  Terms: 1) be nice.\n---\n"},
    {"case": "no base model", "readme": "---\nbase_model:\ndatasets: []\n---\n"},
    {"case": "base model of a wrong kind", "readme": "---\nbase_model: {name: x}\ndatasets: {}\n---\n"},
    {"case": "merge", "readme": "---\nbase_model:\n- a/Model-7B-v0.1\n- https://huggingface.co/b/model-7b-v2\n"
     "- https://huggingface.co/b/c/d\n- http://huggingface.co/b/c\n- ssh://host.example/x\n- plain-model-7B-v3\n"
     "- https://other.example/b/c\n- ./here/x\n- A spaced name\n- ''\n- [nested]\n- {}\n---\n"},
    {"case": "base models in full", "readme": "---\nbase_models:\n- name: N\n  author: A\n  version: '1'\n"
     "  organization: O\n  description: D\n  url: U\n  doi: '10'\n  uuid: I\n  repo_url: R\n  other: X\n"
     "dataset_sources: {a: b}\ndataset: some/set\n---\n"},
    {"case": "other key for base models", "readme": "---\nbase_model_sources: [x/y-7B]\n---\n"},
    {"case": "one tag", "readme": "---\ntags: birds\npipeline_tag: [x, y]\nlanguages: en\nlanguage: [de]\n---\n"},
    {"case": "tags of a wrong kind", "readme": "---\ntags: {a: b}\n---\n"},
    {"case": "id in the configuration", "config": {"_name_or_path": "meta-llama/Llama-2-7b-hf"}},
    {"case": "path in the configuration", "config": {"_name_or_path": "/home/someone/model-3B"}},
    {"case": "directory in the configuration", "config": {"_name_or_path": "./out-v3"}},
    {"case": "null in the configuration", "config": {"_name_or_path": None}},
    {"case": "card before configuration", "readme": "---\nname: Card Name\nversion: v9\n---\n",
     "config": {"_name_or_path": "org/conf-7b-base-v1"}, "directory": "dir-13B-tuned-v2"},
    {"case": "configuration with a size that is a context", "config": {"_name_or_path": "org/conf-32K-chat"}},
    {"case": "title in the directory", "directory": "A model of mine"},
    {"case": "overrides", "readme": FULL_CARD, "overrides": {
        "general.name": "Override", "general.author": "O", "general.version": "v3", "general.organization": "Org",
        "general.finetune": "F", "general.basename": "B", "general.description": "D",
        "general.quantized_by": "Q", "general.size_label": "9B", "general.license.name": "L",
        "general.license.link": "K", "general.url": "U", "general.doi": "DOI", "general.uuid": "ID",
        "general.repo_url": "R", "general.source.url": "SU", "general.source.doi": "SD",
        "general.source.uuid": "SI", "general.source.repo_url": "SR",
        "general.base_models": [{"name": "x", "doi": "y"}], "general.datasets": [],
        "general.tags": ["t"], "general.languages": ["l"], "general.sampling.top_k": 3, "unknown": 1}},
    {"case": "overrides that remove", "readme": FULL_CARD, "generation_config": {"top_k": 5, "top_p": 0.5},
     "overrides": {"general.name": None, "general.size_label": None, "general.base_models": None,
                   "general.tags": None, "general.languages": [], "general.finetune": "",
                   "general.sampling.top_k": None}},
    {"case": "sampling", "generation_config": {
        "mirostat_eta": 0.1, "mirostat_tau": 5, "mirostat": 2, "repetition_penalty": 1.05,
        "penalty_last_n": 64, "temperature": 0.6, "xtc_threshold": 0.1, "xtc_probability": 0.5,
        "min_p": 0, "top_p": 0.95, "top_k": 20, "sequence": "kyp", "do_sample": True}},
    {"case": "sampling from both files", "generation_config": {
        "penalty_repeat": 1.1, "repetition_penalty": 1.2, "temperature": None, "top_k": 0},
     "overrides": {"general.sampling.top_p": 0.9, "general.sampling.temp": 1, "general.sampling.sequence": "k"}},
    {"case": "broken generation configuration", "generation_config": "{"},
]


def components(model_id, total):
    names = ["name", "organization", "basename", "finetune", "version", "size_label"]
    found = dict(zip(names, Metadata.get_model_id_components(model_id, total)))
    return {"id": model_id, "total_params": total, "title": Metadata.id_to_title(model_id), **found}


def general_keys(case):
    """The converter's own steps: load, fall back on directory and size, write."""
    with tempfile.TemporaryDirectory() as root:
        model = Path(root) / case["directory"]
        model.mkdir()
        files = {"README.md": "readme", "config.json": "config", "generation_config.json": "generation_config"}
        for file, key in files.items():
            if key in case:
                content = case[key] if isinstance(case[key], str) else json.dumps(case[key])
                (model / file).write_bytes(content.encode())
        overrides = Path(root) / "overrides.json"
        if "overrides" in case:
            overrides.write_text(json.dumps(case["overrides"]))
        counts = [case[key] for key in ["total_params", "shared_params", "expert_params", "expert_count"]]
        metadata = Metadata.load(overrides, model, case.get("name"), counts[0])
    if metadata.name is None:
        metadata.name = model.name
    if metadata.size_label is None and counts[0] > 0:
        metadata.size_label = gguf.size_label(*counts)
    writer = gguf.GGUFWriter(None, "llama")
    writer.kv_data[0].clear()
    metadata.set_gguf_meta_model(writer)
    return [[key, value.type.name, value.value] for key, value in writer.kv_data[0].items()]


def write(name, cases):
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    Path(__file__).with_name(name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    defaults = {"directory": "Some-Model-7B-Chat", "total_params": 7 * B, "shared_params": 7 * B,
                "expert_params": 0, "expert_count": 0}
    cases = [{**defaults, **case} for case in CARDS]
    write("model-ids.json", [components(*case) for case in IDS])
    write("cards.json", [{**case, "expected": general_keys(case)} for case in cases])
