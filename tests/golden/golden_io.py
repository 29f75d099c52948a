"""Writes golden cases: NAME.json (ids, margins, top tokens) and NAME.f32 or NAME.f16 (logit rows, little-endian)."""
import json
import os

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')


def write_json(name, value):
    """One case per line, so that a diff shows which case changed."""
    head = {k: v for k, v in value.items() if k != 'cases'}
    cases = ',\n  '.join(json.dumps(c, separators=(',', ':')) for c in value['cases'])
    text = json.dumps(head)[:-1] + ', "cases": [\n  ' + cases + '\n]}\n'
    json.loads(text)
    with open(os.path.join(DATA, name), 'w', encoding='ascii') as f:
        f.write(text)


def write_rows(name, rows, dtype):
    np.ascontiguousarray(rows).astype(dtype).tofile(os.path.join(DATA, name))
