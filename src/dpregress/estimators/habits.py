"""Keyword arguments of statsmodels and scikit-learn, refused in the words of this library."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: What to give in place of arguments of other libraries.
_HERE = {
    "sample_weight": "weights=, for survey weights",
    "freq_weights": "weights=, for survey weights",
    "offset": "exposure=np.exp(offset), with a log link",
    "groups": "unit= and max_rows_per_unit=, whose rows are protected together",
    "cov_type": "cov_type= of the estimator",
    "alpha": "level=, which is 1 - alpha",
}


def in_own_names(method: Callable[P, R]) -> Callable[P, R]:
    """The same method, which tells whoever calls it as another library's what the argument is called here."""
    own = inspect.signature(method).parameters

    @wraps(method)
    def call(*args: P.args, **given: P.kwargs) -> R:
        for name in given:
            if name in _HERE and name not in own:
                raise TypeError(f"{method.__name__} takes no {name}=: give {_HERE[name]}")
        return method(*args, **given)

    return call
