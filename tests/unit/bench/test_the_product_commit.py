"""A measurement belongs to the state of the product that it was made on; words and tests don't change that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.harness.commit import UNKNOWN, product_commit


def git(repository: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=repository, check=True, capture_output=True)


def write(repository: Path, name: str, text: str) -> None:
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def commit(repository: Path, name: str, text: str) -> None:
    write(repository, name, text)
    git(repository, "add", "--force", name)
    git(repository, "commit", "--quiet", "--message", name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "processor/poll_loop.py", "1")
    return tmp_path


UNMEASURED = [
    "docs/decisions/0001.md",
    "docs/picture.svg",
    "README.md",
    "bench/RESULTS.md",
    "bench/rounds.jsonl",
    "bench/plots/a.svg",
]


@pytest.mark.parametrize("name", [*UNMEASURED, "tests/unit/test_x.py"])
def test_words_tests_and_results_leave_it_as_it_is(repository: Path, name: str) -> None:
    before = product_commit(repository)
    write(repository, name, "not committed")
    assert product_commit(repository) == before
    commit(repository, name, "committed")
    assert product_commit(repository) == before
    write(repository, name, "changed")
    assert product_commit(repository) == before


@pytest.mark.parametrize(
    "name", ["processor/poll_loop.py", "bench/bare_loop.py", "bench/rows/row_2.py", "pyproject.toml"]
)
def test_everything_else_changes_it(repository: Path, name: str) -> None:
    before = product_commit(repository)
    commit(repository, name, "2")
    after = product_commit(repository)
    assert after != before
    assert "dirty" not in after


def test_a_tree_with_changes_is_dirty_and_no_two_such_trees_are_the_same(repository: Path) -> None:
    clean = product_commit(repository)
    write(repository, "processor/poll_loop.py", "2")
    second = product_commit(repository)
    write(repository, "processor/poll_loop.py", "3")
    third = product_commit(repository)
    write(repository, "processor/new.py", "")
    fourth = product_commit(repository)
    write(repository, "processor/new.py", "4")
    fifth = product_commit(repository)
    assert all(name.startswith(f"{clean}-dirty-") for name in (second, third, fourth, fifth))
    assert len({clean, second, third, fourth, fifth}) == 5
    git(repository, "checkout", "--quiet", "processor/poll_loop.py")
    (repository / "processor" / "new.py").unlink()
    assert product_commit(repository) == clean


@pytest.mark.parametrize("name", ["chaos.log", "notes.py", "bench/round.out", "processor/pump.log", "scratch/a.py"])
def test_what_a_session_left_behind_is_not_looked_at(repository: Path, name: str) -> None:
    before = product_commit(repository)
    write(repository, name, "left behind")
    assert product_commit(repository) == before


def test_what_git_ignores_is_not_looked_at(repository: Path) -> None:
    commit(repository, ".gitignore", "/.waitreg/\n")
    before = product_commit(repository)
    write(repository, ".waitreg/bench/scratch", "x")
    assert product_commit(repository) == before


def test_without_git_it_is_unknown(tmp_path: Path) -> None:
    assert product_commit(tmp_path) == UNKNOWN
