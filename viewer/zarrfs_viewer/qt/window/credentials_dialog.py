"""The dialog for the credentials of a server."""

from __future__ import annotations

from PyQt6.QtWidgets import QCheckBox, QDialog, QDialogButtonBox, QFormLayout, QLineEdit, QWidget

from zarrfs_viewer.qt.support.plain_text import MAX_TEXT, PlainLabel, button_text, plain
from zarrfs_viewer.qt.support.widgets import set_tab_order
from zarrfs_viewer.url_credentials import FIELDS, SECRET_FIELDS, origin_of

__all__ = ["CredentialsDialog"]

MIN_URL_WIDTH = 300

HINT = (
    "Without these, the environment variables and configuration files of each protocol are used. Empty fields remove "
    "the stored credentials."
)


class CredentialsDialog(QDialog):
    """A URL, and the fields that its protocol needs. ``url`` is the first text of the URL."""

    def __init__(self, url: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Credentials of a URL")
        self.url = QLineEdit()
        self.url.setPlaceholderText("s3://bucket, https://host, sftp://host")
        self.url.setAccessibleName("URL of the server")
        self.url.setMinimumWidth(MIN_URL_WIDTH)
        self.fields: dict[str, QLineEdit] = {}
        self.in_keyring = QCheckBox(button_text("Store in the keyring"))
        self.in_keyring.setChecked(True)
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.form = QFormLayout(self)
        self.form.addRow(PlainLabel("URL"), self.url)
        self.form.addRow(PlainLabel(HINT, wrap=True))
        self.form.addRow(self.in_keyring)
        self.form.addRow(self.buttons)
        self.url.textChanged.connect(lambda _: self._show_fields())
        self._scheme = ""
        self._show_fields()
        self.url.setText(plain(url, MAX_TEXT))  # not abbreviated
        if self.fields:
            next(iter(self.fields.values())).setFocus()

    @property
    def origin(self) -> str | None:
        """The origin of the URL, or None if it has no credentials."""
        return origin_of(self.url.text().strip())

    def values(self) -> dict[str, str]:
        """Return the values of the fields by name."""
        return {name: field.text().strip() for name, field in self.fields.items()}

    def _show_fields(self) -> None:
        origin = self.origin
        scheme = "" if origin is None else origin.partition("://")[0]
        accept = self.buttons.button(QDialogButtonBox.StandardButton.Ok)
        if accept is not None:
            accept.setEnabled(origin is not None)
        if scheme == self._scheme:
            return
        self._scheme = scheme
        for field in self.fields.values():
            self.form.removeRow(field)
        self.fields = {}
        for number, (name, title) in enumerate(FIELDS.get(scheme, ())):
            field = QLineEdit()
            field.setAccessibleName(plain(title))
            if name in SECRET_FIELDS and scheme not in ("gs", "gcs"):
                field.setEchoMode(QLineEdit.EchoMode.Password)
            self.fields[name] = field
            self.form.insertRow(number + 1, PlainLabel(plain(title)), field)
        set_tab_order(self.url, *self.fields.values(), self.in_keyring)
        # The hint is wrapped: its height depends on the width, which the fields change.
        self.form.activate()
        self.adjustSize()
