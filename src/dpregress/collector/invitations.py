"""Invitations: single-use tokens as links and QR codes. The collector keeps only their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from html import escape
from io import BytesIO

from dpregress.collector.store import Store
from dpregress.collector.wire import TOKEN_BYTES, token_for
from dpregress.errors import InvalidInput
from dpregress.mechanisms.randomness import random_bytes

_MISSING = "QR codes need the segno package: pip install 'dpregress[collector]'"
_STYLE = (
    "body{font-family:sans-serif}section{break-inside:avoid;border-bottom:1px solid;padding:1em 0}"
    "p{overflow-wrap:anywhere}svg{width:14em;height:14em}"
)


def new_tokens(count: int) -> list[bytes]:
    """Tokens that nobody can guess."""
    return [random_bytes(TOKEN_BYTES) for _ in range(count)]


def token_hashes(tokens: Sequence[bytes], holder: int | None) -> list[bytes]:
    """What a store keeps of tokens.

    Parameters
    ----------
    tokens : sequence of bytes
        Those of the invitations.
    holder : int or None
        Which of two collectors keeps them; None where there is one.
    """
    sent = tokens if holder is None else [token_for(token, holder) for token in tokens]
    return [hashlib.sha256(token).digest() for token in sent]


def invite(store: Store, tokens: Sequence[bytes], address: str) -> list[str]:
    """Admit tokens, and return one link for each.

    Parameters
    ----------
    store : Store
    tokens : sequence of bytes
        From :func:`new_tokens`.
    address : str
        Where participants reach the collector, such as ``https://study.example``.
    """
    assert store.study.terms is not None
    if store.study.terms.enrolment != "token":
        raise InvalidInput("this study has open enrolment: it takes no invitations")
    store.issue(token_hashes(tokens, store.holder))
    base = f"{address.rstrip('/')}/study#study={store.study.digest.hex()}"
    return [f"{base}&token={token.hex()}" for token in tokens]


def invitation_sheet(title: str, links: list[str]) -> str:
    """A page to print, with every link as text and as a QR code."""
    sections = "\n".join(
        f'<section><h2>{number}</h2>{_qr_code(link)}<p><a href="{escape(link)}">{escape(link)}</a></p></section>'
        for number, link in enumerate(links, 1)
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n{sections}\n</body></html>\n"
    )


def _qr_code(link: str) -> str:
    try:
        import segno
    except ImportError as error:
        raise InvalidInput(_MISSING) from error
    target = BytesIO()
    segno.make(link, error="m", micro=False).save(
        target, kind="svg", xmldecl=False, svgns=True, omitsize=True, title="QR code of the link"
    )
    return target.getvalue().decode().strip()
