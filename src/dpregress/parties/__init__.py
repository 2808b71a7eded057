"""The vertical protocol between institutions, whose files are signed, checked and joined."""

from dpregress.parties.align import Alignment, align, pseudonym_file
from dpregress.parties.join import JointRelease, join_releases, load_joint
from dpregress.parties.keys import PartyKeys, new_identity, open_identity
from dpregress.parties.plan import (
    Agreement,
    PartyTerms,
    StudyPlan,
    agreement,
    load_plan,
    plan_from_toml,
    signature_text,
)
from dpregress.parties.release import ReleaseFile, make_release, read_release

__all__ = [
    "Agreement",
    "Alignment",
    "JointRelease",
    "PartyKeys",
    "PartyTerms",
    "ReleaseFile",
    "StudyPlan",
    "agreement",
    "align",
    "join_releases",
    "load_joint",
    "load_plan",
    "make_release",
    "new_identity",
    "open_identity",
    "plan_from_toml",
    "pseudonym_file",
    "read_release",
    "signature_text",
]
