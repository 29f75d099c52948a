"""simulate_accuracy.py compares what it says on a tiny model: both sides ran the whole trace, and the errors add up.

usage: simulate_accuracy_test.py QUIRE REPLAY MODEL
"""
import json
import pathlib
import subprocess
import sys

quire, replay, model = sys.argv[1:]
run = subprocess.run([sys.executable, pathlib.Path(__file__).parent / 'simulate_accuracy.py', quire, replay, model, '--rate', '20',
                      '--duration', '2', '--prompt-tokens', '8..30', '--output-tokens', '4..12', '--vocabulary', '200',
                      '--tenants', 'web=2,batch=1:-3',
                      '--max-running', '4'], stdout=subprocess.PIPE, text=True, check=True)
lines = run.stdout.splitlines()
result = json.loads(lines[-1])
assert any(line.startswith('TTFT p50') for line in lines), lines
predicted, measured = result['predicted'], result['measured']
assert result['requests'] == measured['all']['completed'] == predicted['all']['completed'] > 20, result
# The server knows the tenants of the trace.
tenants = {t['name']: t['requests'] for t in measured['tenants']}
assert set(tenants) == {'web', 'batch'} and all(tenants.values()), tenants
assert measured['served'] == {'': 1, **tenants}, measured['served']
for key in ('prompt_tokens', 'output_tokens'):
    assert measured['all'][key] == predicted['all'][key] > 0, (key, measured['all'], predicted['all'])
for key in ('ttft_ms', 'itl_ms', 'e2e_ms'):
    assert 0 < measured['all'][key]['p50'] <= measured['all'][key]['p90'] <= measured['all'][key]['max'], measured['all']
    error = result['relative_error'][f'all.{key}.p50']
    assert abs(error - (predicted['all'][key]['p50'] / measured['all'][key]['p50'] - 1)) < 1e-9, result['relative_error']
print('ok')
