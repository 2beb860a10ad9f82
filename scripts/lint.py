#!/usr/bin/env python3
"""What clippy does not look at: where `unsafe` is, how long files are, unused dependencies, licences, what the documents name."""

import json
import pathlib
import re
import subprocess
import sys

LONGEST = 500
# tests.rs holds tables of cases beside a module.
MAY_BE_LONG = {"tests.rs"}
MAY_BE_UNSAFE = "crates/holm-sys/"
# Licences that a dependency may have, so that Holm can be given away under Apache-2.0.
LICENCES = {
    "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib",
    "Unicode-3.0", "Unlicense", "0BSD", "CC0-1.0", "BSL-1.0",
}

ROOT = pathlib.Path(__file__).resolve().parent.parent
problems: list[str] = []


def sources() -> list[pathlib.Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z", "*.rs"], cwd=ROOT, check=True, capture_output=True
    )
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


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
    if lines > LONGEST and path.name not in MAY_BE_LONG:
        problems.append(f"{path.relative_to(ROOT)}: {lines} lines, more than {LONGEST}: split it")


def check_dependencies(package: dict) -> None:
    """A dependency whose name stands nowhere in the crate's sources is not used."""
    folder = pathlib.Path(package["manifest_path"]).parent
    text = "\n".join(p.read_text() for p in folder.rglob("*.rs") if "target" not in p.parts)
    for dependency in package["dependencies"]:
        word = (dependency["rename"] or dependency["name"]).replace("-", "_")
        if not re.search(rf"\b{word}\b", text):
            problems.append(f"{package['name']}: dependency {dependency['name']} is not used")


def licence_is_allowed(expression: str) -> bool:
    """Understands SPDX: any side of an OR will do, every side of an AND must be allowed."""
    flat = expression.replace("/", " OR ").replace("(", " ").replace(")", " ")
    return any(
        all(part.strip() in LICENCES for part in re.split(r"\bAND\b", choice)) for choice in re.split(r"\bOR\b", flat)
    ) or all(  # (A OR B) AND C, flattened
        any(alternative.strip() in LICENCES for alternative in re.split(r"\bOR\b", part))
        for part in re.split(r"\bAND\b", flat)
    )


def check_licence(package: dict) -> None:
    expression = package["license"] or "none stated"
    if not licence_is_allowed(expression):
        problems.append(f"{package['name']} {package['version']}: licence {expression} is not on the list")


def check_links() -> None:
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
            # Reports are written by `make bench`.
            if not target.startswith(("http", "docs/benchmarks/")) and not (path.parent / target).exists():
                problems.append(f"{path.relative_to(ROOT)}: there is no {target}")


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


def main() -> int:
    check_links()
    check_promises()
    for path in sources():
        text = path.read_text()
        check_unsafe(path, text)
        check_length(path, text)
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--locked"], cwd=ROOT, check=True, capture_output=True
        ).stdout
    )
    members = set(metadata["workspace_members"])
    for package in metadata["packages"]:
        if package["id"] in members:
            check_dependencies(package)
        else:
            check_licence(package)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
