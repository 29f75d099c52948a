"""Makes the reference of the quality test: next-token distributions of the dequantised float32 model.

usage: tests/golden/reference/in-root /opt/ref/bin/python tests/golden/quality/make_reference.py MODEL.gguf
Writes reference.json and reference.u16. Each text/*.txt is one window: its first WINDOW tokens, fed without any token
before them. Row i of a window is the distribution of token i + 1 after tokens 0..i; the last token has no row.

reference.u16, little-endian: for each row in order of the windows, KEEP token ids of the largest probabilities, then
their KEEP probabilities and that of all other tokens together, each as round(-ln(p) * 2048), at most 65535. A reader
normalises the KEEP + 1 probabilities to 1, so the rounding (at most 1/4096 in ln p) enters the divergence squared.
"""
import hashlib
import json
import os
import sys

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

WINDOW = 384
KEEP = 128
UNITS = 2048
HERE = os.path.dirname(os.path.abspath(__file__))


def coded(log_p):
    return np.minimum(np.rint(-log_p * UNITS), 65535).astype('<u2')


def compact(log_p):
    """[rows, vocab] float64 log probabilities -> [rows, 2 * KEEP + 1] uint16."""
    top = np.argsort(-log_p, axis=1, kind='stable')[:, :KEEP]
    kept = np.take_along_axis(log_p, top, axis=1)
    p = np.exp(log_p)
    np.put_along_axis(p, top, 0, axis=1)
    rest = np.log(np.maximum(p.sum(axis=1, keepdims=True), 1e-300))
    return np.concatenate([top.astype('<u2'), coded(kept), coded(rest)], axis=1)


def windows(tokenizer):
    for name in sorted(os.listdir(os.path.join(HERE, 'text'))):
        with open(os.path.join(HERE, 'text', name), encoding='utf-8') as f:
            ids = tokenizer(f.read())['input_ids']
        assert len(ids) >= WINDOW, (name, len(ids))
        yield name.removesuffix('.txt'), ids[:WINDOW]


def load(path):
    folder, name = os.path.split(os.path.abspath(path))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    return model, AutoTokenizer.from_pretrained(folder, gguf_file=name)


def log_probabilities(model, ids):
    with torch.no_grad():
        return torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1].double(), dim=-1).numpy()


def main():
    path = sys.argv[1]
    model, tokenizer = load(path)
    cases, rows = [], []
    for name, ids in windows(tokenizer):
        log_p = log_probabilities(model, ids)
        assert log_p.shape[1] <= 65536
        nll = -log_p[np.arange(len(ids) - 1), ids[1:]].mean()
        cases.append({'name': name, 'perplexity': round(float(np.exp(nll)), 5), 'ids': ids})
        rows.append(compact(log_p))
        print(name, cases[-1]['perplexity'], flush=True)
    with open(path, 'rb') as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    head = {'model': os.path.basename(path), 'sha256': digest, 'keep': KEEP, 'units': UNITS}
    lines = ',\n  '.join(json.dumps(c, separators=(',', ':')) for c in cases)
    with open(os.path.join(HERE, 'reference.json'), 'w', encoding='ascii') as f:
        f.write(json.dumps(head)[:-1] + ', "windows": [\n  ' + lines + '\n]}\n')
    np.concatenate(rows).tofile(os.path.join(HERE, 'reference.u16'))


if __name__ == '__main__':
    main()
