"""Generates texts that are hard for tokenizers, reproducibly by seed."""

import random

# Unicode blocks with special rules: scripts, combining marks, spaces, widths, symbols, private use.
BLOCKS = [
    (0x20, 0x7F), (0x80, 0x250), (0x250, 0x370), (0x370, 0x400), (0x400, 0x530), (0x530, 0x590),
    (0x590, 0x600), (0x600, 0x700), (0x900, 0x980), (0xB80, 0xC00), (0xE00, 0xE80), (0xF00, 0x1000),
    (0x1100, 0x1200), (0x13A0, 0x1400), (0x1E00, 0x2000), (0x2000, 0x2070), (0x2100, 0x2200),
    (0x2460, 0x2600), (0x3000, 0x3100), (0x3100, 0x3300), (0x3300, 0x3400), (0x4E00, 0x5000),
    (0xA000, 0xA100), (0xAC00, 0xAE00), (0xE000, 0xE010), (0xF900, 0xFB50), (0xFB50, 0xFE00),
    (0xFE00, 0xFE10), (0xFE20, 0xFE70), (0xFF00, 0x10000), (0x10330, 0x10350), (0x10400, 0x10450),
    (0x1D400, 0x1D500), (0x1F100, 0x1F200), (0x1F300, 0x1F650), (0x20000, 0x20100),
    (0x2B810, 0x2B930), (0x2F800, 0x2FA20), (0xE0000, 0xE0080), (0x10FFF0, 0x110000),
]
SPACES = list(" \t\n\r\x0b\x0c\x85\xa0\u1680\u2003\u2028\u202f\u3000\u2581\u200b\ufeff\x00")
MARKS = "\u0300\u0301\u0308\u0323\u0327\u0345\u302e\u3099\u0f71\u05b0\u0651\u20dd\u200d\ufe0f"
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "\u2019s", "n't"]
CLUSTERS = ["👨‍👩‍👧", "🏳️‍🌈", "👍🏽", "🇩🇪", "é", "e\u0301", "ﬁ", "㍿", "ｱﾞ", "각", "क्षि", "กำ", "ǅ", "İ", "ẞ", "ς"]


def char(rng):
    """Returns a random character of any plane, except surrogates."""
    if rng.random() < 0.8:
        start, end = rng.choice(BLOCKS)
        return chr(rng.randrange(start, end))
    code = rng.randrange(0x110000 - 0x800)
    return chr(code if code < 0xD800 else code + 0x800)


def piece(rng, words, special):
    """Returns some characters of one kind."""
    kind = rng.randrange(11)
    if kind <= 2:
        word = rng.choice(words)
        return rng.choice([word, word.upper(), word.capitalize(), word])
    if kind == 3:
        return rng.choice(SPACES) * rng.choice([1, 1, 2, 3, 9, 40])
    if kind == 4:
        return "".join(char(rng) for _ in range(rng.randrange(1, 8)))
    if kind == 5:
        start, end = rng.choice(BLOCKS)
        return "".join(chr(rng.randrange(start, end)) for _ in range(rng.randrange(1, 12)))
    if kind == 6:
        return rng.choice([char(rng), rng.choice(words)[:1] or "a"]) * rng.choice([2, 3, 17, 120, 300])
    if kind == 7:
        return str(rng.randrange(10 ** rng.randrange(1, 12)))
    if kind == 8:
        base = rng.choice([char(rng), rng.choice("aeiou가か")])
        return base + "".join(rng.choice(MARKS) for _ in range(rng.randrange(1, 4)))
    if kind == 9:
        return rng.choice(CONTRACTIONS + CLUSTERS + list("!?.,;:-_/\\()[]{}<>@#$%^&*+=|~`\"'"))
    token = rng.choice(special)
    length = rng.randrange(1, len(token) + 1)
    return rng.choice([token, token, token[:length], token.upper(), token[1:]])


def texts(count, corpus, special, seed=1):
    """Yields `count` texts of words of the corpus, characters of all planes, runs of a character, combining marks, white space, and
    (parts of) special tokens."""
    rng = random.Random(seed)
    words = sorted(set(corpus.split()))
    special = [text for text in special if text] or ["<s>", "</s>", "[CLS]", "<|endoftext|>"]
    for _ in range(count):
        parts = [piece(rng, words, special) for _ in range(rng.choice([1, 1, 2, 3, 5, 8, 15]))]
        yield rng.choice(["", " "]).join(parts)
