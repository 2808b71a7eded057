"""Public facts: moments of public rows, schemas, and the spaces that follow from them."""

from dpregress.public.columns import Categorical, Numeric
from dpregress.public.moments import PublicMoments
from dpregress.public.schema import Schema

__all__ = ["Categorical", "Numeric", "PublicMoments", "Schema"]
