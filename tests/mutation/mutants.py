"""The mutants of a source file: small changes of the code that a test should detect. This module runs nothing."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "mutants_of"]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: the file, relative to the checkout.
        line: the line of the change.
        scope: the function or class that contains the change, or ``<module>``.
        kind: the kind of the change.
        old, new: the source before and after.
        start, stop: the bytes of the file that ``new`` replaces.
        key: identifies the mutant. It does not depend on the line, so that changes elsewhere in the file keep it.
    """

    path: str
    line: int
    scope: str
    kind: str
    old: str
    new: str
    start: int
    stop: int
    key: str

    def apply(self, source: bytes) -> bytes:
        """Return the source of the file with the change."""
        return source[: self.start] + self.new.encode() + source[self.stop :]

    def __str__(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.key}  {self.path}:{self.line}  {self.scope}  {self.kind}:  {old[:80]}  ->  {new[:80]}"


Change = tuple[ast.expr | ast.stmt, str, str]
"""The node to replace, the kind of the change, and the new source."""


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a file, in the order of the file."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    counts: Counter[tuple[str, ...]] = Counter()
    mutants = []
    for scope, (node, kind, new) in _changes(ast.parse(source), "<module>"):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        stop = starts[node.end_lineno - 1] + node.end_col_offset
        old = source[start:stop].decode()
        identity = (path, scope, kind, old, new)
        text = "\0".join([*identity, str(counts[identity])])
        counts[identity] += 1
        key = hashlib.sha256(text.encode()).hexdigest()[:10]
        mutants.append(Mutant(path, node.lineno, scope, kind, old, new, start, stop, key))
    return sorted(mutants, key=lambda mutant: (mutant.start, mutant.key))


def _changes(node: ast.AST, scope: str) -> Iterator[tuple[str, Change]]:
    for child in _mutated_children(node):
        inner = scope
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = child.name if scope == "<module>" else f"{scope}.{child.name}"
        for change in _changes_at(child):
            yield scope, change
        yield from _changes(child, inner)


def _mutated_children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children that are executed: no annotations, decorators, docstrings, f-strings and type-only imports."""
    if _is_for_types(node):
        return
    skipped: list[object] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        skipped = [node.returns, *node.decorator_list]
    elif isinstance(node, ast.ClassDef):
        skipped = [*node.decorator_list, *node.bases]
    elif isinstance(node, ast.AnnAssign | ast.arg):
        skipped = [node.annotation]
    elif (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__") or isinstance(
        node, ast.JoinedStr
    ):
        return
    for child in ast.iter_child_nodes(node):
        if any(child is other for other in skipped):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        yield child


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changes_at(node: ast.AST) -> Iterator[Change]:
    if _is_for_types(node):
        return
    if isinstance(node, ast.Compare):
        first = COMPARISONS[type(node.ops[0])]()
        yield node, "comparison", _text(ast.Compare(node.left, [first, *node.ops[1:]], node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield node, "operator", _text(ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, "and, or", _text(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, "not", _text(node.operand)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node, "sign", _text(node.operand)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, "constant", str(not node.value)
        elif isinstance(node.value, int):
            yield node, "constant", str(node.value + 1)
    elif isinstance(node, ast.IfExp):
        yield node, "condition", _text(ast.IfExp(node.test, node.orelse, node.body))
    elif isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Constant | ast.Compare):
        yield node.test, "condition", f"(not {_text(node.test)})"
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield node, "result", "return None"
    elif isinstance(node, ast.Raise | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield node, "statement", "pass"
    elif isinstance(node, ast.Break):
        yield node, "statement", "continue"
    elif isinstance(node, ast.Continue):
        yield node, "statement", "break"


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"
