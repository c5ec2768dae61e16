"""Running the tiers on a node, or on its attributes alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from zarrfs.ngff.checks.report import Finding, Message, Report, Tier
from zarrfs.ngff.checks.schema import schema_findings
from zarrfs.ngff.checks.schema_0_6 import schema_0_6_findings
from zarrfs.ngff.checks.semantic import semantic_findings
from zarrfs.ngff.checks.semantic_0_6 import semantic_0_6_findings
from zarrfs.ngff.checks.single_file import single_file_findings
from zarrfs.ngff.checks.stored import stored_findings
from zarrfs.ngff.checks.strict import strict_findings
from zarrfs.ngff.load import Node
from zarrfs.ngff.parse import OME_KEYS, ome_attributes, parse
from zarrfs.ngff.version_0_6 import SYSTEMS, VERSION_0_6
from zarrfs.text import MAX_MESSAGE, safe_text

__all__ = ["VERSIONS", "check_attributes", "check_node"]

VERSIONS = ("0.1", "0.2", "0.3", "0.4", "0.5", VERSION_0_6)


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
            False, None, (Message("schema", base, "the metadata is nested too deeply to be checked", True),)
        )


def _checked(
    attributes: Mapping[str, Any], document: Mapping[str, Any], base: str, node: Node | None
) -> Report:
    version = _version(attributes, document, base)
    if version is None:
        archive = [] if node is None else _messages("semantic", "", single_file_findings(node, None))
        message = "no OME-NGFF metadata found: expected one of " + ", ".join(OME_KEYS)
        return Report(False, None, (Message("schema", "", message, True), *archive))
    if version not in VERSIONS:
        message = _unsupported_version_message(version)
        return Report(False, version, (Message("schema", base, message, True),))
    findings: list[tuple[Tier, Iterable[Finding]]] = [
        (
            "schema",
            schema_0_6_findings(document) if version == VERSION_0_6 else schema_findings(document, version),
        ),
        ("strict", strict_findings(document, version)),
        ("semantic", semantic_findings(document, version)),
    ]
    if version == VERSION_0_6:
        findings.append(("semantic", semantic_0_6_findings(document, parse(attributes))))
    if node is not None:
        findings.append(("semantic", stored_findings(node, document, version)))
        findings.append(("semantic", single_file_findings(node, version)))
    messages = _distinct([message for tier, found in findings for message in _messages(tier, base, found)])
    return Report(not any(message.is_error for message in messages), version, messages)


def _distinct(messages: list[Message]) -> tuple[Message, ...]:
    """Return messages without repetitions. A message that is repeated is an error if one of them is."""
    distinct: dict[Message, Message] = {}
    for message in messages:
        key = replace(message, is_error=False)
        distinct[key] = message if message.is_error else distinct.get(key, message)
    return tuple(distinct.values())


def _messages(tier: Tier, base: str, findings: Iterable[Finding]) -> list[Message]:
    return [
        Message(
            tier,
            base + finding.pointer,
            safe_text(finding.message, MAX_MESSAGE),
            finding.is_error or tier == "schema",
        )
        for finding in findings
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
        # Drafts of 0.6 are checked as the release candidate, whose schema rejects them.
        return VERSION_0_6 if match.group() == VERSION_0_6[:3] else match.group()
    if ngff.scene or any(SYSTEMS in item for item in _objects(document.get("multiscales"))):
        return VERSION_0_6
    if ngff.draft:
        return "0.7"
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
    if tuple(map(int, version.split("."))) > (0, 6):
        return f"version {version} is later than OME-NGFF {VERSION_0_6} and cannot be checked; {supported}"
    return f"version {version} of OME-NGFF does not exist; {supported}"
