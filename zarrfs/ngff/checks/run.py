"""Running the tiers on a node, or on its attributes alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from zarrfs.ngff.checks.report import Finding, Message, Report, Tier
from zarrfs.ngff.checks.schema import schema_findings
from zarrfs.ngff.checks.semantic import semantic_findings
from zarrfs.ngff.checks.stored import stored_findings
from zarrfs.ngff.checks.strict import strict_findings
from zarrfs.ngff.load import Node
from zarrfs.ngff.parse import OME_KEYS, ome_attributes, parse
from zarrfs.text import MAX_MESSAGE, safe_text

__all__ = ["VERSIONS", "check_attributes", "check_node"]

VERSIONS = ("0.1", "0.2", "0.3", "0.4", "0.5")


def check_attributes(attributes: Mapping[str, Any]) -> Report:
    """Check the attributes of a node, without reading from the store.

    Raises UnsupportedError if the library with the schemas is needed and not installed.
    """
    return _report(attributes, None)


def check_node(node: Node) -> Report:
    """Check the attributes of a node, and that they are consistent with the store. Reads from the store.

    Of the nodes below, only those that the document refers to are opened. Raises as ``check_attributes``.
    """
    return _report(node.attrs, node)


def _report(attributes: Mapping[str, Any], node: Node | None) -> Report:
    attributes = dict(attributes)  # the attributes of a node are a write-through mapping, not a dictionary
    document, base = ome_attributes(attributes)
    try:
        return _checked(attributes, document, base, node)
    except RecursionError:
        return Report(
            False, None, (Message("schema", base, "the metadata is nested too deeply to be checked"),)
        )


def _checked(
    attributes: Mapping[str, Any], document: Mapping[str, Any], base: str, node: Node | None
) -> Report:
    version = _version(attributes, document, base)
    if version is None:
        message = "no OME-NGFF metadata found: expected one of " + ", ".join(OME_KEYS)
        return Report(False, None, (Message("schema", "", message),))
    if version not in VERSIONS:
        return Report(False, version, (Message("schema", base, _unsupported_version_message(version)),))
    schema = _messages("schema", base, schema_findings(document, version))
    other_messages = [
        *_messages("strict", base, strict_findings(document, version)),
        *_messages("semantic", base, semantic_findings(document, version)),
    ]
    if node is not None:
        other_messages += _messages("semantic", base, stored_findings(node, document, version))
    return Report(not schema, version, (*schema, *other_messages))


def _messages(tier: Tier, base: str, findings: Iterable[Finding]) -> list[Message]:
    return [
        Message(tier, base + finding.pointer, safe_text(finding.message, MAX_MESSAGE))
        for finding in dict.fromkeys(findings)
    ]


def _version(attributes: Mapping[str, Any], document: Mapping[str, Any], base: str) -> str | None:
    """Return the version to check against: the declared one, else the one that the structure of the document indicates;
    None if there is nothing to check.
    """
    ngff = parse(attributes)
    if not ngff and not any(key in document for key in OME_KEYS):
        return None
    if ngff.version is not None:
        # 0.4.1 is checked as 0.4. An invalid version is checked as the newest possible one, whose schema rejects it.
        match = re.match(r"\d+\.\d+", ngff.version)
        if match is None:
            return "0.5" if base else "0.4"
        return match.group()
    if ngff.draft:
        return "0.6"
    if base:
        return "0.5"
    if ngff.multiscales and not ngff.multiscales[0].axes:
        return "0.2"
    axes = [item.get("axes") for item in _objects(document.get("multiscales"))]
    if axes and isinstance(axes[0], list) and all(isinstance(axis, str) for axis in axes[0]):
        return "0.3"
    return "0.4"


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _unsupported_version_message(version: str) -> str:
    supported = f"supported versions are {VERSIONS[0]} to {VERSIONS[-1]}"
    if tuple(map(int, version.split("."))) > (0, 5):
        return f"version {version} is a draft later than OME-NGFF 0.5, which cannot be checked; {supported}"
    return f"version {version} of OME-NGFF does not exist; {supported}"
