"""Conversion of key-value store specs and URLs to a store and a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from zarrfs.engine.formats.paths import normalize_path
from zarrfs.engine.json_checks import expect_object, unexpected_value
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import open_store
from zarrfs.errors import LocationError, MetadataError
from zarrfs.tensorstore.context import Context
from zarrfs.text import short_repr

__all__ = ["open_kvstore", "spec_of_url"]


def spec_of_url(url: str) -> dict[str, Any]:
    """Return the spec of a URL such as ``file:///data/a.zip|zip:inner/|zarr3:``."""
    head, *rest = url.split("|")
    kvstore: Any = head
    spec: dict[str, Any] | None = None
    for part in rest:
        scheme, _, path = part.partition(":")
        if spec is not None:
            raise MetadataError(
                f"{url}: expected nothing after driver {short_repr(spec['driver'])}, found {short_repr(part)}"
            )
        if scheme == "zip":
            kvstore = {"driver": "zip", "base": kvstore, "path": unquote(path)}
        else:
            spec = {"driver": scheme, "kvstore": kvstore, "path": unquote(path)}
    return spec or {"driver": "auto", "kvstore": kvstore}


def open_kvstore(spec: Any, path: str, mode: str, context: Context) -> tuple[Store, str]:
    """Return the store of ``spec`` (an object or a URL), and its path joined with ``path``.

    ``mode`` is that of ``open_store``. Raises MetadataError, which names the invalid member, and LocationError.
    """
    if isinstance(spec, str):
        spec = _kvstore_of_url(spec)
    expect_object(spec, "kvstore", "an object or a URL")
    driver = spec.get("driver")
    if not isinstance(driver, str):
        raise unexpected_value("kvstore/driver", "a string", driver)
    inner = "/".join(part for part in (_text(spec, "path", "").strip("/"), path.strip("/")) if part)
    if driver in SERVERS:
        url, options = SERVERS[driver](spec, inner)
        return open_store(url, mode=mode, storage_options=options)
    if driver not in DRIVERS:
        known = ", ".join([*DRIVERS, *SERVERS])
        raise MetadataError(f"kvstore/driver: expected one of {known}, found {short_repr(driver)}")
    return DRIVERS[driver](spec, inner, mode, context)


def _kvstore_of_url(url: str) -> dict[str, Any]:
    if "|" in url:
        kvstore: dict[str, Any] = spec_of_url(url)["kvstore"]
        return kvstore
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise MetadataError(
            f"kvstore: {short_repr(url)} is not a URL; expected for example file:///data/image.zarr/"
        )
    if scheme in ("s3", "gs"):
        bucket, _, path = rest.partition("/")
        return {"driver": "gcs" if scheme == "gs" else "s3", "bucket": bucket, "path": unquote(path)}
    if scheme in ("http", "https"):
        return {"driver": "http", "base_url": url}
    if scheme in ("file", "memory"):
        return {"driver": scheme, "path": unquote(rest)}
    raise MetadataError(f"kvstore: {url}: expected file://, memory://, http(s)://, s3:// or gs://")


def _text(spec: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = spec.get(name, default)
    if not isinstance(value, str):
        raise MetadataError(f"kvstore/{name}: expected a string, found {short_repr(value)}")
    return value


def _file(spec: Mapping[str, Any], path: str, mode: str, context: Context) -> tuple[Store, str]:
    # Keep the leading slash of an absolute path.
    leading_slash = "/" if _text(spec, "path", "").startswith("/") else ""
    return open_store(leading_slash + path or ".", mode=mode)


def _memory(spec: Mapping[str, Any], path: str, mode: str, context: Context) -> tuple[Store, str]:
    return context.memory, normalize_path(path)


Address = tuple[str, dict[str, Any] | None]
"""A URL and its fsspec options."""


def _http(spec: Mapping[str, Any], path: str) -> Address:
    base, separator, query = _text(spec, "base_url").partition("?")
    url = f"{base.rstrip('/')}/{quote(path)}" if path else base
    headers = dict(entry.split(": ", 1) for entry in spec.get("headers", ()))
    return url + separator + query, {"client_kwargs": {"headers": headers}} if headers else None


def _s3(spec: Mapping[str, Any], path: str) -> Address:
    options: dict[str, Any] = {}
    if "endpoint" in spec:
        options["endpoint_url"] = _text(spec, "endpoint")
    if "aws_region" in spec:
        options["client_kwargs"] = {"region_name": _text(spec, "aws_region")}
    credentials = spec.get("aws_credentials")
    if isinstance(credentials, Mapping) and credentials.get("type") == "anonymous":
        options["anon"] = True
    elif isinstance(credentials, Mapping) and "profile" in credentials:
        options["profile"] = credentials["profile"]
    return f"s3://{_text(spec, 'bucket')}/{path}", options


def _gcs(spec: Mapping[str, Any], path: str) -> Address:
    return f"gs://{_text(spec, 'bucket')}/{path}", None


SERVERS: dict[str, Callable[[Mapping[str, Any], str], Address]] = {"http": _http, "s3": _s3, "gcs": _gcs}


def _zip(spec: Mapping[str, Any], path: str, mode: str, context: Context) -> tuple[Store, str]:
    base: Any = spec.get("base")
    if isinstance(base, str):
        base = _kvstore_of_url(base)
    driver = base.get("driver") if isinstance(base, Mapping) else None
    if driver == "file":
        store, inner = open_store(_text(base, "path"), mode=mode)
        return store, normalize_path("/".join(part for part in (inner, path) if part))
    if driver not in SERVERS:
        raise MetadataError(
            f"kvstore/base: expected a key-value store that holds a zip file, found {short_repr(base)}"
        )
    url, options = SERVERS[driver](base, _text(base, "path", "").strip("/"))
    if mode != "r":
        raise LocationError(f"{url}: a remote zip file is read-only")
    return open_store(f"zip::{url}", mode=mode, storage_options=options)[0], normalize_path(path)


DRIVERS: dict[str, Callable[[Mapping[str, Any], str, str, Context], tuple[Store, str]]] = {
    "file": _file,
    "memory": _memory,
    "zip": _zip,
}
