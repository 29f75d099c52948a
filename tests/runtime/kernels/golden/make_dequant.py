#!/usr/bin/env python3
"""Writes dequant.txt: blocks of every stored type and their values as the `gguf` Python package sees them.

One line per type: name, blocks in hex, values as little-endian f32 in hex. Run with gguf and numpy installed:
    python3 make_dequant.py > dequant.txt
Scales cover zero, subnormal, negative and the largest f16; codes are random bytes, and all 0x00, all 0xff.
"""
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

# type: (elements, bytes, offsets of f16 scales)
TYPES = {
    "F16": (32, 64, []), "BF16": (32, 64, []), "Q4_0": (32, 18, [0]), "Q4_1": (32, 20, [0, 2]),
    "Q5_0": (32, 22, [0]), "Q5_1": (32, 24, [0, 2]), "Q8_0": (32, 34, [0]), "Q4_K": (256, 144, [0, 2]),
    "Q5_K": (256, 176, [0, 2]), "Q6_K": (256, 210, [208]),
}
SCALES = [0x2E66, 0xAE66, 0x0001, 0x83FF, 0x0000, 0x7BFF]  # 0.1, -0.1, two subnormals, 0, 65504


def blocks(name, rng):
    elements, size, scales = TYPES[name]
    count = 6 if elements == 32 else 3
    data = rng.integers(0, 256, (count, size), dtype=np.uint8)
    if not scales:  # no NaN or infinity among random f16 and bf16 bits
        bits = data.view(np.uint16)
        bits[(bits & 0x7C00) == 0x7C00] &= 0xBFFF
        bits[(bits & 0x7F80) == 0x7F80] &= 0xBFFF
    else:
        data[1, :] = 0x00
        data[2, :] = 0xFF
    for i in range(count):
        for j, at in enumerate(scales):
            data[i, at : at + 2] = np.frombuffer(np.uint16(SCALES[(i + 3 * j) % 6]).tobytes(), np.uint8)
    return data


rng = np.random.default_rng(20261129)
for name in TYPES:
    data = blocks(name, rng)
    values = dequantize(data.reshape(1, -1), Type[name]).astype("<f4")
    print(name, data.tobytes().hex(), values.tobytes().hex())
