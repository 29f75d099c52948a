#!/usr/bin/env python3
"""Checks the size caps of CONTRIBUTING.md: a file <= 600 lines, the median <= 150, a C++ function <= 70 lines and
<= 5 parameters.

usage: check_sizes.py [--root DIR]
Functions are found by indentation as clang-format leaves it: a line that ends in '{' and opens a parameter list,
up to the closing brace in the same column. Lambdas and control statements are part of their function.
"""
import argparse
import pathlib
import re
import statistics
import sys

FILE_CAP, MEDIAN_CAP, FUNCTION_CAP, PARAMETER_CAP = 600, 150, 70, 5
SUFFIXES = ('.h', '.cc', '.rs', '.py', '.proto', '.sh')
CODE = ('proto', 'runtime', 'scheduler', 'server', 'tests', 'deploy')
NOT_A_FUNCTION = re.compile(r'^\s*(if|for|while|switch|else|do|catch|namespace|class|struct|enum|union|return|extern)\b')


def files(root):
    for top in CODE:
        for p in sorted((root / top).rglob('*')):
            if p.suffix in SUFFIXES and 'arch/bad' not in p.relative_to(root).as_posix() and p.is_file():
                yield p
    if (root / 'dev').is_file():
        yield root / 'dev'


def parameters(text):
    """Number of top-level commas in the outermost parameter list, plus one."""
    start = text.find('(')
    depth, angle, count, empty = 0, 0, 1, True
    for c in text[start:]:
        if c in '([{':
            depth += 1
        elif c in ')]}':
            depth -= 1
            if depth == 0:
                break
        elif depth == 1:
            angle += (c == '<') - (c == '>')
            if c == ',' and angle <= 0:
                count += 1
            elif not c.isspace():
                empty = False
        else:
            empty = False
    return 0 if empty else count


def functions(lines):
    """-> (first line, last line, signature) of each function definition at namespace or class level."""
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.rstrip().endswith('{') and not line.lstrip().startswith(('//', '#', '*', '}')):
            first = i
            while first > 0 and re.match(r'\s{4,}\S', lines[first]) and lines[first - 1].strip() and \
                    not lines[first - 1].rstrip().endswith((';', '}', '{', ':')) and \
                    not lines[first - 1].lstrip().startswith(('//', '#')):
                first -= 1
            signature = ' '.join(l.strip() for l in lines[first:i + 1])
            indent = len(lines[first]) - len(lines[first].lstrip())
            if '(' in signature and not NOT_A_FUNCTION.match(lines[first]) and '= {' not in signature \
                    and not re.search(r'=\s*\[', signature) and indent <= 2:
                last = next((j for j in range(i + 1, len(lines))
                             if lines[j].startswith(' ' * indent + '}')), len(lines) - 1)
                yield first, last, signature
                i = last
        i += 1


def check(root):
    errors, sizes = [], []
    for path in files(root):
        rel = path.relative_to(root).as_posix()
        lines = path.read_text(errors='replace').splitlines()
        if path.suffix in ('.h', '.cc', '.rs'):
            sizes.append(len(lines))
        if len(lines) > FILE_CAP:
            errors.append(f'{rel}: {len(lines)} lines, the cap is {FILE_CAP}')
        if path.suffix not in ('.h', '.cc'):
            continue
        for first, last, signature in functions(lines):
            if last - first + 1 > FUNCTION_CAP:
                errors.append(f'{rel}:{first + 1}: function of {last - first + 1} lines, the cap is {FUNCTION_CAP}')
            if not signature.startswith('TEST') and parameters(signature) > PARAMETER_CAP:
                errors.append(f'{rel}:{first + 1}: {parameters(signature)} parameters, the cap is {PARAMETER_CAP}')
    if sizes and statistics.median(sizes) > MEDIAN_CAP:
        errors.append(f'the median file has {statistics.median(sizes):.0f} lines, the cap is {MEDIAN_CAP}')
    return errors


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--root', type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    errors = check(ap.parse_args().root)
    print('\n'.join(errors) or 'all sizes are within the caps')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
