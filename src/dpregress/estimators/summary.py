"""A fitted model as text."""

from __future__ import annotations

from dpregress.accounting import PrivacyStatement
from dpregress.display import plain
from dpregress.releases import ClassCoefficients, Coefficients


def summary_of(coefficients: Coefficients | ClassCoefficients, privacy: PrivacyStatement) -> str:
    """A table of coefficients with standard errors, and the guarantee below it."""
    titled = [(f"{one.target} = {name}" if name else "", one) for name, one in coefficients.by_class()]
    width = max(map(len, [*coefficients.features, "(intercept)", *(title for title, _ in titled)]))
    header = f"  {'coefficient':>13}  {'std. error':>13}  {'privacy s.e.':>13}"
    lines: list[str] = []
    for title, one in titled:
        lines.append(f"{title:{width}}{header}")
        lines.append(f"{'(intercept)':{width}}  {one.intercept:13.6g}")
        columns = (one.coef, one.standard_error, one.privacy_error)
        for name, *values in zip(one.features, *columns, strict=True):
            lines.append(f"{name:{width}}  " + "  ".join(f"{value:13.6g}" for value in values))
        lines.append("")
    lines.append(f"n = {coefficients.n}; {privacy.describe()}")
    return "\n".join(map(plain, lines))
