#!/usr/bin/env python3
"""Compares what `quire simulate` predicts for one server with a real run of the same trace over gRPC.

usage: simulate_accuracy.py QUIRE REPLAY MODEL [--trace FILE] [--cost FILE] [FLAGS of quire serve and simulate]
QUIRE and REPLAY are the binaries `quire` and `serving_replay` of one build. Without --cost the cost of a step is
measured first; without --trace one is generated (--rate, --duration, --tenants). Prints both beside each other with the relative
error of the prediction; the last line is one JSON object.
"""
import argparse
import collections
import json
import pathlib
import signal
import subprocess
import tempfile
import time

ap = argparse.ArgumentParser()
ap.add_argument('quire')
ap.add_argument('replay')
ap.add_argument('model')
ap.add_argument('--trace')
ap.add_argument('--cost')
ap.add_argument('--rate', type=float, default=1.0)
ap.add_argument('--duration', type=float, default=40)
ap.add_argument('--prompt-tokens', default='lognormal:150:0.7')
ap.add_argument('--output-tokens', default='lognormal:60:0.6')
ap.add_argument('--tenants', default='', help='as of quire simulate')
ap.add_argument('--vocabulary', type=int, default=1000)
ap.add_argument('--max-error', type=float, help='exit 1 if any error is larger')
a, shared = ap.parse_known_args()
MEASURES = [('TTFT p50, ms', ('all', 'ttft_ms', 'p50')), ('TTFT p90, ms', ('all', 'ttft_ms', 'p90')),
            ('ITL p50, ms', ('all', 'itl_ms', 'p50')), ('ITL p90, ms', ('all', 'itl_ms', 'p90')),
            ('ITL mean, ms', ('all', 'itl_ms', 'mean')), ('end to end p50, ms', ('all', 'e2e_ms', 'p50')),
            ('end to end p90, ms', ('all', 'e2e_ms', 'p90')), ('output tokens/s', ('output_tokens_per_s',))]


def last_json(command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def served(folder, trace):
    address, log = f'unix:{folder}/socket', folder / 'log'
    with log.open('w') as out:
        server = subprocess.Popen([a.quire, 'serve', '--model', a.model, '--listen', address, '--http-listen', 'off',
                                   *shared], stdout=out, stderr=out)
    try:
        while 'ready after' not in log.read_text():
            if server.poll() is not None:
                raise SystemExit(f'the server ended:\n{log.read_text()}')
            time.sleep(0.05)
        result = last_json([a.replay, '--addr', address, '--trace', trace, '--vocabulary', str(a.vocabulary)])
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    # Requests by tenant as the server saw them; the replay's warm-up names none.
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith('{"event":"request"'))
    result['served'] = collections.Counter(line['tenant'] for line in lines)
    return result


def at(result, path):
    for key in path:
        result = result[key]
    return result


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    cost = a.cost or f'{folder}/cost.json'
    if not a.cost:
        subprocess.run([a.quire, 'bench', '--model', a.model, '--fit-cost', cost], check=True)
    trace = a.trace or f'{folder}/trace.csv'
    traffic = ['--trace', trace] if a.trace else ['--rate', str(a.rate), '--duration', str(a.duration),
                                                 '--prompt-tokens', a.prompt_tokens, '--output-tokens', a.output_tokens, '--tenants', a.tenants,
                                                 '--save-trace', trace]
    predicted = last_json([a.quire, 'simulate', '--cost', cost, *traffic, *shared, '--json'])
    real = served(folder, trace)

errors = {}
print(f'{predicted["cost"]["cpu"]}, {predicted["cost"]["threads"]} threads, {predicted["cost"]["model"]}: '
      f'{real["all"]["requests"]} requests in {real["seconds"]:.1f} s')
print(f'{"":20}{"predicted":>12}{"measured":>12}{"error":>9}')
for label, path in MEASURES:
    p, r = at(predicted, path), at(real, path)
    errors['.'.join(path)] = p / r - 1 if r else None
    print(f'{label:20}{p:12.2f}{r:12.2f}{100 * (p / r - 1) if r else float("nan"):8.1f}%')
print(json.dumps({'requests': real['all']['requests'], 'relative_error': errors, 'predicted': predicted, 'measured': real}))
if a.max_error is not None and max(abs(e) for e in errors.values() if e is not None) > a.max_error:
    raise SystemExit(1)
