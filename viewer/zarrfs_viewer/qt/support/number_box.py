"""Number fields that accept a point and a comma as decimal sign, in every locale."""

from __future__ import annotations

from PyQt6.QtGui import QValidator
from PyQt6.QtWidgets import QDoubleSpinBox

__all__ = ["NumberBox"]


class NumberBox(QDoubleSpinBox):
    """A number field with the decimal sign of the locale. The other sign is replaced while the user types.

    A field of Qt ignores the sign that the locale does not use: ``0.75`` became 75 or was refused.
    """

    def localized(self, text: str | None) -> str:
        """Return a text with the decimal sign of the locale."""
        text = text or ""
        if "." not in text and "," not in text:
            return text
        sign = self._decimal_sign()
        return text.replace("," if sign == "." else ".", sign)

    def _decimal_sign(self) -> str:
        """Return the decimal sign of the locale.

        It is found in a number that Qt formats: the first call of a method of QLocale creates 850 objects for its
        enumerations, which takes 7 ms and 440 KiB.
        """
        if not self.decimals():
            return self.locale().decimalPoint()
        half = QDoubleSpinBox.textFromValue(self, 0.5)
        return next(character for character in half if not character.isdigit())

    def valueFromText(self, text: str | None) -> float:
        return super().valueFromText(self.localized(text))

    def validate(self, text: str | None, position: int) -> tuple[QValidator.State, str, int]:
        return super().validate(self.localized(text), position)
