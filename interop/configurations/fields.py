"""Compares the table of configuration fields with the configuration classes of `transformers`.

Usage: python interop/configurations/fields.py GGUF_BINARY

Every class of `gguf convert --print-supported-models` that `transformers` has must have a row in
`crates/models/src/convert/configurations.json` (described in `configuration.rs` beside it), and every field of its configuration
class exactly one mark. A default of the class must be among the values of `refused`, or else the field must be in `required`. New
parameters of RoPE in `transformers` must be known to `rope_check.rs`.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS, RopeParameters

TABLE = Path(__file__).resolve().parents[2] / "crates/models/src/convert/configurations.json"
MARKS = ("written", "implied", "irrelevant", "checked")
# Parameters and types of RoPE that `rope.rs`, `keys.rs` and `rope_check.rs` handle.
ROPE = {
    "rope_theta", "rope_type", "partial_rotary_factor", "factor", "original_max_position_embeddings", "attention_factor", "beta_fast",
    "beta_slow", "short_factor", "long_factor", "low_freq_factor", "high_freq_factor", "mscale", "mscale_all_dim", "truncate",
    "mrope_section",
}  # fmt: skip
ROPE_TYPES = {"linear", "dynamic", "yarn", "longrope", "llama3", "proportional"}
# Classes without a default configuration.
NO_DEFAULT = {"Gemma4AssistantConfig"}


def supported(gguf):
    """Returns the classes with a text model that convert."""
    lines = subprocess.run([gguf, "convert", "--print-supported-models"], capture_output=True, text=True, check=True).stdout
    pairs = [line.split() for line in lines.splitlines()]
    return sorted({name for name, architecture in pairs if architecture != "clip"})


def config_classes():
    """Returns the names of the configuration classes of each model class. The source is read, because importing it needs PyTorch."""
    source = Path(transformers.__file__).parent / "models/auto/modeling_auto.py"
    found = {}
    for statement in ast.parse(source.read_text()).body:
        if not isinstance(statement, ast.Assign) or not statement.targets[0].id.endswith("_MAPPING_NAMES"):
            continue
        for pair in statement.value.args[0].elts:
            if isinstance(pair, ast.Starred):
                continue
            model_type, names = ast.literal_eval(pair)
            for name in [names] if isinstance(names, str) else names:
                found.setdefault(name, set()).add(CONFIG_MAPPING_NAMES[model_type])
    return found


def is_covered(entry, value, fields):
    """Returns whether an entry of `refused` stands for a value."""
    if not isinstance(entry, dict):
        return entry == value and isinstance(entry, bool) == isinstance(value, bool)
    (form, of), = entry.items()
    if form == "not":
        return value != of
    if form == "field":
        return value == fields.get(of)
    if form == "pattern":
        return isinstance(value, (list, tuple)) and all(x == of[i % len(of)] for i, x in enumerate(value))
    return value[0] <= of[0] and value[1] >= of[1]


def faults(row, config_class, common):
    """Yields what a row lacks."""
    defaults = config_class().to_dict()
    base = transformers.PreTrainedConfig().to_dict().keys()
    lists = [set(row.get(mark, [])) for mark in MARKS] + [set(row.get("refused", {})), set(row.get("required", {}))]
    for field in defaults.keys() - base - common:
        marks = sum(field in names for names in lists)
        if marks != 1:
            yield f"`{field}` has {marks} marks"
    for field in set().union(*lists) - defaults.keys():
        if "." not in field:
            yield f"the class has no field `{field}`"
    for field, entries in row.get("refused", {}).items():
        if field in defaults and not any(is_covered(entry, defaults[field], defaults) for entry in entries):
            yield f"the default of `{field}` is {defaults[field]}, which the table refuses: move the field to `required`"
    aliases = {name: meant for name, meant in config_class.attribute_map.items() if meant in row.get("refused", {})}
    for name in aliases.keys() - row.get("aliases", {}).keys():
        yield f"`{name}` is an alias of `{aliases[name]}`"


def main():
    table = json.loads(TABLE.read_text())
    common = set(table.pop("common")["irrelevant"])
    rows = {row["class"]: row for row in table.values()}
    by_class = {name: row for row in table.values() for name in row["classes"]}
    found = []
    classes = config_classes()
    for name in supported(sys.argv[1]):
        expected = classes.get(name, set())
        if hasattr(transformers, name) and by_class.get(name, {}).get("class") not in expected and not expected & NO_DEFAULT:
            found.append(f"{name} has no row, or one of another class than {expected}")
    for model_type, row in table.items():
        config_class = getattr(transformers, row["class"], None)
        if config_class is None:
            config_class = type(transformers.AutoConfig.for_model(model_type))
        found += [f"{row['class']}: {fault}" for fault in faults(row, config_class, common)]
        if row.get("text") not in {None, *table}:
            found.append(f"{row['class']}: the text model {row['text']} has no row")
    found += [f"RoPE has a new parameter `{name}`" for name in RopeParameters.__annotations__.keys() - ROPE]
    found += [f"RoPE has a new type `{name}`" for name in ROPE_INIT_FUNCTIONS.keys() - ROPE_TYPES]
    print("\n".join(found))
    print(f"{len(rows)} configuration classes, {len(by_class)} model classes, {len(found)} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
