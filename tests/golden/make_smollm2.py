"""Makes the reference of the default model: greedy tokens with their margins, top logits, and some full rows.

usage: reference/in-root /opt/ref/bin/python tests/golden/make_smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf
Writes data/smollm2.json and data/smollm2.f16. Weights are dequantised to float32 by transformers; each prompt is
continued greedily, and the model is then run once over prompt and continuation. Per generated position: the token,
the margin between the two largest logits, and the eight largest logits. The .f16 holds the full row of the position
that follows the prompt, one per prompt.
"""
import hashlib
import os
import sys

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from golden_io import write_json, write_rows

NEW = 16
PROMPTS = [
    'The capital of France is',
    '<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n',
    'def fibonacci(n):\n    """Return the n-th Fibonacci number."""\n',
    'Water boils at 100 degrees Celsius, and it freezes at',
    '1, 2, 3, 4, 5, 6, 7,',
    'Once upon a time, in a village by the sea, there lived an old fisherman who',
    '光合作用是',
    'SELECT name, age FROM users WHERE',
    ('A transformer is a neural network built from layers of attention and feed-forward blocks. Each layer reads a '
     'sequence of vectors and writes a sequence of the same length. Attention mixes information between positions, '
     'while the feed-forward block works on each position alone. Because the layers are residual, information can '
     'pass through unchanged. In short, the main idea of the transformer is'),
    'Dear Sir or Madam,\n\nI am writing to',
]


def main():
    path = os.path.abspath(sys.argv[1])
    folder, name = os.path.split(path)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    cases, rows = [], []
    for text in PROMPTS:
        ids = tokenizer(text, return_tensors='pt')['input_ids']
        with torch.no_grad():
            full = model.generate(ids, max_new_tokens=NEW, do_sample=False, eos_token_id=-1)
            logits = model(full).logits[0, ids.shape[1] - 1:-1].numpy()
        top = np.argsort(-logits, axis=1, kind='stable')[:, :8]
        values = np.take_along_axis(logits, top, axis=1)
        new = full[0, ids.shape[1]:].tolist()
        assert top[:, 0].tolist() == new
        cases.append({'text': text, 'ids': ids[0].tolist(), 'new': new,
                      'margin': [round(float(m), 4) for m in values[:, 0] - values[:, 1]],
                      'top_ids': top.tolist(), 'top_logits': [[round(float(v), 4) for v in r] for r in values]})
        rows.append(logits[0])
        print(repr(tokenizer.decode(new)), flush=True)
    with open(path, 'rb') as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    write_json('smollm2.json', {'model': name, 'sha256': digest, 'vocab': rows[0].shape[0], 'cases': cases})
    write_rows('smollm2.f16', np.stack(rows), '<f2')


if __name__ == '__main__':
    main()
