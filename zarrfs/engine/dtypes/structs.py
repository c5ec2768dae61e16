"""Records: ``struct`` of the zarr-extensions registry, the older name ``structured`` for reading, and the structured
dtypes of Zarr v2, whose fields may be sub-arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily
from zarrfs.engine.dtypes.raw import MAX_ITEMSIZE, base64_to_bytes
from zarrfs.engine.json_checks import (
    check_keys,
    expect_list,
    expect_object,
    expect_string,
    named_configuration,
    unexpected_value,
)
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.text import short_repr

__all__ = ["Field", "StructFamily"]

STRUCT_NAMES = ("struct", "structured")


class Field(NamedTuple):
    """One field of a record. ``shape`` is the shape of a sub-array (only in v2), otherwise ``()``."""

    name: str
    data_type: DataType
    shape: tuple[int, ...] = ()


class StructFamily(DataTypeFamily):
    """Records of named fields, packed without padding.

    ``parse`` converts v3 metadata to a data type and ``family_of`` returns the family of a data type. They are passed
    as arguments, because the registry that defines them contains this family.
    """

    def __init__(
        self, parse: Callable[[Any, str], DataType], family_of: Callable[[DataType], DataTypeFamily]
    ) -> None:
        self._parse = parse
        self._family_of = family_of

    def of_fields(self, fields: list[Field], where: str) -> DataType:
        """Return the record type of the fields. Raises MetadataError for names that are empty or not unique."""
        names: set[str] = set()
        for index, field in enumerate(fields):
            if not field.name or field.name in names:
                raise unexpected_value(
                    f"{where}/{index}", "a field name that is not empty and unique", field.name
                )
            names.add(field.name)
            if field.data_type.numpy.hasobject:
                raise UnsupportedError(
                    f"{where}/{index}: a field cannot have a variable length, found data type {field.data_type.name!r}"
                )
        try:
            dtype = np.dtype([(field.name, field.data_type.numpy, field.shape) for field in fields])
        except (ValueError, TypeError) as error:
            raise MetadataError(f"{where}: NumPy does not support this record: {error}") from error
        if dtype.itemsize > MAX_ITEMSIZE:
            raise UnsupportedError(
                f"{where}: records of more than {MAX_ITEMSIZE} bytes are not supported, found {dtype.itemsize}"
            )
        return DataType("struct", dtype, {"fields": [_entry(field) for field in fields]})

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        check_keys(configuration, where, ("fields",))
        entries = expect_list(configuration.get("fields"), f"{where}/fields", "a list of fields")
        if not entries:
            raise MetadataError(f"{where}/fields: expected at least one field, found none")
        fields = [self._field(entry, f"{where}/fields/{index}") for index, entry in enumerate(entries)]
        return self.of_fields(fields, f"{where}/fields")

    def _field(self, entry: Any, where: str) -> Field:
        if isinstance(entry, list | tuple):
            if len(entry) != 2:
                raise unexpected_value(where, "a field: a list of name and data type", entry)
            return Field(expect_string(entry[0], f"{where}/0"), self._parse(entry[1], f"{where}/1"))
        field = expect_object(entry, where, 'a field: an object with "name" and "data_type"')
        check_keys(field, where, ("name", "data_type"))
        for key in ("name", "data_type"):
            if key not in field:
                raise MetadataError(f'{where}: the field has no "{key}"')
        return Field(
            expect_string(field["name"], f"{where}/name"),
            self._parse(field["data_type"], f"{where}/data_type"),
        )

    def fields(self, data_type: DataType) -> Iterator[Field]:
        """Yield the fields. Their dtypes have the byte order of the record."""
        for entry in data_type.configuration["fields"]:
            dtype: np.dtype[Any] = data_type.numpy[entry["name"]]
            name, configuration = named_configuration(entry["data_type"], "", "data type")
            yield Field(entry["name"], DataType(name, dtype.base, configuration), dtype.shape)

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        if isinstance(value, str):
            return self.fill_from_bytes(data_type, base64_to_bytes(value, where), where)
        entries = expect_object(value, where, "an object with the fill value of each field")
        fields = list(self.fields(data_type))
        check_keys(entries, where, {field.name: field for field in fields})  # fast for thousands of fields
        record = np.zeros((), data_type.numpy)
        for field in fields:
            if field.name not in entries:
                raise MetadataError(f'{where}: the fill value of field "{field.name}" is missing')
            family = self._family_of(field.data_type)
            record[field.name] = family.fill_from_json(
                field.data_type, entries[field.name], f"{where}/{field.name}"
            )
        return record[()]

    def fill_from_bytes(self, data_type: DataType, raw: bytes, where: str) -> Any:
        """Return the record that consists of the bytes. Raises MetadataError for another size."""
        if len(raw) != data_type.numpy.itemsize:
            raise MetadataError(
                f"{where}: expected base64 text of {data_type.numpy.itemsize} bytes, the size of a record, "
                f"found {len(raw)} bytes"
            )
        return np.frombuffer(raw, data_type.numpy)[0]

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        record = np.asarray(value, data_type.numpy)
        return {
            field.name: self._family_of(field.data_type).fill_to_json(field.data_type, record[field.name][()])
            for field in self.fields(data_type)
        }

    def default_fill(self, data_type: DataType) -> Any:
        record = np.zeros((), data_type.numpy)
        for field in self.fields(data_type):
            record[field.name] = self._family_of(field.data_type).default_fill(field.data_type)
        return record[()]

    def to_json(self, data_type: DataType) -> Any:
        entries = []
        for field in self.fields(data_type):
            if field.shape:
                raise UnsupportedError(
                    f"Zarr v3 has no data type for a field that is a sub-array, found field {short_repr(field.name)}; "
                    "use zarr_format=2, or one field per element"
                )
            entries.append(
                {"name": field.name, "data_type": self._family_of(field.data_type).to_json(field.data_type)}
            )
        return {"name": "struct", "configuration": {"fields": entries}}


def _entry(field: Field) -> dict[str, Any]:
    """Return the entry of a field in the configuration of a record type."""
    data_type = field.data_type
    metadata = (
        {"name": data_type.name, "configuration": dict(data_type.configuration)}
        if data_type.configuration
        else data_type.name
    )
    entry: dict[str, Any] = {"name": field.name, "data_type": metadata}
    return entry | {"shape": list(field.shape)} if field.shape else entry
