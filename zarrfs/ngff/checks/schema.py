"""The schema tier: what the JSON schemas demand.

For 0.4 and 0.5 the models of ``yaozarrs`` (BSD-3-Clause) do the work; it was preferred to ``ome-zarr-models``
for its closeness to the schemas, and because it needs nothing but pydantic. Its models also hold the
specification's text; messages of that kind belong to the semantic tier, which finds them itself. Older
versions, which no model library covers, have their few rules in ``schema_old``, as have label images: the library
accepts an ``image-label`` without ``multiscales`` unchecked.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs.errors import UnsupportedError
from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.checks.schema_old import axes_findings, image_label_findings, labels_findings, old_findings
from zarrfs.plugins import install_hint
from zarrfs.text import short_repr

__all__ = ["schema_findings"]

TRANSFORMATIONS = {"scale": "ScaleTransformation", "translation": "TranslationTransformation"}
"""How the library calls what a transformation may be, in the locations of its errors."""

MODELS = {
    "plate": "Plate",
    "well": "Well",
    "bioformats2raw.layout": "Bf2Raw",
    "series": "Series",
}
"""The model of a document that has this key."""

BEYOND_SCHEMA = (
    "Axis names must be unique",
    "There can be at most 1 axis of type",
    "Axes are not in the required order",
    "must be listed after the scale",
    "at most one translation",
    "The length of the transformation",
    "same number of dimensions",
    "more than 5 dimensions",
    "not ordered from highest to lowest",
    "Invalid hex color code",
    "not a valid Zarr node name",
    "rows exist",
    "columns exist",
)
"""Messages of the library about rules that are in the specification's text only: the semantic tier has
them.
"""


def schema_findings(document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield what breaks the schema of that version. Raises UnsupportedError where the library is missing."""
    if version < "0.4":
        yield from old_findings(document, version)
        return
    if version == "0.5" and document.get("version") != "0.5":
        found = repr(document["version"]) if "version" in document else "none"
        yield Finding("/version" if "version" in document else "", f"expected version '0.5', found {found}")
        document = {**document, "version": "0.5"}
    yield from _library_findings(document, version)
    for number, item in _objects(document.get("multiscales")):
        yield from axes_findings(item, pointer("multiscales", number))
    if "labels" in document:
        yield from labels_findings(document["labels"])
    if "image-label" in document:
        yield from image_label_findings(document["image-label"], version)


def _objects(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, Mapping):
            yield number, item


def _library_findings(document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    try:
        from pydantic import ValidationError
        from yaozarrs import v04, v05
    except ImportError as error:
        raise UnsupportedError(
            f"checking OME-NGFF 0.4 and 0.5 needs the package yaozarrs: {install_hint('ngff')}"
        ) from error
    models: Any = v04 if version == "0.4" else v05
    for name in _model_names(document):
        # Read from JSON, and strictly: a number as text is no number to the schema.
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about units: the strict tier has them
                getattr(models, name).model_validate_json(_dump(document), strict=True)
        except ValidationError as error:
            for problem in error.errors(include_url=False, include_input=False):
                yield from _finding(problem, document)


def _model_names(document: Mapping[str, Any]) -> Iterator[str]:
    if "multiscales" in document:
        yield "Image"
    for key, name in MODELS.items():
        # A group may carry the layout of bioformats2raw beside a plate or an image; each part is checked.
        if key in document:
            yield name


def _dump(document: Mapping[str, Any]) -> str:
    return json.dumps(dict(document))


def _finding(problem: Any, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Turn an error of pydantic into a finding: its location follows the document, its words are ours."""
    message = " ".join(str(problem["msg"]).removeprefix("Value error, ").split("\n\n")[0].split())
    if problem["type"] == "value_error" and any(part in message for part in BEYOND_SCHEMA):
        return
    place: list[str | int] = []
    here: Any = document
    for part in problem["loc"]:
        if (isinstance(here, Mapping) and part in here) or (isinstance(here, list) and isinstance(part, int)):
            place.append(part)
            here = here[part]
        elif str(part).endswith("Transformation"):
            kind = here.get("type") if isinstance(here, Mapping) else None
            if not isinstance(kind, str) or kind not in TRANSFORMATIONS:
                found = short_repr(here)
                yield Finding(pointer(*place), f"expected a scale or a translation, found {found}")
                return
            if part != TRANSFORMATIONS[kind]:
                return  # what is wrong with it as the transformation that it is not
        elif problem["type"] == "missing":
            message = f"{short_repr(part)} is missing"
    yield Finding(pointer(*place), message)
