"""Mutants change one thing each, can be compiled, and have keys that do not depend on the rest of the file."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.__main__ import CHECKOUT, DEFAULT_PACKAGES, all_mutants, equivalents, package_of
from tests.mutation.mutants import mutants_of


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("x = a < b", ["x = (a <= b)"]),
        ("x = größe + b", ["x = (größe - b)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = not a", ["x = (a)"]),
        ("x = 3", ["x = 4"]),
        ("x = True", ["x = False"]),
        ("x = a if b else c", ["x = (c if b else a)"]),
        ("if a:\n    f()", ["if (not (a)):\n    f()", "if a:\n    pass"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("def f():\n    raise a", ["def f():\n    pass"]),
        ("for a in b:\n    break", ["for a in b:\n    continue"]),
        ("a += b", ["pass"]),
        ("def f(a: Literal[1]) -> Literal[2]:\n    '''1 + 1'''", []),
        ("if TYPE_CHECKING:\n    a = 1", []),
        ("__all__ = [1]", []),
        ("x: Literal[1]\nx = f'{a + b}'", []),
    ],
)
def test_each_kind_of_mutation(source: str, changed: list[str]) -> None:
    text = source.encode()
    assert [mutant.apply(text).decode() for mutant in mutants_of("a.py", text)] == changed


def test_a_key_does_not_depend_on_the_line() -> None:
    first = mutants_of("a.py", b"def f():\n    return a + 1\n")
    second = mutants_of("a.py", b"import x\n\n\ndef f():\n    return a + 1\n")
    assert [mutant.key for mutant in first] == [mutant.key for mutant in second]
    twice = mutants_of("a.py", b"def f():\n    g(1)\n    g(1)\n")
    assert len({mutant.key for mutant in twice}) == len(twice) == 4


def test_mutants_of_the_sources_are_distinct_and_can_be_compiled() -> None:
    mutants = all_mutants(["ngff"])
    assert len({mutant.key for mutant in mutants}) == len(mutants) > 100
    for mutant in mutants[::50]:
        ast.parse(mutant.apply((CHECKOUT / mutant.path).read_bytes()))


def test_listed_equivalent_mutants_exist() -> None:
    listed = equivalents()
    if listed:
        assert listed.keys() <= {mutant.key for mutant in all_mutants(DEFAULT_PACKAGES)}


def test_a_file_belongs_to_the_innermost_package() -> None:
    assert package_of("zarrfs/engine/stores/zip.py") == "stores"
    assert package_of("zarrfs/engine/array.py") == "engine"
    assert package_of("viewer/zarrfs_viewer/state/view_state.py") == "viewer"
    assert package_of("viewer/zarrfs_viewer/qt/canvas/canvas.py") is None
