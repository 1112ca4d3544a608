"""Format the numbers that users read: in sentences, tables, reports and on the terminal."""

from __future__ import annotations

from math import floor, isfinite, log10

_DIGITS = 3
"""Number of significant digits that users see."""

_SMALLEST = 1e-5
"""Smaller absolute values are shown as 0, because they are rounding errors or negligible."""

_SMALLEST_FIXED = 1e-4
"""Smaller absolute values are shown in scientific notation."""

_SMALLEST_P_VALUE = 0.001


def format_number(value: float, *, signed: bool = False, digits: int = _DIGITS) -> str:
    """Format a number with three significant digits, or as an integer if it is large.

    The result is never a negative zero. ``signed`` also writes the sign of positive numbers.

    Examples
    --------
    >>> [format_number(value) for value in (0.17423, 9.996, 1234.5, -1e-9)]
    ['0.174', '10.0', '1,234', '0']
    >>> format_number(0.02, signed=True)
    '+0.0200'
    """
    if not isfinite(value):
        return f"{value:+}" if signed else str(value)
    size = abs(value)
    if size < _SMALLEST:
        return "0"
    sign = "+" if signed else ""
    if size < _SMALLEST_FIXED:
        return f"{value:{sign}.{digits - 1}e}"
    # Rounding may add a digit (9.996 becomes 10.0), so decimals are counted on the rounded value.
    rounded = float(f"{size:.{digits - 1}e}")
    decimals = digits - 1 - floor(log10(rounded))
    return f"{value:{sign},.{max(decimals, 0)}f}"


def format_fixed(value: float, decimals: int = 3, *, signed: bool = False) -> str:
    """Format a number with a fixed number of decimals, for columns that are aligned.

    The result is never a negative zero.

    Examples
    --------
    >>> [format_fixed(value, signed=True) for value in (0.17423, -0.0001)]
    ['+0.174', '+0.000']
    """
    return f"{value:{'+' if signed else '-'}z.{decimals}f}"


def format_interval(low: float, high: float, *, signed: bool = False) -> str:
    """Format both ends of an interval.

    Examples
    --------
    >>> format_interval(1.1, 1.979)
    '1.10 to 1.98'
    """
    return f"{format_number(low, signed=signed)} to {format_number(high, signed=signed)}"


def format_gap(value: float, low: float, high: float) -> str:
    """Format a signed difference with its interval.

    Examples
    --------
    >>> format_gap(0.0294, -0.0004, 0.0592)
    '+0.029 (+0.000 to +0.059)'
    """
    shown, *ends = (format_fixed(number, signed=True) for number in (value, low, high))
    return f"{shown} ({' to '.join(ends)})"


def format_percent(share: float) -> str:
    """Format a share as a percentage with three significant digits.

    A number that fewer digits represent exactly, such as the level 95%, has fewer digits. A share
    close to 100% has more digits.

    Examples
    --------
    >>> [format_percent(share) for share in (0.95, 0.87004, 0.00051, 0.9999)]
    ['95%', '87.0%', '0.051%', '99.99%']
    """
    if abs(share) < _SMALLEST:
        return "0%"
    percent = 100.0 * share
    text = f"{percent:.{_DIGITS}g}"
    if text == "100":
        return f"{percent:.{2 * _DIGITS}g}%"
    is_exact = abs(float(text) - percent) < _SMALLEST
    return f"{text if is_exact else f'{percent:#.{_DIGITS}g}'.rstrip('.')}%"


def format_p_value(value: float) -> str:
    """Format a p-value. All values below 0.001 have the same format.

    Examples
    --------
    >>> [format_p_value(value) for value in (0.0432, 1e-12)]
    ['0.0432', '<0.001']
    """
    return f"<{_SMALLEST_P_VALUE}" if value < _SMALLEST_P_VALUE else format_number(value)
