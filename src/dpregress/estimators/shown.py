"""How models show themselves: in one line or a few, and in notebooks."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from dpregress.accounting import Ledger
from dpregress.display import shown
from dpregress.errors import abridged
from dpregress.rows.readers.files import is_table

_WIDTH = 88


class ShownMixin(BaseEstimator):
    """A representation that holds no table, and in notebooks the summary of a fitted model."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters that are not the defaults, a table among them by its shape."""
        usual = type(self)().get_params(deep=False)
        given = self.get_params(deep=False)
        parts = [f"{name}={_short(value)}" for name, value in given.items() if not _same(value, usual[name])]
        start = f"{type(self).__name__}("
        text = f"{start}{', '.join(parts)})"
        if len(text) > _WIDTH:
            text = f"{start}{(',' + chr(10) + ' ' * len(start)).join(parts)})"
        return text if len(text) <= 2 * N_CHAR_MAX else f"{text[: 2 * N_CHAR_MAX]}.."

    def _repr_html_inner(self) -> str:
        return self._html() or str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._html() or bundle["text/html"]
        return bundle

    def _html(self) -> str:
        """The summary of a fitted model as HTML; empty before the fit."""
        return str(self.summary().to_html()) if "coefficients_" in vars(self) else ""


def _same(value: Any, usual: Any) -> bool:
    """Whether a parameter has its default, which is a plain value; tables are compared with nothing."""
    return value is usual or (
        type(value) is type(usual) and isinstance(value, str | int | float | tuple) and value == usual
    )


def _short(value: Any) -> str:
    """A parameter in a few words."""
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape and all(isinstance(size, int) for size in shape):
        return f"<{kind} {' x '.join(map(str, shape))}>"
    if is_table(value) or isinstance(value, Ledger) or "__repr__" not in _own(type(value)):
        return f"<{kind}>"
    if isinstance(value, str):
        return abridged(shown(value))
    return abridged(value)


def _own(kind: type) -> set[str]:
    """Names that a class or its bases define, except for those of every object."""
    return {name for base in kind.__mro__ if base is not object for name in vars(base)}
