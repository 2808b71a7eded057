"""A fitted model as text."""

from __future__ import annotations

from dpregress.accounting import PrivacyStatement
from dpregress.releases import Coefficients


def summary_of(coefficients: Coefficients, privacy: PrivacyStatement) -> str:
    """A table of coefficients with standard errors, and the guarantee below it."""
    width = max([len(name) for name in coefficients.features] + [len("(intercept)")])
    lines = [f"{'':{width}}  {'coefficient':>13}  {'std. error':>13}  {'of it privacy':>13}"]
    lines.append(f"{'(intercept)':{width}}  {coefficients.intercept:13.6g}")
    columns = (coefficients.coef, coefficients.standard_error, coefficients.privacy_error)
    for name, *values in zip(coefficients.features, *columns, strict=True):
        lines.append(f"{name:{width}}  " + "  ".join(f"{value:13.6g}" for value in values))
    lines.append("")
    lines.append(f"n = {coefficients.n}; {privacy.describe()}")
    return "\n".join(lines)
