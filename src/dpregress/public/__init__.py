"""Public facts: moments of public rows, schemas, and the frames that follow from them."""

from dpregress.public.moments import PublicMoments
from dpregress.public.schema import Categorical, Numeric, Schema

__all__ = ["Categorical", "Numeric", "PublicMoments", "Schema"]
