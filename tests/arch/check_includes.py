#!/usr/bin/env python3
"""Checks who includes whom against tests/arch/edges.txt.

usage: check_includes.py [--root DIR] [--edges FILE]
Fails on: an include that no row grants, a row entry that nobody uses, a cycle between rooms, an include path that
does not start at the root, a library header outside its rooms, a quire_library dependency that its row does not name.
"""
import argparse
import fnmatch
import itertools
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TOPS = ('proto/', 'runtime/', 'scheduler/', 'server/', 'tests/')
ALWAYS = ('absl/',)


def expand(entry):
    """a/{x,y}.h -> a/x.h a/y.h"""
    parts = re.split(r'\{([^}]*)\}', entry)
    choices = [p.split(',') if i % 2 else [p] for i, p in enumerate(parts)]
    return [''.join(c) for c in itertools.product(*choices)]


def read_edges(path):
    """-> ({room: [granted]}, [(patterns, [rooms])])"""
    rooms, libs = {}, []
    for line in path.read_text().splitlines():
        line = line.split('#')[0].strip()
        if not line:
            continue
        left, right = line.split(':', 1)
        granted = [g for e in right.split() if e != '-' for g in expand(e)]
        if left.startswith('lib '):
            libs.append((left[4:].split(), granted))
        else:
            rooms[left.strip()] = granted
    return rooms, libs


def room_of(path, rooms):
    return max((r for r in rooms if path == r or path.startswith(r + '/')), key=len, default=None)


def covers(grant, target, target_room):
    return grant == target or grant == target_room


def sources(root):
    for top in TOPS:
        for p in sorted((root / top).rglob('*')):
            if p.suffix in ('.h', '.cc') and 'arch/bad' not in p.relative_to(root).as_posix():
                yield p


class Checker:
    def __init__(self, root, edges):
        self.root, self.errors, self.used = root, [], set()
        self.rooms, self.libs = read_edges(edges)
        self.graph = {}

    def fail(self, where, text):
        self.errors.append(f'{where}: {text}')

    def check_library(self, where, room, header):
        for patterns, granted in self.libs:
            if any(fnmatch.fnmatch(header, p) for p in patterns):
                top = room.split('/')[0]
                hits = [g for g in granted if g in (room, top) or room.startswith(g + '/')]
                if not hits and top != 'tests':  # tests may use any library
                    self.fail(where, f'<{header}> belongs to {", ".join(granted)}: move the code there, '
                                     f'or add {room} to its lib row with the reason')
                self.used.update((patterns[0], g) for g in hits)
                return

    def check_own(self, where, room, path):
        target_room = room_of(path, self.rooms)
        if room.startswith('tests'):
            other = target_room or path
            if path.startswith('tests/') and not path.startswith('tests/testing/') \
                    and pathlib.PurePath(path).parent != pathlib.PurePath(where.split(':')[0]).parent:
                self.fail(where, f'a test includes "{path}": of other test folders only tests/testing is shared')
            return
        if target_room is None:
            self.fail(where, f'"{path}" is in no room of the edge table')
        elif target_room != room:
            grants = [g for g in self.rooms[room] if covers(g, path, target_room)]
            if not grants:
                self.fail(where, f'edge {room} -> {path} is not in tests/arch/edges.txt: move the code, '
                                 'or add the row with its reason')
            self.used.update((room, g) for g in grants)
            if not any(g == path for g in grants):
                self.graph.setdefault(room, set()).add(target_room)

    def check_file(self, path):
        rel = path.relative_to(self.root).as_posix()
        room = 'tests' if rel.startswith('tests/') else room_of(rel, self.rooms)
        if room is None:
            self.fail(rel, 'is in no room of the edge table')
            return
        for number, line in enumerate(path.read_text(errors='replace').splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            kind, header = match.groups()
            where = f'{rel}:{number}'
            generated = header.endswith('.pb.h') and header.startswith('quire/') or header.endswith('.grpc.pb.h')
            if header.startswith('.'):
                self.fail(where, f'"{header}" does not start at the root of the repository')
            elif kind == '<' or generated or not (self.root / header).exists() and not header.startswith(TOPS):
                if kind == '"' and not generated and not header.startswith(ALWAYS) \
                        and not any(fnmatch.fnmatch(header, p) for ps, _ in self.libs for p in ps):
                    self.fail(where, f'"{header}" is neither a file of ours nor a library of the table')
                self.check_library(where, room, header)
            else:
                self.check_own(where, room, header)

    def check_deps(self):
        for path in sorted(self.root.rglob('CMakeLists.txt')):
            rel = path.relative_to(self.root).as_posix()
            if not rel.startswith(TOPS) or rel.startswith('tests/'):
                continue
            for room, body in re.findall(r'quire_library\(\s*([\w/]+)([^)]*)\)', path.read_text()):
                match = re.search(r'\bDEPS\s+(.*?)(\bLIBS\b|\bSRCS\b|$)', body, re.S)
                for dep in (match.group(1).split() if match else []):
                    grants = self.rooms.get(room, [])
                    if not any(g == dep or g.startswith(dep + '/') for g in grants):
                        self.fail(rel, f'{room} links {dep}, which its row does not name')

    def check_cycles(self):
        done, path = set(), []

        def visit(room):
            if room in path:
                self.fail('edges', 'cycle: ' + ' -> '.join(path[path.index(room):] + [room]))
                return
            if room in done:
                return
            path.append(room)
            for nxt in sorted(self.graph.get(room, ())):
                visit(nxt)
            path.pop()
            done.add(room)

        for room in sorted(self.graph):
            visit(room)

    def check_unused(self):
        for room, granted in self.rooms.items():
            for g in granted:
                if (room, g) not in self.used:
                    self.fail('tests/arch/edges.txt', f'{room} is granted {g}, which nobody uses: remove the entry')

    def run(self):
        for path in sources(self.root):
            self.check_file(path)
        self.check_deps()
        self.check_cycles()
        self.check_unused()
        return self.errors


def main():
    here = pathlib.Path(__file__).resolve()
    ap = argparse.ArgumentParser()
    ap.add_argument('--root', type=pathlib.Path, default=here.parents[2])
    ap.add_argument('--edges', type=pathlib.Path)
    args = ap.parse_args()
    errors = Checker(args.root, args.edges or args.root / 'tests/arch/edges.txt').run()
    print('\n'.join(errors) or 'includes agree with the edge table')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
