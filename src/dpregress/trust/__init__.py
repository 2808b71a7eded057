"""Who adds the noise, and where. Left of the privacy barrier ends here."""

from dpregress.trust.base import TrustModel
from dpregress.trust.central import Central
from dpregress.trust.local import Local, TwoRounds
from dpregress.trust.session import Session
from dpregress.trust.vertical import Vertical

__all__ = ["Central", "Local", "Session", "TrustModel", "TwoRounds", "Vertical"]
