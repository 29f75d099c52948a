#!/usr/bin/env python3
"""Runs both checkers on the planted violations in bad/: each line of a case's expect.txt must be reported."""
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
failed, cases = 0, sorted(p for p in (here / 'bad').iterdir() if p.is_dir())
for case in cases:
    checker = 'check_sizes.py' if case.name == 'size' else 'check_includes.py'
    run = subprocess.run([sys.executable, here / checker, '--root', case], capture_output=True, text=True)
    missing = [l for l in (case / 'expect.txt').read_text().splitlines() if l not in run.stdout]
    if run.returncode != 1 or missing:
        failed += 1
        print(f'{case.name}: exit {run.returncode}, not reported: {missing}\n{run.stdout}{run.stderr}')
print(f'{len(cases) - failed} of {len(cases)} planted violations are reported')
sys.exit(1 if failed or not cases else 0)
