#!/usr/bin/env python3
"""Writes hostile.json: long monotonous texts, with the number and the hash of their smollm ids.

usage: make_hostile.py MODEL.gguf hostile.json        (tokenizer and environment as in make_ids.py)

A text is head + unit * repeat + tail; the hash is 64-bit FNV-1a over the ids as little-endian 32-bit numbers.
"""
import json
import sys
import time

from make_ids import load, make
from tokenizers import pre_tokenizers

MIB = 1 << 20
SOME = 1 << 18
TEXTS = [
    ("", "A", 43000, ""),
    ("", "a", SOME, ""),
    ("", " ", SOME, ""),
    ("", " ", MIB, "x"),
    ("x", "\n", MIB, ""),
    ("", "\r\n", SOME // 2, "x"),
    ("", "\t ", SOME // 2, "."),
    ("", "\u3000", SOME // 3, "x"),
    ("", "<", SOME, ""),
    ("", "<|im_", SOME // 5, ""),
    ("", "\u0301", SOME // 2, ""),
    ("", "ab", SOME // 2, ""),
    ("", "the", SOME // 3, ""),
    ("", "the ", SOME // 4, ""),
    ("", "'", SOME, "s"),
    ("", "7", SOME, ""),
    ("", "\u4e2d", SOME // 3, ""),
    ("", "\U0001f642", SOME // 4, ""),
    ("", "\x00", SOME, ""),
    ("", "\x04", SOME, "x"),
    ("", "=-", SOME // 2, ""),
]


def fnv(ids):
    h = 0xCBF29CE484222325
    for i in ids:
        for byte in i.to_bytes(4, "little"):
            h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def main():
    vocab, merges, control = load(sys.argv[1])
    pre = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    tokenizer = make(vocab, merges, control, pre_tokenizers.Sequence(pre))
    tokenizer.encode_special_tokens = True
    cases = []
    for head, unit, repeat, tail in TEXTS:
        start = time.time()
        ids = tokenizer.encode(head + unit * repeat + tail, add_special_tokens=False).ids
        print("%-10r %d ids, %.2f s" % (unit, len(ids), time.time() - start), file=sys.stderr)
        cases.append({"head": head, "unit": unit, "repeat": repeat, "tail": tail, "count": len(ids), "fnv": "%016x" % fnv(ids)})
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
