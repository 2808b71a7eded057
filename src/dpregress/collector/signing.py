"""Signatures of studies: who stands behind the terms."""

from __future__ import annotations

import json
from pathlib import Path

from dpregress.collector.study import Study
from dpregress.errors import InvalidInput
from dpregress.parties.documents import LARGEST_TERMS, check_signature, fingerprint, load_document, public_half, signed

_SIGNATURE = "dpregress.study-signature/1"


def study_signature(study: Study, private_key: bytes) -> str:
    """The signature of a study's hash as a document.

    Parameters
    ----------
    study : Study
    private_key : bytes
        Ed25519, 32 bytes.
    """
    record = {"format": _SIGNATURE, "study": study.digest.hex(), "key": public_half(private_key)}
    return signed(record, private_key)


def check_study_signature(study: Study, path: str | Path) -> str:
    """The fingerprint of the key that signed a study.

    Raises
    ------
    InvalidInput
        If the file is no signature, or one of another study, or not valid.
    """
    record = load_document(path, _SIGNATURE, most=LARGEST_TERMS)
    if record.get("study") != study.digest.hex():
        raise InvalidInput(f"{path} signs another study: sign this one with `dpregress study sign`")
    check_signature(record, str(record.get("key")), str(path))
    return fingerprint(str(record["key"]))


def signature_path(study_file: Path) -> Path:
    """Where the signature of a study file stands: beside it."""
    return study_file.with_name(f"{study_file.stem}.signature.json")


def signature_beside(study: Study, study_file: Path) -> bytes | None:
    """The checked signature that stands beside a study file, or None if there is none."""
    path = signature_path(study_file)
    if not path.exists():
        return None
    check_study_signature(study, path)
    return json.dumps(json.loads(path.read_text(encoding="utf-8"))).encode()
