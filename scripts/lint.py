#!/usr/bin/env python3
"""What clippy and cargo-deny do not look at: where `unsafe` is, how long files are, what the documents name, how they
are wrapped."""

import pathlib
import re
import subprocess
import sys

LONGEST = 500
WIDEST = 100
MAY_BE_UNSAFE = "crates/holm-sys/"
ROOT = pathlib.Path(__file__).resolve().parent.parent
problems: list[str] = []


def listed(*patterns: str) -> list[pathlib.Path]:
    """The files of the repository, and those about to be added."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z", *patterns], cwd=ROOT, check=True, capture_output=True
    )
    return [ROOT / name for name in names.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def without_comments(text: str) -> str:
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    return re.sub(r"//.*", "", text)


def check_unsafe(path: pathlib.Path, text: str) -> None:
    name = str(path.relative_to(ROOT))
    if name.startswith(MAY_BE_UNSAFE):
        return
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        if re.search(r"\bunsafe\b", line):
            problems.append(f"{name}:{number}: unsafe belongs in {MAY_BE_UNSAFE}")


def check_length(path: pathlib.Path, text: str) -> None:
    lines = text.count("\n")
    if lines > LONGEST:
        problems.append(f"{path.relative_to(ROOT)}: {lines} lines, more than {LONGEST}: split it")


def anchors(text: str) -> set[str]:
    """What the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links() -> None:
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
            # Reports are written by `make bench`.
            if not target.startswith(("http", "docs/benchmarks/")) and not (path.parent / target).exists():
                problems.append(f"{path.relative_to(ROOT)}: there is no {target}")
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", path.read_text()):
            page = path.parent / target if target else path
            if page.exists() and anchor not in anchors(page.read_text()):
                problems.append(f"{path.relative_to(ROOT)}: {page.name} has no #{anchor}")


def check_promises() -> None:
    """Each integration test that PROMISES.md names is there; `topic::*` wants one of that topic."""
    topics = ROOT / "tests/src/topics"
    tests = set()
    for path in topics.rglob("*.rs"):
        parts = [part for part in path.relative_to(topics).with_suffix("").parts if part != "mod"]
        tests |= {"::".join([*parts, name]) for name in re.findall(r"test!\((\w+)\)", path.read_text())}
    for name in re.findall(r"`(\w+(?:::\w+)+(?:::\*)?)`", (ROOT / "PROMISES.md").read_text()):
        begin = name.removesuffix("*")
        if name not in tests and not (name.endswith("*") and any(test.startswith(begin) for test in tests)):
            problems.append(f"PROMISES.md: there is no test {name}")


def check_prose(path: pathlib.Path) -> None:
    """Prose is wrapped; tables, code and the targets of links are as long as they must be."""
    in_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        shown = re.sub(r"\]\([^)]*\)", "]", line)
        if len(shown) > WIDEST and not in_code and not line.startswith("|"):
            problems.append(f"{path.relative_to(ROOT)}:{number}: {len(shown)} columns, more than {WIDEST}: wrap it")


def check_comments(path: pathlib.Path, text: str) -> None:
    """Comments are wrapped like prose; rustfmt does it only on nightly."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDEST and line.lstrip().startswith(("// ", "/// ", "//! ", "# ")):
            problems.append(f"{path.relative_to(ROOT)}:{number}: a comment of {len(line)} columns: wrap it at {WIDEST}")


def main() -> int:
    check_links()
    check_promises()
    for path in listed("*.rs"):
        check_unsafe(path, path.read_text())
    for path in listed("*.rs", "*.py", "scripts", "tests/vm", ".ci", "Makefile"):
        check_length(path, path.read_text())
        check_comments(path, path.read_text())
    for path in listed("*.md"):
        # Reports are written by `make bench`.
        if path.parent != ROOT / "docs/benchmarks":
            check_prose(path)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
