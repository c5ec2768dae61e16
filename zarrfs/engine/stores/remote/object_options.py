"""Storage options of s3fs, gcsfs and adlfs -> the settings of obstore for the same bucket.

The names are those that users of fsspec know. What obstore has no setting for raises UnsupportedError; then fsspec and
the library of the protocol are used instead. Credentials come from the options, from the environment, or from the files
of the cloud, in this order. If there are none, requests are not signed, so that public buckets can be read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from zarrfs.errors import LocationError, OptionError

__all__ = ["CONTAINERS", "SERVICES", "ObjectLocation", "UnsupportedError", "object_location"]

CONNECT_SECONDS = 30.0
READ_SECONDS = 60.0
"""The default time limits: for a connection, and for each part of a response. A large value may take longer."""

MAX_RETRIES = 4
"""How often a request is repeated after a server error or a lost connection."""

IGNORED = frozenset(
    {
        *("asynchronous", "loop", "batch_size", "skip_instance_cache", "use_listings_cache", "max_paths"),
        *("listings_expiry_time", "default_block_size", "default_fill_cache", "default_cache_type"),
        *(
            "default_cache_options",
            "cache_regions",
            "fixed_upload_size",
            "local_expiry_check",
            "max_concurrency",
        ),
        *("project", "access", "consistency", "block_size", "cache_timeout", "secure_serialize"),
        *("check_connection", "default_location", "blocksize", "location_mode", "assume_container_exists"),
        *("socket_timeout", "version_aware"),
    }
)
"""Options without an effect on the requests of a store: caches of listings, and settings of open files."""

CONTAINERS = {"s3": "bucket", "gcs": "bucket", "azure": "container"}
"""What each service calls the first part of a path."""

SERVICES = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gcs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "azure"),
}

AZURE_HOSTS = (".blob.core.windows.net", ".dfs.core.windows.net")

PROFILE_SOURCES = (
    *(
        "role_arn",
        "source_profile",
        "credential_source",
        "credential_process",
        "sso_session",
        "sso_start_url",
    ),
    *("sso_account_id", "web_identity_token_file", "login_session"),
)
"""Settings of a profile that name another source of credentials."""


class UnsupportedError(Exception):
    """obstore cannot do what a location or an option requires. The text is the reason, as a clause."""


class ObjectLocation(NamedTuple):
    """A bucket and the settings of its client.

    ``config`` are the settings of obstore, and ``client`` those of its HTTP client. ``credentials`` is what a
    credential provider returns, or None. ``compares_versions`` is whether conditional writes are used.
    All values are hashable, since clients are shared between equal locations.
    """

    service: str
    container: str
    prefix: str
    config: tuple[tuple[str, Any], ...]
    client: tuple[tuple[str, Any], ...]
    credentials: tuple[tuple[str, str | None], ...] | None
    max_retries: int
    compares_versions: bool = True


class _Options:
    """The options that have not been translated yet."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.left = {name: value for name, value in options.items() if value is not None}
        if self.left.get("version_aware"):
            raise UnsupportedError("the option 'version_aware' is set")
        self.config: dict[str, Any] = {}
        self.client: dict[str, Any] = {
            "allow_http": True,
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
        }
        self.credentials: dict[str, str | None] | None = None
        self.max_retries = MAX_RETRIES

    def take(self, name: str, *kinds: type) -> Any:
        """Remove an option and return its value, None if it is not set. Raises OptionError for another type."""
        value = self.left.pop(name, None)
        if value is not None and kinds and not isinstance(value, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise OptionError(f"the storage option {name!r} must be {expected}, found {value!r}")
        return value

    def take_members(self, name: str) -> _Options:
        """Remove an option that is a mapping. Its members have to be taken in the same way."""
        value = self.take(name, Mapping)
        members = _Options({})
        members.left = {member: item for member, item in (value or {}).items() if item is not None}
        members.config, members.client = self.config, self.client
        return members

    def finish(self, context: str = "") -> None:
        """Raise UnsupportedError if an option is left that has an effect."""
        for name in self.left:
            if context or name not in IGNORED:
                raise UnsupportedError(f"the option {context}{name!r} has no counterpart in obstore")

    def set_timeouts(self, connect: Any, read: Any) -> None:
        for name, value in (("connect_timeout", connect), ("read_timeout", read)):
            if value is not None:
                self.client[name] = float(value)

    def trust(self, verify: Any) -> None:
        """Translate ``verify`` of boto: False, or the file of a certificate authority."""
        if verify is False:
            self.client["allow_invalid_certificates"] = True
        elif isinstance(verify, str):
            self.client["root_certificate"] = _read_text(verify)


def object_location(url: str, options: Mapping[str, Any]) -> ObjectLocation:
    """Return the bucket that a URL names, with the settings of its client.

    ``options`` are storage options of fsspec: those of the protocol can also be below its name. Reads the environment
    and the files of the cloud. Raises UnsupportedError, and OptionError or LocationError for wrong options.
    """
    scheme, separator, rest = url.partition("://")
    service = SERVICES.get(scheme.lower())
    if service is None or not separator:
        raise UnsupportedError(f"{scheme}:// is no service of obstore")
    host, _, path = rest.partition("/")
    if "?" in rest or "#" in rest or "//" in path or not host or host.startswith("arn:"):
        raise UnsupportedError("the URL has a query, an ARN or an empty part")
    names = [name for name, value in SERVICES.items() if value == service]
    flat = {name: value for name, value in options.items() if name not in names}
    for name in names:
        nested = options.get(name)
        flat.update(nested if isinstance(nested, Mapping) else {})
    left = _Options(flat)
    conditional = left.take("conditional_put", str)
    if conditional not in (None, "etag", "disabled"):
        raise OptionError(
            f"the storage option 'conditional_put' must be 'etag' or 'disabled', found {conditional!r}"
        )
    container = TRANSLATORS[service](left, host)
    left.finish()
    return ObjectLocation(
        service,
        container,
        path.strip("/"),
        tuple(sorted(left.config.items())),
        tuple(sorted(left.client.items())),
        None if left.credentials is None else tuple(sorted(left.credentials.items())),
        left.max_retries,
        conditional != "disabled",
    )


def _read_text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LocationError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from error


def _text_of_machine(name: str) -> str:
    """Return a text that the firmware of this machine provides, such as its vendor. Empty if there is none."""
    try:
        return Path("/sys/class/dmi/id", name).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


# -- S3 --------------------------------------------------------------------------------------------------------


def _translate_s3(options: _Options, bucket: str) -> str:
    """Translate the options of s3fs."""
    if options.take("session") is not None:
        raise UnsupportedError("the option 'session' is an object of another library")
    config = options.config
    anonymous = bool(options.take("anon"))
    key = options.take("key", str)
    key = options.take("username", str) or key
    secret = options.take("secret", str)
    secret = options.take("password", str) or secret
    token = options.take("token", str)
    profile = options.take("profile", str)
    endpoint = options.take("endpoint_url", str)
    uses_tls = options.take("use_ssl")
    payer = options.take("requester_pays")
    client = options.take_members("client_kwargs")
    endpoint = client.take("endpoint_url", str) or endpoint
    region = client.take("region_name", str)
    key = client.take("aws_access_key_id", str) or key
    secret = client.take("aws_secret_access_key", str) or secret
    token = client.take("aws_session_token", str) or token
    client.trust(client.take("verify") if "verify" in client.left else os.environ.get("AWS_CA_BUNDLE"))
    client.take("use_ssl")
    client.finish("client_kwargs: ")
    settings = options.take_members("config_kwargs")
    settings.take("max_pool_connections")
    options.set_timeouts(
        settings.take("connect_timeout", int, float), settings.take("read_timeout", int, float)
    )
    retries = settings.take_members("retries")
    retries.take("mode")
    attempts = retries.take("max_attempts", int)
    if attempts is not None:
        options.max_retries = attempts
    retries.finish("config_kwargs: retries: ")
    region = settings.take("region_name", str) or region
    signature = settings.take("signature_version")
    if signature == "s3v4":
        signature = None
    if signature is not None:
        raise UnsupportedError("the option config_kwargs: 'signature_version' has no counterpart in obstore")
    style = settings.take_members("s3")
    addressing = style.take("addressing_style", str)
    style.finish("config_kwargs: s3: ")
    proxies = settings.take_members("proxies")
    proxy = proxies.take("https", str) or proxies.take("http", str)
    proxies.take("http", str)
    if proxy:
        options.client["proxy_url"] = proxy
    settings.finish("config_kwargs: ")
    _translate_encryption(options)
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        raise UnsupportedError("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is set")
    values = _profile_settings(profile)
    endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    endpoint = endpoint or values.get("endpoint_url")
    if endpoint:
        if "://" not in endpoint:
            raise OptionError(f"endpoint_url must be a URL such as https://host, found {endpoint!r}")
        config["endpoint"] = config["aws_endpoint_url_s3"] = endpoint.rstrip("/")
    elif uses_tls is False:
        raise UnsupportedError("the option 'use_ssl' is false")
    region = (
        region or os.environ.get("AWS_DEFAULT_REGION") or os.environ.get("AWS_REGION") or values.get("region")
    )
    config["region"] = region or "us-east-1"
    if addressing == "virtual":
        if not endpoint:
            config["virtual_hosted_style_request"] = True
        else:
            parts = urlsplit(endpoint)
            config["endpoint"] = parts._replace(netloc=f"{bucket}.{parts.netloc}").geturl().rstrip("/")
            config["aws_endpoint_url_s3"] = config["endpoint"]
            config["virtual_hosted_style_request"] = True
    if payer:
        config["request_payer"] = True
    if anonymous:
        config["skip_signature"] = True
    elif key and secret:
        options.credentials = {"access_key_id": key, "secret_access_key": secret, "token": token}
    elif key or secret:
        raise OptionError("the storage options 'key' and 'secret' belong together; one of them is missing")
    else:
        _find_s3_credentials(options, profile, values)
    return bucket


def _translate_encryption(options: _Options) -> None:
    """Translate the server-side encryption in ``s3_additional_kwargs``."""
    more = options.take_members("s3_additional_kwargs")
    encryption = more.take("ServerSideEncryption", str)
    key = more.take("SSEKMSKeyId", str)
    if encryption:
        options.config["server_side_encryption"] = encryption
    if key:
        options.config["sse_kms_key_id"] = key
    if more.take("RequestPayer", str):
        options.config["request_payer"] = True
    more.finish("s3_additional_kwargs: ")


def _find_s3_credentials(options: _Options, profile: str | None, values: Mapping[str, str]) -> None:
    """Set the credentials that the environment, the files of AWS or the machine provide, in the order of boto."""
    environment = os.environ
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    found = {name: environment.get(name.upper()) for name in names} if profile is None else {}
    if not (found.get(names[0]) and found.get(names[1])):
        found = {name: values.get(name) for name in names}
    if found[names[0]] and found[names[1]]:
        options.credentials = {
            "access_key_id": found[names[0]],
            "secret_access_key": found[names[1]],
            "token": found[names[2]],
        }
        return
    source = next((name for name in PROFILE_SOURCES if name in values), None)
    if source is not None:
        raise UnsupportedError(f"the credentials of the profile are found by {source!r}")
    if environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") and environment.get("AWS_ROLE_ARN"):
        return
    if (
        any(environment.get(f"AWS_CONTAINER_CREDENTIALS_{name}_URI") for name in ("RELATIVE", "FULL"))
        or _is_machine_of_amazon()
    ):
        return
    options.config["skip_signature"] = True


def _is_machine_of_amazon() -> bool:
    """Return whether this machine can have a role. Elsewhere, the request for its credentials would wait."""
    if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    return any("amazon" in _text_of_machine(name).lower() for name in ("sys_vendor", "bios_vendor"))


def _profile_settings(profile: str | None) -> dict[str, str]:
    """Return the settings of a profile in the files of AWS. Raises LocationError if the profile is in none of them."""
    import configparser

    name = profile or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    values: dict[str, str] = {}
    services: dict[str, str] = {}
    found = name == "default" and profile is None
    files = []
    for variable, default, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", "default" if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        path = Path(os.environ.get(variable) or default).expanduser()
        files.append(str(path))
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError) as error:
            raise LocationError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
        if parser.has_section(section):
            found = True
            values.update(parser.items(section))
            if "services" in values and parser.has_section(f"services {values['services']}"):
                services.update(parser.items(f"services {values['services']}"))
    if not found:
        raise LocationError(
            f"the profile {name!r} is not in {' or '.join(files)}; check the storage option 'profile' and the variable "
            "AWS_PROFILE"
        )
    for nested in (services.get("s3"), values.get("s3")):  # indented lines: name = value
        for line in (nested or "").splitlines():
            member, separator, value = line.partition("=")
            if separator and member.strip() == "endpoint_url":
                values["endpoint_url"] = value.strip()
            elif separator and member.strip() in (
                "addressing_style",
                "use_accelerate_endpoint",
                "use_dualstack_endpoint",
            ):
                raise UnsupportedError(f"the profile sets {member.strip()!r} for S3")
    return values


# -- Google Cloud Storage --------------------------------------------------------------------------------------


def _translate_gcs(options: _Options, bucket: str) -> str:
    """Translate the options of gcsfs."""
    config = options.config
    if options.take("endpoint_url") or os.environ.get("STORAGE_EMULATOR_HOST"):
        # Emulators have the JSON interface, which gcsfs uses, and only parts of the XML interface of obstore.
        raise UnsupportedError("the endpoint is not Google's")
    base_url = os.environ.get("GOOGLE_BASE_URL")
    if base_url:
        config["base_url"] = base_url
    project = options.left.get("project")
    payer = options.take("requester_pays")
    if payer:
        payer = payer if isinstance(payer, str) else project
        if not isinstance(payer, str):
            raise UnsupportedError("the project that pays is found by the library of Google")
        options.client["default_headers"] = (("x-goog-user-project", payer),)
    for name in ("requests_timeout", "timeout"):
        limit = options.take(name)
        seconds = getattr(limit, "total", limit)  # a ClientTimeout of aiohttp
        if isinstance(seconds, int | float):
            options.set_timeouts(min(float(seconds), CONNECT_SECONDS), seconds)
    token = options.take("token")
    if token == "anon":
        config["skip_signature"] = True
    elif token == "cloud":
        pass
    elif isinstance(token, Mapping):
        if token.get("type") != "service_account":
            raise UnsupportedError("the option 'token' is not the key of a service account")
        config["service_account_key"] = json.dumps(dict(token))
    elif token in ("cache", "browser"):
        raise UnsupportedError(f"the option 'token' is {token!r}")
    elif isinstance(token, str) and token != "google_default":
        if Path(token).expanduser().exists():
            _use_google_file(config, token)
        else:
            options.credentials = {"token": token}
    elif token is not None and token != "google_default":
        raise UnsupportedError("the option 'token' is an object of another library")
    else:
        _find_google_credentials(config, required=token is not None)
    return bucket


def _find_google_credentials(config: dict[str, Any], *, required: bool) -> None:
    """Set the credentials that gcsfs finds without options: default credentials, those of the machine, or none."""
    folder = os.environ.get("CLOUDSDK_CONFIG") or "~/.config/gcloud"
    path = (
        os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or f"{folder}/application_default_credentials.json"
    )
    if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or Path(path).expanduser().exists():
        _use_google_file(config, path)
    elif required or Path("~/.gcs_tokens").expanduser().exists():
        raise UnsupportedError("the credentials are found by gcsfs")
    elif os.environ.get("NO_GCE_CHECK") == "true" or "google" not in _text_of_machine("product_name").lower():
        config["skip_signature"] = True


def _use_google_file(config: dict[str, Any], path: str) -> None:
    """Set a file of credentials, which is that of a service account or of a user."""
    try:
        document = json.loads(_read_text(path))
    except ValueError as error:
        raise LocationError(f"{path} is no file of credentials of Google: {error}") from error
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "service_account":
        config["service_account_key"] = json.dumps(document)
    elif kind == "authorized_user":
        config["application_credentials"] = str(Path(path).expanduser())
    else:
        raise UnsupportedError(f"the credentials in {path} have the type {kind!r}")


# -- Azure -----------------------------------------------------------------------------------------------------


def _translate_azure(options: _Options, host: str) -> str:
    """Translate the options of adlfs."""
    config = options.config

    def value_of(name: str) -> str | None:
        found: str | None = options.take(name, str) or os.environ.get(f"AZURE_STORAGE_{name.upper()}")
        return found

    if options.take("credential") is not None or options.take("request_session") is not None:
        raise UnsupportedError("the option 'credential' or 'request_session' is an object of another library")
    container, at, account_host = host.partition("@")
    account = value_of("account_name")
    key, sas = value_of("account_key"), value_of("sas_token")
    connection = value_of("connection_string")
    client_id, client_secret, tenant = value_of("client_id"), value_of("client_secret"), value_of("tenant_id")
    endpoint = options.take("account_host", str)
    endpoint = f"https://{endpoint}" if endpoint else None
    given = options.take("anon")
    anonymous = os.environ.get("AZURE_STORAGE_ANON", "false").lower() not in ("false", "0", "f", "")
    anonymous = anonymous if given is None else bool(given)
    options.set_timeouts(
        options.take("connection_timeout", int, float), options.take("read_timeout", int, float)
    )
    limit = options.take("timeout", int, float)
    options.set_timeouts(None, limit)
    if at:
        suffix = next((suffix for suffix in AZURE_HOSTS if account_host.endswith(suffix)), None)
        if suffix is None:
            raise UnsupportedError("the host of the URL is not that of a storage account")
        account = account_host.removesuffix(suffix)
    if connection:
        account, key, sas, endpoint = _connection_settings(connection)
    if not account:
        raise UnsupportedError("the name of the storage account is missing")
    config["account_name"] = account
    if endpoint:
        config["endpoint"] = endpoint.rstrip("/")
    if key:
        config["account_key"] = key
    elif sas:
        config["sas_key"] = sas.lstrip("?")
    elif client_id and client_secret and tenant:
        config.update(client_id=client_id, client_secret=client_secret, tenant_id=tenant)
    elif anonymous:
        config["skip_signature"] = True
    else:
        raise UnsupportedError(
            "the credentials are found by the library of Azure; a public container needs anon=True"
        )
    return container


def _connection_settings(text: str) -> tuple[str | None, str | None, str | None, str | None]:
    """Return the account, its key, the shared access signature and the endpoint that a connection string contains."""
    parts = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    endpoint = parts.get("BlobEndpoint")
    suffix = parts.get("EndpointSuffix")
    account = parts.get("AccountName")
    if endpoint is None and suffix and account:
        endpoint = f"{parts.get('DefaultEndpointsProtocol', 'https')}://{account}.blob.{suffix}"
    if account is None and endpoint:
        account = (urlsplit(endpoint).hostname or "").partition(".")[0]
    return account, parts.get("AccountKey"), parts.get("SharedAccessSignature"), endpoint


TRANSLATORS: dict[str, Callable[[_Options, str], str]] = {
    "s3": _translate_s3,
    "gcs": _translate_gcs,
    "azure": _translate_azure,
}
"""Functions that translate the options of a service. Each returns the name of the bucket."""
