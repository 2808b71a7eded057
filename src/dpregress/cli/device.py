"""``dpregress report``: one device from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpregress.cli.charging import account_options, open_ledger
from dpregress.cli.output import say
from dpregress.cli.places import taken
from dpregress.cli.study import check_hash, load_study
from dpregress.errors import ChargedBefore, InvalidInput

if TYPE_CHECKING:
    from dpregress.accounting import Ledger
    from dpregress.collector import Study

_PATH = click.Path(path_type=Path)


@click.command("report")
@click.argument("study_file", metavar="STUDY", type=_PATH)
@click.option("--hash", "digest", help="The hash of the study, as the invitation states it.")
@click.option("--any-hash", is_flag=True, help="Answer whatever study the file holds: for rehearsals.")
@click.option("--answer", "answers", multiple=True, metavar="NAME=VALUE", help="An answer; give one for each question.")
@click.option("--token", help="The token of the invitation.")
@click.option(
    "-o", "--out", type=_PATH, required=True,
    help="Where the report is kept, to be sent again if needed; with two collectors, a folder of two shares.",
)  # fmt: skip
@account_options("The device's own ledger, charged before an answer is read.")
@click.option(
    "--send", "addresses", multiple=True,
    help="The collector to send it to, such as https://study.example; of two collectors both, as the study names them.",
)  # fmt: skip
def report(
    study_file: Path,
    digest: str | None,
    any_hash: bool,
    answers: tuple[str, ...],
    token: str | None,
    out: Path,
    ledger_file: Path | None,
    dataset: str | None,
    analyst: str | None,
    purpose: str | None,
    addresses: tuple[str, ...],
) -> None:
    """Answer a local-privacy STUDY as one device.

    The answers are randomised here, and the report is kept and sent. (For the report of a fit, open report.html in its
    folder.)

    A report that is there already is sent again as it is: noise is never drawn twice for one study.

    \b
    Example:
      dpregress report sleep.json --any-hash --answer age=44 --answer tired=yes --out report.bin
    """
    from dpregress.accounting.wording import describe

    made = load_study(study_file)
    if (digest is None) != any_hash:
        raise InvalidInput("give the --hash of the study that the invitation states, or --any-hash in a rehearsal")
    check_hash(made, digest, study_file)
    source = "the answers of one user"
    ledger = open_ledger(ledger_file, dataset, analyst, purpose, source=source, out=out, rehearsed=None)
    targets = _targets(addresses, made)
    secret = _token(token, made.terms.enrolment)
    names = _file_names(made)
    if out.exists():
        kept = _kept_reports(out, names, made)
        say(f"{out} holds a report of this study already: it stays as it is.")
    else:
        given = _answers(answers, made.names)
        with taken(out, names, overwrite=False, private=True) as place:
            kept = _reports_of(given, made, secret, ledger)
            place.write(*kept)
        say(f"Wrote {out}: {sum(map(len, kept))} bytes, {describe(made.spend)}.")
    if made.holders:
        from dpregress.collector.shares.holder import SHARE_PROMISE, UNBOUNDED

        say(f"The answers are {SHARE_PROMISE}. Send no collector both files. Note: {UNBOUNDED}.")
    for address, data in zip(targets, kept, strict=bool(targets)):
        _send(address, data)


def _targets(addresses: Sequence[str], made: Study) -> list[str]:
    """Where each report goes; nowhere without ``--send``.

    The addresses of two collectors are part of the study's hash. No other one gets a share, nor one of them both.
    """
    from dpregress.collector.addresses import checked_address

    own = [each.address for each in made.holders]
    if not addresses:
        return []
    if own and sorted(each.rstrip("/") for each in addresses) != sorted(own):
        raise InvalidInput(f"--send takes the addresses in the study, each once: {' and '.join(own)}; nothing was sent")
    if not own and len(addresses) > 1:
        raise InvalidInput("this study has one collector: give --send once")
    for each in addresses:
        checked_address(each)
    return own or [*addresses]


def _file_names(made: Study) -> tuple[str, ...]:
    """The files in the folder of a report of two collectors; none where the report is a file."""
    return tuple(f"{each.name}.share" for each in made.holders)


def _reports_of(given: dict[str, object], made: Study, token: bytes, ledger: Ledger | None) -> list[bytes]:
    """The report, or one share for each of two collectors."""
    from dpregress.collector import device_report, device_shares

    try:
        if made.holders:
            return [each.encode() for each in device_shares(given, made, token=token, ledger=ledger)]
        return [device_report(given, made, token=token, ledger=ledger).encode()]
    except ChargedBefore:
        raise InvalidInput(
            "this device has reported to this study before: give the --out of that report to send it again; where none "
            "was written, nothing was sent, and this device takes no further part (docs/collector/device.md)"
        ) from None


def _kept_reports(out: Path, names: Sequence[str], made: Study) -> list[bytes]:
    """The reports that were written before; InvalidInput for other files."""
    from dpregress.collector.admission import REASONS, Admission
    from dpregress.collector.store import Outcome
    from dpregress.parties.documents import read_bytes

    found = []
    for place, name in enumerate(names or [""]):
        rules, path = Admission(made, holder=place if names else None), out / name
        try:
            data = read_bytes(path, rules.length)
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: choose another --out") from error
        outcome = rules.check(data)
        if isinstance(outcome, Outcome) and outcome.reason not in ("early", "late"):
            raise InvalidInput(f"{path} is no report of this study: {REASONS[outcome.reason or 'wrong-size']}")
        found.append(data)
    return found


def _send(address: str, data: bytes) -> None:
    from dpregress.collector.sending import Connection

    with Connection(address) as connection:
        status, told = connection.send(data)
    if status not in (200, 201):
        raise InvalidInput(f"the collector refused the report: {told.get('detail', status)}")
    say("The collector has stored it." if status == 201 else "The collector had stored it before.")


def _answers(given: tuple[str, ...], names: tuple[str, ...]) -> dict[str, object]:
    found: dict[str, object] = dict.fromkeys(names)
    for each in given:
        name, mark, value = each.partition("=")
        if not mark or name not in found:
            raise InvalidInput(f"--answer takes NAME=VALUE, with a name of {', '.join(names)}")
        found[name] = value
    return found


def _token(text: str | None, enrolment: str) -> bytes:
    """The token as bytes; zeros with open enrolment."""
    if (text is None) != (enrolment == "open"):
        raise InvalidInput(
            "this study has open enrolment: leave --token out" if text is not None else "this study needs --token"
        )
    if text is None:
        return bytes(32)
    with suppress(ValueError):
        found = bytes.fromhex(text.strip())
        if len(found) == 32:
            return found
    raise InvalidInput("--token takes the 64 hexadecimal digits of the invitation")
