#!/usr/bin/env python3
"""Holds the imports of the code against the picture of rooms and floors in docs/architecture.md.

A room is a module directly below crates/holm/src. The picture lists them floor by floor, from the top; an import may
only lead to a room on a lower floor. In no crate may files import each other in a circle. Code that only tests
compile is not looked at.

usage: scripts/architecture.py [--print]     --print shows every arrow between rooms, and the names it carries
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINE = "holm"
PICTURE = ROOT / "docs/architecture.md"
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/src"))


def floors() -> list[list[str]]:
    """The rooms of each floor, from the top."""
    block = re.search(r"```floors\n(.*?)```", PICTURE.read_text(), re.S)
    if not block:
        sys.exit(f"{PICTURE.relative_to(ROOT)}: there is no block ```floors")
    lines = [line.split("│")[0].split() for line in block[1].splitlines()]
    return [rooms for rooms in lines if rooms]


def without_comments_and_strings(text: str) -> str:
    pattern = r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\'\\])\''
    return re.sub(pattern, lambda found: '""' if found[0][0] != "/" else "", text, flags=re.S)


def without_tests(text: str) -> str:
    """The text without items that only tests compile."""
    while found := re.search(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*", text):
        end = found.end()
        depth = 0
        while end < len(text):
            if text[end] == "{":
                depth += 1
            elif text[end] == "}":
                depth -= 1
                if depth == 0:
                    break
            elif text[end] == ";" and depth == 0:
                break
            end += 1
        text = text[: found.start()] + text[end + 1 :]
    return text


def use_paths(tree: str) -> list[list[str]]:
    """The paths of a use tree: `a::{b, c::d as e}` gives a::b and a::c::d."""
    tree = tree.strip()
    if (brace := tree.find("{")) < 0:
        path = re.sub(r"\s+as\s+\w+$", "", tree)
        return [[part.strip() for part in path.split("::")]]
    head = [part.strip() for part in tree[:brace].split("::") if part.strip()]
    inner, depth, start, paths = tree[brace + 1 : tree.rindex("}")], 0, 0, []
    for index, letter in enumerate(inner + ","):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if inner[start:index].strip():
                paths += [head + path for path in use_paths(inner[start:index])]
            start = index + 1
    return paths


class Source:
    """A file, as the module that it is."""

    def __init__(self, crate: pathlib.Path, path: pathlib.Path) -> None:
        self.path = path
        parts = list(path.relative_to(crate / "src").with_suffix("").parts)
        if parts[-1] in ("mod", "lib", "main"):
            parts.pop()
        self.module = tuple(parts)
        text = without_tests(without_comments_and_strings(path.read_text()))
        statement = r"(?:^|\n)\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);"
        self.uses = [(bool(found[1]), path) for found in re.finditer(statement, text) for path in use_paths(found[2])]
        self.body = re.sub(rf"{statement}|\bmod\s+\w+;", "\n", text)
        self.inline = [found.split("::") for found in re.findall(r"\b(?:crate|super|self)(?:::\w+)+", self.body)]
        # `error::in_one_line` in a mod.rs, or of a module that was imported.
        self.relative = [found.split("::") for found in re.findall(r"(?<![\w:])[a-z_]\w*(?:::\w+)+", self.body)]


class Crate:
    """The files of a crate and which of them each imports from."""

    def __init__(self, path: pathlib.Path) -> None:
        files = [file for file in sorted(path.glob("src/**/*.rs")) if not is_test(file)]
        sources = [Source(path, file) for file in files]
        self.name = path.name
        self.sources = {source.module: source for source in sources}
        self.exports = {
            source.module: {used[-1]: used for public, used in source.uses if public} for source in sources
        }
        self.arrows: dict[tuple, dict[tuple, set[str]]] = collections.defaultdict(lambda: collections.defaultdict(set))
        for source in sources:
            for target, name in self.targets(source):
                if target != source.module:
                    self.arrows[source.module][target].add(name)

    def targets(self, source: Source):
        # What a module only passes on, others import from where it is defined.
        taken = [path for public, path in source.uses if not public or self.names_in_body(source, path[-1])]
        for path in taken + source.inline:
            if found := self.resolve(source.module, path):
                yield found
        imported = {path[-1]: path for _, path in source.uses}
        for path in source.relative:
            base = imported.get(path[0])
            if base and (found := self.resolve(source.module, base + path[1:])):
                yield found
            elif not base and (*source.module, path[0]) in self.sources:
                if found := self.resolve(source.module, ["self", *path]):
                    yield found

    @staticmethod
    def names_in_body(source: Source, name: str) -> bool:
        return re.search(rf"\b{re.escape(name)}\b", source.body) is not None

    def resolve(self, module: tuple, path: list[str], depth: int = 0):
        """The module in which the item at a path, as `module` writes it, is defined; and the item's name."""
        at, rest = list(module), list(path)
        if rest[0] == "crate":
            at, rest = [], rest[1:]
        elif rest[0] in ("self", "super"):
            while rest and rest[0] in ("self", "super"):
                if rest[0] == "super":
                    if not at:
                        return None
                    at.pop()
                rest = rest[1:]
        elif (*at, rest[0]) not in self.sources:
            return None
        while rest and (*at, rest[0]) in self.sources:
            at.append(rest.pop(0))
        if tuple(at) not in self.sources:
            return None
        name = rest[0] if rest else "self"
        exported = self.exports[tuple(at)].get(name)
        if exported and depth < 8 and exported[-1] == name:
            return self.resolve(tuple(at), exported, depth + 1) or (tuple(at), name)
        return tuple(at), name

    def circles(self) -> list[list[tuple]]:
        """Strongly connected files, more than one each (Tarjan 1972)."""
        index: dict[tuple, int] = {}
        low: dict[tuple, int] = {}
        stack: list[tuple] = []
        found: list[list[tuple]] = []

        def visit(node: tuple) -> None:
            index[node] = low[node] = len(index)
            stack.append(node)
            for other in self.arrows[node]:
                if other not in index:
                    visit(other)
                    low[node] = min(low[node], low[other])
                elif other in stack:
                    low[node] = min(low[node], index[other])
            if low[node] == index[node]:
                circle = []
                while True:
                    circle.append(stack.pop())
                    if circle[-1] == node:
                        break
                if len(circle) > 1:
                    found.append(sorted(circle))

        for node in self.sources:
            if node not in index:
                visit(node)
        return found

    def file(self, module: tuple) -> str:
        return str(self.sources[module].path.relative_to(ROOT))


def is_test(path: pathlib.Path) -> bool:
    return "tests" in path.parts or path.stem == "tests" or path.stem.endswith("_tests")


def rooms_problems(engine: Crate, plan: list[list[str]]) -> list[str]:
    floor = {room: number for number, rooms in enumerate(plan) for room in rooms}
    problems = []
    there = {module[0] for module in engine.sources if module}
    for room in sorted(there ^ set(floor)):
        where = "in the code, not in the picture" if room in there else "in the picture, not in the code"
        problems.append(f"{PICTURE.relative_to(ROOT)}: room {room} is {where}")
    for module, targets in engine.arrows.items():
        for target, names in targets.items():
            if not module or not target or module[0] == target[0]:
                continue
            above, below = module[0], target[0]
            if above in floor and below in floor and floor[above] >= floor[below]:
                problems.append(
                    f"{engine.file(module)}: {above} stands on no higher floor than {below}, from which it imports "
                    f"{', '.join(sorted(names))}"
                )
    return problems


def circle_problems(crate: Crate) -> list[str]:
    problems = []
    for circle in crate.circles():
        files = [crate.file(module) for module in circle]
        ties = [
            f"\n    {crate.file(module)} -> {crate.file(target)}: {', '.join(sorted(names))}"
            for module in circle
            for target, names in crate.arrows[module].items()
            if target in circle
        ]
        problems.append(f"{crate.name}: {len(files)} files import each other in a circle:" + "".join(ties))
    return problems


def main() -> int:
    crates = [Crate(path) for path in CRATES]
    engine = next(crate for crate in crates if crate.name == ENGINE)
    if "--print" in sys.argv:
        arrows = collections.defaultdict(set)
        for module, targets in engine.arrows.items():
            for target, names in targets.items():
                if module and target and module[0] != target[0]:
                    arrows[module[0], target[0]] |= names
        for (room, other), names in sorted(arrows.items()):
            print(f"{room} -> {other}: {', '.join(sorted(names))}")
        return 0
    problems = rooms_problems(engine, floors())
    for crate in crates:
        problems += circle_problems(crate)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
