"""Find words that the project doesn't use: `python -m tests.words [PATH ...]`; exit status 1 when one was found.

Each pattern has the word to use instead. Python files are read for their strings, docstrings, comments and names; SQL,
YAML, TOML, shell and Markdown files as a whole.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]

WORDS: Final = {
    r"mend(s|ed|ing)?": "fix",
    r"anew": "again, or recreated",
    r"made anew": "recreated",
    r"stands? in": "is in",
    r"(goes|go|went|gone) on": "continue",
    r"nobody('s)?|somebody|whoever|whomever": "name the actor",
    r"(is|are|was|were|be|been) told": "is given, is notified, is logged",
    r"beside": "alongside, instead of, or compared with",
    r"but for": "except",
    r"which see": "see",
    r"for ever": "indefinitely",
    r"set aside|sets aside|setting aside": "unsendable (rows), quarantined (records)",
    r"kept back|keeps? back": "buffered",
    r"broken off": "interrupted",
    r"left behind": "abandoned",
    r"left out": "skipped",
    r"takes? note": "note",
    r"time-outs?": "timeout",
    r"set-up": "setup",
    r"look-ahead": "prefetch",
    r"first window": "assignment warm-up",
    r"time rules": "timing settings",
    r"older dialect": "legacy format",
    r"publish(es|ed)? again": "redeliver or redrive",
    r"stands? still|standstill": "is blocked, is stalled",
    r"so many|so much": "a number, or as many",
    r"it doesn't tell|doesn't tell|can't be told|tells?": "report, say which",
    r"hands full|in hand": "in flight",
    r"reigns?": "leads",
    r"a (record|partition|batch|call|second|transaction|sweep|chunk|row) each": "one per",
}
_PATTERN: Final = re.compile(r"(?<![\w-])(" + "|".join(f"(?:{word})" for word in WORDS) + r")(?![\w-])", re.IGNORECASE)
WHOLE: Final = {".sql", ".yml", ".yaml", ".toml", ".md", ".sh"}


class Found(NamedTuple):
    """A word that is not used here."""

    path: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}, better: {self.instead}"


def words_in(path: Path) -> Iterator[Found]:
    """Find the words in one file.

    Args:
        path: of a file; other kinds than those of the module's docstring have none.

    Returns:
        Each place, in the order of the file.
    """
    if path.suffix != ".py" and path.suffix not in WHOLE:
        return
    lines = _python_text(path) if path.suffix == ".py" else enumerate(path.read_text("utf-8").splitlines(), 1)
    for number, text in lines:
        for match in _PATTERN.finditer(text):
            yield Found(path, number, match[0], _instead(match[0]))


def files_of(paths: Sequence[str]) -> Iterator[Path]:
    """Return the files below paths that git knows, without this one and without what others wrote."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--error-unmatch", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and path != Path(__file__) and "requirements" not in path.name:
            yield path


def _python_text(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            for offset, text in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, text
        elif token.type == tokenize.NAME and "_" in token.string:
            yield token.start[0], token.string.replace("_", " ")


def _instead(word: str) -> str:
    return next(instead for pattern, instead in WORDS.items() if re.fullmatch(pattern, word, re.IGNORECASE))


def main(paths: Sequence[str]) -> int:
    """Print the places below ``paths`` (all of the project without); return the exit status."""
    found = [place for path in files_of(paths) for place in words_in(path)]
    for place in found:
        print(place)
    print(f"{len(found)} words in {len({place.path for place in found})} files", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
