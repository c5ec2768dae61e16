"""No regular expression and no function that makes text safe needs more than linear time for hostile text.

The expressions are found in the source. Each is applied, in the ways in which it is used, to long texts that
repeat what its parts match and end with a character that they do not match. The limit is a processor time that a linear
expression does not reach by far; one that is not linear needs hours.
"""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import pytest

from zarrfs.credentials import hide_credentials
from zarrfs.engine.json_checks import describe_json
from zarrfs.errors import ZarrError
from zarrfs.text import MAX_MESSAGE, safe_text, short_repr

ROOT = Path(__file__).resolve().parent.parent

LENGTH = 10**6

EXPRESSION_LENGTH = 250_000
"""The length of the texts for expressions. 900 texts are tried."""

MAX_CPU_SECONDS = 5.0
"""Processor time of one expression and one text. A linear expression needs a few hundredths of a second, a quadratic
one minutes."""

METHODS = ("search", "match", "fullmatch", "sub", "split", "findall", "finditer")

COMPOSED: dict[str, str | None] = {
    "zarrfs/plugins.py": r"\bextra\s*==\s*['\"]x['\"]",
    "zarrfs/engine/formats/repeated_objects.py": r"\{\"a\":\ 1\}",
    "zarrfs/files/tiff/planes_view.py": r"z([0-9]{3})_t([0-9]{2})\.png",
    "zarrfs/files/stacks/names.py": None,  # given by the user, for names of files
    "zarrfs/tools/zarr2_copies.py": None,  # given by the caller
}
"""An example of the expression that a function of a module composes."""


class Expression(NamedTuple):
    """A regular expression, where it is, and the method of ``re`` with which it is used."""

    module: str
    pattern: str | bytes
    flags: int
    method: str


class _NotLinearError(BaseException):
    """The processor time is used up. Not an Exception, so that no code under test handles it."""


@cache
def expressions() -> list[Expression]:
    """Return the expressions of all modules with each method that is called."""
    calls: list[tuple[str, ast.Call, str]] = []
    methods: dict[str, set[str]] = {}
    for path in sorted([*ROOT.glob("zarrfs/**/*.py"), *ROOT.glob("viewer/zarrfs_viewer/**/*.py")]):
        module, text = str(path.relative_to(ROOT)), path.read_text()
        if not any(f".{method}(" in text for method in ("compile", *METHODS)):
            continue
        names = {}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign):
                names[node.value] = _last_name(node.targets[0])
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner, method = _last_name(node.func.value), node.func.attr
                if owner == "re" and method in ("compile", *METHODS):
                    calls.append((module, node, names.get(node, "")))
                elif method in METHODS:
                    methods.setdefault(owner, set()).add(method)
    found = []
    for module, call, name in calls:
        resolved = _resolve(module, call)
        if resolved is not None:
            method = _last_name(call.func)
            used = methods.get(name, {"search"}) if method == "compile" else {method}
            found += [Expression(module, *resolved, method) for method in sorted(used)]
    return found


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _resolve(module: str, call: ast.Call) -> tuple[str | bytes, int] | None:
    """Return the pattern and the flags of a call of ``re``, or None if its pattern comes from a caller."""
    name = module.removesuffix(".py").replace("viewer/", "", 1).replace("/", ".")
    scope: dict[str, Any] = {"re": re}
    arguments = call.args[-1:] if len(call.args) > 1 else []
    flags = [part for part in (*arguments, *(k.value for k in call.keywords)) if "re." in ast.unparse(part)]
    flag_bits = int(eval(" | ".join(map(ast.unparse, flags)) or "0", scope))
    try:
        return eval(ast.unparse(call.args[0]), scope), flag_bits
    except NameError:
        pass
    try:
        # Modules whose expressions are literal are not imported: those of the viewer import Qt.
        return eval(ast.unparse(call.args[0]), scope | vars(import_module(name))), flag_bits
    except NameError:
        example = COMPOSED[module]
        return None if example is None else (example, flag_bits)


# -- hostile texts ---------------------------------------------------------------------------------------------

CHARACTERS = "a1 .-_/:\"'\\,=@~#?[]{}<>+Aexn\n\t"
"""Characters that are tried for each part of an expression, besides those that it contains."""


class Texts:
    """The hostile texts of an expression."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._flags = flags
        self._literals = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
        self._is_bytes = isinstance(pattern, bytes)
        self._units: set[tuple[str, str]] = set()
        expression = parser.parse(pattern, flags)
        whole = self._sample(expression)
        self._units.add(("", whole))
        self._alphabet = "".join(sorted({*whole, *self._literals, "a", "1", " "}))
        self._visit(expression, "")

    def all(self) -> list[str | bytes]:
        """Return texts that begin with what precedes a repetition, or not, and repeat what the repetition matches, or
        what precedes it. Each ends with a character that most parts do not match.
        """
        texts = sorted(
            (start + unit * (EXPRESSION_LENGTH // len(unit)))[:EXPRESSION_LENGTH] + "\0"
            for start, unit in self._units
            if unit
        )
        return [text.encode("latin-1") if self._is_bytes else text for text in texts]

    def _visit(self, expression: Any, before: str) -> None:
        for index, (kind, value) in enumerate(expression):
            prefix = before + self._sample(expression[:index])
            for inner in _parts(kind, value):
                if _is_repetition(kind) and value[1] > MAX_COUNT:
                    bodies = {self._sample(inner), *(c for c in self._alphabet if self._accepts(inner, c))}
                    self._units |= {(start, body) for body in bodies for start in ("", prefix)}
                    self._units.add(("", prefix))
                self._visit(inner, prefix)

    def _sample(self, expression: Any) -> str:
        """Return a text that the expression matches, as far as this does not depend on assertions."""
        text = ""
        for index, (kind, value) in enumerate(expression):
            inner = _parts(kind, value)
            if inner:
                text += self._sample(inner[0]) * (min(value[0], MAX_COUNT) if _is_repetition(kind) else 1)
            else:
                part = expression[index : index + 1]
                text += next((c for c in CHARACTERS + self._literals if self._accepts(part, c)), "")
        return text

    def _accepts(self, expression: Any, char: str) -> bool:
        try:
            pattern = compiler.compile(expression, self._flags)
        except (re.error, IndexError):  # it refers to a group that is outside of it
            return False
        return pattern.fullmatch(char.encode("latin-1") if self._is_bytes else char) is not None


MAX_COUNT = 64
"""Repetitions of at most this number are not made long."""


def _is_repetition(kind: Any) -> bool:
    return str(kind).endswith("_REPEAT")


def _parts(kind: Any, value: Any) -> list[Any]:
    """Return the expressions within a part of a parsed expression."""
    name = str(kind)
    if _is_repetition(kind):
        return [value[2]]
    if name == "SUBPATTERN":
        return [value[3]]
    if name == "ATOMIC_GROUP":
        return [value]
    return list(value[1]) if name == "BRANCH" else []


@contextmanager
def limited_cpu() -> Iterator[None]:
    """Raise ``_NotLinearError`` when the thread has used too much processor time. ``re`` checks for signals."""

    def stop(*_: object) -> None:
        raise _NotLinearError

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def apply(expression: Expression, text: str | bytes) -> None:
    pattern: Any = re.compile(expression.pattern, expression.flags)
    if expression.method == "sub":
        pattern.sub(b"" if isinstance(text, bytes) else "", text)
    else:
        result = getattr(pattern, expression.method)(text)
        if expression.method == "finditer":
            list(result)


def is_linear(expression: Expression) -> str | None:
    """Return None, or the text for which the expression needs more than linear time."""
    for text in Texts(expression.pattern, expression.flags).all():
        try:
            with limited_cpu():
                apply(expression, text)
        except _NotLinearError:
            return f"{text[:40]!r} ..."
    return None


def test_no_regular_expression_needs_more_than_linear_time() -> None:
    found = expressions()
    assert len(found) > 60
    slow = {expression: text for expression in found if (text := is_linear(expression))}
    assert not slow


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"([A-Za-z][A-Za-z0-9+.\-]*)(://[^\s?'\"<>]*)\?[^\s'\"<>]*", "sub"),
        (r"\s*a?\s*:", "match"),
        (r"(a+)+c", "match"),
        (r"x.*y", "search"),
        (r"<a>[^x]*x", "search"),
        (rb"\d+\.", "search"),
    ],
)
def test_expressions_that_are_not_linear_are_found(
    pattern: str | bytes, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Signals are checked only now and then in the search within a repetition.
    monkeypatch.setitem(globals(), "EXPRESSION_LENGTH", 50_000)
    monkeypatch.setitem(globals(), "MAX_CPU_SECONDS", 0.3)
    assert is_linear(Expression("", pattern, 0, method))


HOSTILE_TEXTS = {
    "a word": "a" * LENGTH,
    "marks of URLs": "://" * (LENGTH // 3),
    "URLs": "a://" * (LENGTH // 4),
    "URLs with queries": "a://?" * (LENGTH // 5),
    "local URLs with queries": "file://?" * (LENGTH // 8),
    "users": "://a@" * (LENGTH // 5),
    "a user": "://" + "@" * LENGTH,
    "a word before a URL": "a" * LENGTH + "://" + "b" * LENGTH,
    "digits before a URL": "1" * LENGTH + "://?",
    "question marks": "file://" + "?" * LENGTH,
    "control characters": "\x1b" * LENGTH,
    "surrogates": "\udcff" * LENGTH,
    "quotes": "'\"" * (LENGTH // 2),
}


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_functions_that_make_text_safe_need_linear_time(text: str) -> None:
    with limited_cpu():
        for function in (hide_credentials, safe_text, short_repr, describe_json):
            function(text)  # type: ignore[operator]
        assert len(str(ZarrError(text))) <= MAX_MESSAGE
