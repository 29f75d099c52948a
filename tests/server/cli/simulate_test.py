"""`quire simulate` on the committed trace and cost: tables, JSON and picture are there and add up; bad input is named.

Usage: simulate_test.py QUIRE FOLDER, with example_cost.json, example_trace.csv and make_trace.sh in FOLDER.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

quire, folder = sys.argv[1], pathlib.Path(sys.argv[2])
cost, trace = folder / 'example_cost.json', folder / 'example_trace.csv'
work = pathlib.Path(tempfile.mkdtemp())


def run(*args, code=0):
    done = subprocess.run([quire, 'simulate', *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == code, (args, done.returncode, done.stderr)
    return done


def result(*args, code=0):
    return json.loads(run('--cost', cost, '--json', *args, code=code).stdout)


# The committed trace: the table and the plot.
lines = trace.read_text().splitlines()[1:]
plot = work / 'plot.svg'
table = run('--cost', cost, '--trace', trace, '--plot', plot).stdout
for word in ('time to first token', 'between tokens', 'end to end', 'preemptions', 'KV blocks', 'web', 'batch', 'p99'):
    assert word in table, (word, table)
svg = ElementTree.parse(plot).getroot()
tag = '{http://www.w3.org/2000/svg}'
assert svg.tag == tag + 'svg', svg.tag
texts = [t.text for t in svg.iter(tag + 'text')]
for text in ('Time to first token', 'Between tokens', 'End to end', 'Sequences', 'Use', 'seconds', 'waiting', 'KV blocks'):
    assert text in texts, (text, texts)
width, height = float(svg.get('width')), float(svg.get('height'))
curves = list(svg.iter(tag + 'polyline'))
assert len(curves) == 3 * 3 + 2 + 2, len(curves)  # all and two tenants in three panels, then two lines in each of two
for curve in curves:
    points = [tuple(map(float, p.split(','))) for p in curve.get('points').split()]
    assert len(points) > 10 and all(0 <= x <= width and 0 <= y <= height for x, y in points), curve.attrib
    assert all(a[0] <= b[0] for a, b in zip(points, points[1:])), 'a curve runs backwards'

for element in svg.iter():  # what a viewer that knows no style sheets shows
    kind = element.tag.removeprefix(tag)
    assert kind not in ('text', 'rect', 'polyline') or element.get('fill'), element.attrib
    assert kind not in ('line', 'polyline') or element.get('stroke'), element.attrib

# The committed trace is what its script makes.
made = work / 'made.csv'
subprocess.run([folder / 'make_trace.sh', quire, made], check=True, stdout=subprocess.DEVNULL)
assert made.read_text() == trace.read_text(), 'example_trace.csv is not what make_trace.sh makes'

one = result('--trace', trace)
assert one == result('--trace', trace), 'two runs differ'
assert one['all']['requests'] == len(lines), one['all']
for group in [one['all'], *one['tenants']]:
    assert group['requests'] == group['completed'] + group['rejected'] + group['expired'], group
    for key in ('ttft_ms', 'itl_ms', 'e2e_ms'):
        assert 0 < group[key]['p50'] <= group[key]['p90'] <= group[key]['p99'] <= group[key]['max'], group
assert sum(t['requests'] for t in one['tenants']) == len(lines)
assert one['all']['output_tokens'] == sum(int(line.split(',')[2]) for line in lines), one['all']
assert 0 < one['utilisation'] <= 1 and len(one['replicas']) == 1, one
assert abs(one['output_tokens_per_s'] * one['seconds'] / one['all']['output_tokens'] - 1) < 1e-9

# More replicas wait less; the same traffic is what --rate made.
four = result('--trace', trace, '--replicas', 4)
assert four['all']['ttft_ms']['p90'] <= one['all']['ttft_ms']['p90'], (four, one)
assert len(four['replicas']) == 4 and sum(r['requests'] for r in four['replicas']) == len(lines)
assert four['utilisation'] < one['utilisation']
for routing in ('round-robin', 'least-loaded', 'prefix'):
    assert result('--trace', trace, '--replicas', 2, '--routing', routing)['routing'] == routing
assert result('--rate', 2, '--duration', 20)['rate'] == 2
assert result('--rate', 2, '--duration', 20, '--seed', 1)['all'] != result('--rate', 2, '--duration', 20, '--seed', 2)['all']

# Sizes have the units of serve; prompts that are refused are not served.
small = result('--trace', trace, '--kv-cache-bytes', '64MiB')
assert small == result('--trace', trace, '--kv-cache-bytes', 64 << 20) and small['kv_blocks'] < one['kv_blocks'], small
assert one == result('--trace', trace, '--kv-cache-bytes', '2GiB')
full = result('--rate', 50, '--duration', 20, '--prompt-tokens', 100, '--max-waiting', 4)
assert full['all']['rejected'] > 0, full['all']
assert full['all']['prompt_tokens'] == 100 * full['all']['completed'], full['all']

# Capacity: what is found meets the objective, a little more does not.
slo = ['--slo', 'ttft=2s,itl=200ms', '--slo-target', '0.95']
traffic = ['--duration', 60, '--prompt-tokens', '64..256', '--output-tokens', '20..60']
found = result('--rate', 1, *traffic, *slo, '--find-rate')
rate = found['found_rate']
assert found['slo']['attainment'] >= 0.95 and abs(found['rate'] / rate - 1) < 1e-12, found
assert result('--rate', rate * 1.02, *traffic, *slo)['slo']['attainment'] < 0.95
assert 'capacity' in run('--cost', cost, '--rate', 1, *traffic, *slo, '--find-rate').stdout
many = result('--rate', rate * 3, *traffic, *slo, '--find-replicas')
replicas = many['found_replicas']
assert replicas > 1 and many['slo']['attainment'] >= 0.95, many
assert result('--rate', rate * 3, *traffic, *slo, '--replicas', replicas - 1)['slo']['attainment'] < 0.95
result('--rate', rate * 3, *traffic, *slo, '--find-replicas', '--max-replicas', 1, code=1)

# What an idle server cannot keep is said before any search, with what it gives.
traffic = ['--cost', cost, '--rate', 0.5, '--duration', 300, '--output-tokens', 4, '--prompt-tokens']
for search in ('--find-rate', '--find-replicas'):
    done = run(*traffic, '8..8000', '--slo', 'ttft=300ms,e2e=99s', '--slo-target', 0.95, search, '--json', code=1)
    idle = json.loads(done.stdout)['idle']
    assert 0 < idle['attainment'] < 0.95 and idle['requests'] == idle['completed'], idle
    assert json.loads(done.stdout)[search[2:].replace('find-', 'found_')] is None
    last = done.stderr.splitlines()[-1]
    assert last.startswith('quire: even an idle server misses --slo: of '), last
    for words in (f"{100 * idle['attainment']:.2f} % meet ttft=300ms,e2e=99s, wanted 95 %", '; time to first token p95 ',
                  '; end to end p95 '):
        assert words in last, (words, last)
    assert 'requests/s:' not in done.stderr and 'replica' not in done.stderr, done.stderr
lone = json.loads(run(*traffic, 64, '--slo', 'ttft=2s', '--find-rate', '--json').stdout)
assert lone['idle']['attainment'] == 1 and lone['idle']['ttft_ms']['max'] < 2000, lone['idle']
assert result('--rate', 1)['idle'] is None
for traffic in (['--trace', trace], ['--rate', 1, '--duration', 60]):  # a rate at which nothing arrives is no answer
    nothing = result(*traffic, '--slo', 'ttft=0.001ms', '--find-rate', code=1)
    assert nothing['found_rate'] is None and nothing['all']['requests'] > 0, nothing

# What is wrong is named: 64 for flags, 78 for files.
bad = work / 'bad.csv'
bad.write_text('time_s,prompt_tokens,output_tokens\n0,5,many\n')
assert f'{bad}:2: output_tokens: got \'many\'' in run('--cost', cost, '--trace', bad, code=78).stderr
assert 'not-there' in run('--cost', cost, '--trace', work / 'not-there', code=78).stderr
assert 'bad.csv' in run('--cost', bad, '--rate', 1, code=78).stderr
run('--cost', cost, '--rate', 1, '--plot', work / 'no' / 'plot.svg', code=78)
for flags, word in ((['--rate', 1, '--trace', trace], '--trace'), ([], '--trace'), (['--rate', 1, '--find-rate'], '--slo'),
                    (['--rate', 1, '--slo', 'ttft=fast'], '--slo'), (['--rate', 1, '--slo', 'x=1s'], '--slo'),
                    (['--rate', 1, '--tenants', 'a=0'], '--tenants'), (['--rate', 1, '--tenants', 'a=1,a=2'], '--tenants'),
                    (['--rate', 1, '--prompt-tokens', 'long'], '--prompt-tokens'), (['--rate', 1e6], 'more than'),
                    (['--rate', 1, '--kv-cache-bytes', 5], '--kv-cache-bytes'),
                    (['--rate', 1, '--kv-cache-bytes', '2GB'], "got '2GB', wanted bytes, or with KiB, MiB, GiB"),
                    (['--rate', 1, '--routing', 'far'], 'routing')):
    done = run('--cost', cost, *flags, code=78 if word == 'more than' else 64)
    assert word in done.stderr, (flags, done.stderr)
assert run('--help').stdout.startswith('Predicts latency')
print('ok')
