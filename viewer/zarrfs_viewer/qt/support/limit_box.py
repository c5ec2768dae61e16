"""Number fields for contrast limits: integers with all digits, floats with six significant digits."""

from __future__ import annotations

import math
import re

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtGui import QValidator
from PyQt6.QtWidgets import QAbstractSpinBox, QWidget

from zarrfs_viewer.qt.support.number_box import NumberBox
from zarrfs_viewer.qt.support.plain_text import plain, tooltip

__all__ = ["LimitBox"]

STATE = QValidator.State
FLOAT_PREFIX = re.compile(r"\s*[+-]?\d*\.?\d*(e[+-]?\d*)?\s*", re.IGNORECASE)
INTEGER = re.compile(r"([+-]?\d+)(?:e\+?(\d+))?", re.IGNORECASE)
INTEGER_PREFIX = re.compile(r"\s*[+-]?\d*(e\+?\d*)?\s*", re.IGNORECASE)
MAX_EXPONENT = 308
DIGITS = 6


class LimitBox(QAbstractSpinBox):
    """A field for one number of any size. The fields of Qt contain floats, which are exact for integers up to 2**53.

    The value is an int, or a float if ``is_integer`` is False or the value has a fraction. A text is used when the
    user confirms it or leaves the field, and ignored if it is not a number. The arrow keys change the second digit.

    Signals:
        changed: (value) the value has changed.
    """

    changed = pyqtSignal(object)

    def __init__(self, is_integer: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_integer = is_integer
        self._formatter: NumberBox | None = None  # never displayed; knows the decimal sign
        self._value: float = 0
        self.zero_step: float = 1
        """The step of the arrow keys from 0, whose digits do not tell the magnitude."""
        self.editingFinished.connect(self._use_text)
        self.setValue(0)

    def value(self) -> float:
        """Return the number."""
        return self._value

    def setValue(self, value: float) -> None:
        """Display a number."""
        is_changed, self._value = value != self._value, value
        edit = self.lineEdit()
        if edit is not None:
            edit.setText(plain(self.textFromValue(value)))
            self.setToolTip(tooltip(value))  # all digits
        if is_changed:
            self.changed.emit(value)

    def textFromValue(self, value: float) -> str:
        """Return the text of a number, with the decimal sign of the locale."""
        if isinstance(value, int) or (self._is_integer and value.is_integer()):
            return str(int(value))
        return self._localized(f"{value:.{DIGITS}g}")

    def valueFromText(self, text: str | None) -> float:
        """Return the number of a text, or the current one if the text is not a number or was not edited."""
        stripped = (text or "").strip()
        if stripped == self.textFromValue(self._value):
            return self._value  # the text may have fewer digits than the value
        number = self._number(stripped)
        return self._value if number is None else number

    def validate(self, text: str | None, position: int) -> tuple[QValidator.State, str, int]:
        value = self._localized(text or "")
        if self._number(value) is not None or value == self.textFromValue(self._value):
            return STATE.Acceptable, value, position
        prefix = INTEGER_PREFIX if self._is_integer else FLOAT_PREFIX
        is_prefix = prefix.fullmatch(value.replace(",", "."))
        return (STATE.Intermediate if is_prefix else STATE.Invalid), value, position

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        if self.isReadOnly():
            return QAbstractSpinBox.StepEnabledFlag.StepNone
        return (
            QAbstractSpinBox.StepEnabledFlag.StepUpEnabled | QAbstractSpinBox.StepEnabledFlag.StepDownEnabled
        )

    def stepBy(self, steps: int) -> None:
        self._use_text()
        value = self._value
        number = _checked(value + steps * self._step(towards_zero=(steps < 0) == (value > 0)))
        if number is not None:
            self.setValue(number)
        self.selectAll()

    def _step(self, towards_zero: bool) -> float:
        """Return one unit of the second digit: 10 for 100 to 999, but 1 for the step from 100 to 99."""
        value = abs(self._value)
        if not value:
            return max(1, round(self.zero_step)) if self._is_integer else self.zero_step
        if isinstance(value, int) or self._is_integer:
            digits = len(str(int(value) - (1 if towards_zero else 0)))
            step: int = 10 ** max(0, digits - 2)
            return step
        exponent = math.floor(math.log10(value) + (-1e-9 if towards_zero else 1e-9))
        return float(f"1e{exponent - 1}")

    def _use_text(self) -> None:
        edit = self.lineEdit()
        self.setValue(self.valueFromText(edit.text() if edit is not None else ""))

    def _number(self, text: str) -> float | None:
        """Return the number of a text, or None. An exponent is allowed, also for integers."""
        number = text.strip().replace(",", ".")
        if self._is_integer:
            parts = INTEGER.fullmatch(number)
            if parts is None or len(number) > MAX_EXPONENT or int(parts[2] or 0) > MAX_EXPONENT:
                return None
            return _checked(int(parts[1]) * 10 ** int(parts[2] or 0))
        try:
            return _checked(float(number))
        except ValueError:
            return None

    def _localized(self, text: str) -> str:
        """Return a text with the decimal sign of the locale."""
        if "." not in text and "," not in text:
            return text
        if self._formatter is None:
            self._formatter = NumberBox()
        self._formatter.setLocale(self.locale())
        return self._formatter.localized(text)


def _checked(number: float) -> float | None:
    """Return a number, or None if it is not finite as a float."""
    try:
        return number if math.isfinite(number) else None
    except OverflowError:
        return None
