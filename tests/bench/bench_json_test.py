"""`quire bench --json` on a tiny model: the last line is one JSON object with the promised keys, and it adds up.

Usage: bench_json_test.py QUIRE MODEL
"""
import json
import pathlib
import subprocess
import sys
import tempfile

KEYS = ['prefill_tps', 'decode_tps', 'dram_gbps', 'limit_tps', 'limit_fraction', 'cpu', 'isa', 'threads', 'kv_dtype',
        'load_s', 'peak_rss_bytes', 'cases']
quire, model = sys.argv[1:]
run = subprocess.run([quire, 'bench', '--model', model, '--threads', '2', '--prompt-tokens', '9', '--output-tokens', '5',
                      '--batch', '1,3', '--prefill-tokens', '40', '--step-tokens', '16', '--repetitions', '2', '--json'],
                     stdout=subprocess.PIPE, text=True, check=True)
result = json.loads(run.stdout.splitlines()[-1])
assert list(result) == KEYS, list(result)
assert list(result['decode_tps']) == ['1', '3'], result['decode_tps']
assert result['threads'] == 2 and result['kv_dtype'] == 'int8', result
assert result['prefill_tps'] > 0 and result['load_s'] > 0 and result['peak_rss_bytes'] > 1 << 20, result
assert abs(result['limit_fraction'] * result['limit_tps'] / result['decode_tps']['1'] - 1) < 1e-9, result
assert [(c['kind'], c['batch']) for c in result['cases']] == [('prefill', 1), ('decode', 1), ('decode', 3)]
for case in result['cases']:
    assert len(case['tok_s']['all']) == 2 and case['tok_s']['best'] == max(case['tok_s']['all']), case
    assert case['step_us']['p50'] <= case['step_us']['p99'], case
    phases = {p['name']: p for p in case['phases']}
    for name in ('qkv', 'attention', 'out_proj', 'gate_up', 'down', 'lm_head'):
        assert phases[name]['ops'] > 0 and phases[name]['bytes'] > 0 and phases[name]['wall_us'] > 0, (case, name)
    assert 'schedule' in phases and 'sample' in phases, list(phases)
prefill, decode = result['cases'][0], result['cases'][2]
# Three steps of 16, 16 and 8 rows against one row for each of three sequences.
rows = {'prefill': 40 / 3, 'decode': 3}
ops = [next(p['ops'] for p in c['phases'] if p['name'] == 'down') / rows[c['kind']] for c in (prefill, decode)]
assert abs(ops[0] / ops[1] - 1) < 1e-9, ops

# With a target: both runs of the case, and with an unreachable target the prompt still ends.
run = subprocess.run([quire, 'bench', '--model', model, '--threads', '1', '--prompt-tokens', '9', '--output-tokens', '5',
                      '--batch', '1', '--prefill-tokens', '0', '--repetitions', '1', '--target-itl-ms', '0.001',
                      '--itl-streams', '2', '--itl-prompt-tokens', '100'], stdout=subprocess.PIPE, text=True, check=True)
fixed, target = json.loads(run.stdout.splitlines()[-1])['itl_beside_prompt']
assert (fixed['target_itl_ms'], target['target_itl_ms']) == (0, 0.001), (fixed, target)
for case in (fixed, target):
    assert 0 < case['itl_ms']['p50'] <= case['itl_ms']['p99'] <= case['itl_ms']['max'] and case['prompt_tps'] > 0, case
# Streams over one prefix beside streams that share nothing.
run = subprocess.run([quire, 'bench', '--model', model, '--threads', '1', '--prompt-tokens', '9', '--output-tokens', '5',
                      '--batch', '2', '--prefill-tokens', '0', '--repetitions', '1', '--shared-prefix', '100'],
                     stdout=subprocess.PIPE, text=True, check=True)
result = json.loads(run.stdout.splitlines()[-1])
shared = result['shared_prefix']
assert (shared['batch'], shared['prefix']) == (2, 100), shared
assert abs(result['shared_prefix_ratio'] * shared['apart_tok_s'] / shared['shared_tok_s'] - 1) < 1e-9, result
assert all(ms > 0 for ms in shared['first_token_ms'].values()), shared

# Against another build: itself is fast enough, an imaginary one that is 1000 times as fast is not.
small = ['bench', '--model', model, '--threads', '1', '--prompt-tokens', '9', '--output-tokens', '5', '--batch', '1',
         '--prefill-tokens', '0', '--repetitions', '3']


def against(other, tolerance):
    done = subprocess.run([quire, *small, '--baseline', other, f'--tolerance={tolerance}'], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return done.returncode, done.stdout


code, out = against(quire, 1)
assert code == 0, code
baseline = json.loads(out.splitlines()[-1])['baseline']
assert baseline['worst_ratio'] == baseline['ratio']['decode 1'] > 0, baseline
with tempfile.TemporaryDirectory() as folder:
    fast = pathlib.Path(folder) / 'fast'
    fast.write_text('#!/bin/sh\necho noise\necho \'{"decode_tps": {"1": 1e12}}\'\n')
    fast.chmod(0o755)
    assert against(fast, 0.1)[0] == 1
    fast.write_text('#!/bin/sh\nexit 3\n')
    assert against(fast, 0.1) == (78, '')
assert against(quire + '.not-there', 0.1) == (78, '')

# The fitted cost of a step: a file whose points add up, and which `quire simulate` takes.
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / 'cost.json'
    subprocess.run([quire, 'bench', '--model', model, '--threads', '1', '--step-tokens', '32', '--repetitions', '1',
                    '--fit-cost', file], stderr=subprocess.DEVNULL, check=True)
    cost = json.loads(file.read_text())
    assert cost['kind'] == 'quire-step-cost' and cost['threads'] == 1 and cost['kv_dtype'] == 'int8', cost
    assert all(c >= 0 for c in cost['microseconds'].values()) and sum(cost['microseconds'].values()) > 0, cost
    assert cost['relative_error']['points'] == len(cost['points']) > 20, cost['relative_error']
    for point in cost['points']:
        assert 0 < point['rows'] <= 32 and point['measured_us'] > 0 and point['predicted_us'] >= 0, point
    assert any(p['prefill_pairs'] > 0 and p['decode_kv'] > 0 for p in cost['points']), 'no mixed step'
    worst = max(abs(p['predicted_us'] / p['measured_us'] - 1) for p in cost['points'])
    assert abs(worst - cost['relative_error']['max']) < 0.05, (worst, cost['relative_error'])
    out = subprocess.run([quire, 'simulate', '--cost', file, '--rate', '1', '--duration', '5', '--json'],
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    assert json.loads(out)['cost']['threads'] == 1, out
    code = subprocess.run([quire, 'bench', '--model', model, '--repetitions', '1', '--fit-cost', folder],
                          stderr=subprocess.DEVNULL).returncode
    assert code == 78, code

for bad in (['--tolerance', '2'], ['--batch', '0'], ['--kv-dtype', 'int3'], ['--threads', 'many']):
    code = subprocess.run([quire, 'bench', '--model', model, *bad], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode
    assert code == 64, (bad, code)
code = subprocess.run([quire, 'bench', '--model', model + '.not-there'], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode
assert code == 78, code
print('ok')
