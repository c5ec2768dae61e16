"""Running the tiers over a node, and over its attributes alone."""

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
from zarrfs.ngff.parse import KNOWN, ome_attributes, parse
from zarrfs.text import MAX_MESSAGE, safe_text

__all__ = ["VERSIONS", "check_attributes", "check_node"]

VERSIONS = ("0.1", "0.2", "0.3", "0.4", "0.5")


def check_attributes(attributes: Mapping[str, Any]) -> Report:
    """Check the attributes of a node, without looking at the store.

    Raises UnsupportedError where the model library that knows the schemas is needed and not installed.
    """
    return _report(attributes, None)


def check_node(node: Node) -> Report:
    """Check the attributes of a node, and that the store holds what they say. Blocks on the store.

    The nodes below are looked at only as far as this node's document speaks of them. Raises as
    ``check_attributes``.
    """
    return _report(node.attrs, node)


def _report(attributes: Mapping[str, Any], node: Node | None) -> Report:
    attributes = dict(attributes)  # those of a node write through, and are no plain JSON
    document, base = ome_attributes(attributes)
    try:
        return _checked(attributes, document, base, node)
    except RecursionError:
        return Report(
            False, None, (Message("schema", base, "the metadata are nested too deeply to be checked"),)
        )


def _checked(
    attributes: Mapping[str, Any], document: Mapping[str, Any], base: str, node: Node | None
) -> Report:
    version = _version(attributes, document, base)
    if version is None:
        message = "there is no OME-NGFF metadata: expected one of " + ", ".join(KNOWN)
        return Report(False, None, (Message("schema", "", message),))
    if version not in VERSIONS:
        return Report(False, version, (Message("schema", base, _unknown(version)),))
    schema = _messages("schema", base, schema_findings(document, version))
    others = [
        *_messages("strict", base, strict_findings(document, version)),
        *_messages("semantic", base, semantic_findings(document, version)),
    ]
    if node is not None:
        others += _messages("semantic", base, stored_findings(node, document, version))
    return Report(not schema, version, (*schema, *others))


def _messages(tier: Tier, base: str, findings: Iterable[Finding]) -> list[Message]:
    return [
        Message(tier, base + finding.pointer, safe_text(finding.message, MAX_MESSAGE))
        for finding in dict.fromkeys(findings)
    ]


def _version(attributes: Mapping[str, Any], document: Mapping[str, Any], base: str) -> str | None:
    """Return the version to check against: the declared one, else what the form of the document tells; None
    where there is nothing to check.
    """
    found = parse(attributes)
    if not found and not any(key in document for key in KNOWN):
        return None
    if found.version is not None:
        # 0.4.1 would be checked as 0.4; what is no version at all is checked, and refused, as the newest that fits.
        matched = re.match(r"\d+\.\d+", found.version)
        if matched is None:
            return "0.5" if base else "0.4"
        return matched.group()
    if found.draft:
        return "0.6"
    if base:
        return "0.5"
    if found.multiscales and not found.multiscales[0].axes:
        return "0.2"
    axes = [item.get("axes") for item in _objects(document.get("multiscales"))]
    if axes and isinstance(axes[0], list) and all(isinstance(axis, str) for axis in axes[0]):
        return "0.3"
    return "0.4"


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _unknown(version: str) -> str:
    known = f"known are {VERSIONS[0]} to {VERSIONS[-1]}"
    if tuple(map(int, version.split("."))) > (0, 5):
        return f"version {version} is a draft later than OME-NGFF 0.5, which cannot be checked; {known}"
    return f"version {version} of OME-NGFF does not exist; {known}"
