"""The schema tier: violations of the JSON schemas.

Versions 0.4 and 0.5 are checked by the models of ``yaozarrs`` (BSD-3-Clause). It was preferred to ``ome-zarr-models``
because it follows the schemas more closely and needs only pydantic. Its models also implement rules of the
specification's text. These messages are dropped, because the semantic tier has its own. Older versions are checked by
``schema_old``, because no model library supports them. So are label images, because the library does not check an
``image-label`` without ``multiscales``.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs.errors import UnsupportedError
from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.checks.schema_old import (
    axes_findings,
    field_of_view_findings,
    image_label_findings,
    labels_findings,
    old_findings,
    scale_findings,
)
from zarrfs.plugins import install_hint
from zarrfs.text import short_repr

__all__ = ["schema_findings"]

TRANSFORMATIONS = {"scale": "ScaleTransformation", "translation": "TranslationTransformation"}
"""The class names of transformations in the error locations of the library, by type."""

MODELS = {
    "plate": "Plate",
    "well": "Well",
    "bioformats2raw.layout": "Bf2Raw",
    "series": "Series",
}
"""The model that checks a document with this key."""


def schema_findings(document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield the violations of the schema of a version. Raises UnsupportedError if the library is not installed."""
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
        yield from scale_findings(item, pointer("multiscales", number))
    if isinstance(document.get("well"), Mapping):
        yield from field_of_view_findings(document["well"])
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
        # Strict validation of JSON: the schema does not accept a number as a string.
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings about units, which are in the strict tier
                getattr(models, name).model_validate_json(_dump(document), strict=True)
        except ValidationError as error:
            for problem in error.errors(include_url=False, include_input=False):
                yield from _finding(problem, document)


def _model_names(document: Mapping[str, Any]) -> Iterator[str]:
    if "multiscales" in document:
        yield "Image"
    for key, name in MODELS.items():
        # A group may have bioformats2raw.layout in addition to a plate or an image. Each part is checked.
        if key in document:
            yield name


def _dump(document: Mapping[str, Any]) -> str:
    return json.dumps(dict(document))


def _finding(problem: Any, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Convert an error of pydantic to a finding. The location is mapped to a path in the document.

    The errors of the library's own validators (``value_error``) are omitted. They check rules that are only in the text
    of the specification, which are in the semantic tier, and three rules of the schema, which ``schema_old`` checks.
    """
    if problem["type"] == "value_error":
        return
    message = " ".join(str(problem["msg"]).split("\n\n")[0].split())
    path: list[str | int] = []
    value: Any = document
    for part in problem["loc"]:
        if (isinstance(value, Mapping) and part in value) or (
            isinstance(value, list) and isinstance(part, int)
        ):
            path.append(part)
            value = value[part]
        elif str(part).endswith("Transformation"):
            transformation_type = value.get("type") if isinstance(value, Mapping) else None
            if not isinstance(transformation_type, str) or transformation_type not in TRANSFORMATIONS:
                found = short_repr(value)
                yield Finding(pointer(*path), f"expected a scale or a translation, found {found}")
                return
            if part != TRANSFORMATIONS[transformation_type]:
                return  # an error for the other transformation type
        elif problem["type"] == "missing":
            message = f"{short_repr(part)} is missing"
    yield Finding(pointer(*path), message)
