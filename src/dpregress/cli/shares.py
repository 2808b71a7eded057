"""``dpregress collect`` for studies of two collectors: identities, lists, noisy sums, and the fit to both."""

from __future__ import annotations

from pathlib import Path

import click

from dpregress.cli.charging import account_options, open_ledger
from dpregress.cli.output import number, print_table, say
from dpregress.cli.places import taken, write_one
from dpregress.cli.study import load_study
from dpregress.errors import InvalidInput

_PATH = click.Path(path_type=Path)
_STORE = click.option("--store", required=True, help="The store of this collector.")
_KEY = click.option("--key", "key_file", type=_PATH, required=True, help="This collector's signing key.")
_OUT = click.option("-o", "--out", type=_PATH, required=True, help="The file to write.")


@click.command("identity")
@click.option("--name", required=True, help="A short name of this collector, such as clinic.")
@click.option("--address", required=True, help="Where devices reach it, such as https://clinic.example.")
@click.option("--key", "key_file", type=_PATH, required=True, help="Its signing key, created if needed.")
@_OUT
def collect_identity(name: str, address: str, key_file: Path, out: Path) -> None:
    """Write who this collector is, for a study of two collectors: its name, address and public key.

    \b
    Example:
      dpregress collect identity --name clinic --address https://clinic.example --key clinic.key --out clinic.json
    """
    from dpregress.collector.shares.holder import identity_text, load_identity
    from dpregress.mechanisms.randomness import shared_seed
    from dpregress.parties.keys import read_secret, write_secret

    if not key_file.exists():
        write_secret(key_file, shared_seed(None))
        say(f"Made the signing key {key_file}: keep it secret.")
    write_one(out, identity_text(name, address, read_secret(key_file)))
    say(f"Wrote {out}. Fingerprint of the key: {load_identity(out).fingerprint}")


@click.command("admit")
@click.argument("study_file", metavar="STUDY", type=_PATH)
@_STORE
@_KEY
@click.option("--hashes", type=_PATH, required=True, help="What the other collector wrote by collect invite.")
def collect_admit(study_file: Path, store: str, key_file: Path, hashes: Path) -> None:
    """Admit the invitations that the other collector of STUDY has made. The file holds hashes and no tokens.

    \b
    Example:
      dpregress collect admit two.json --store university.db --key university.key --hashes hashes.txt
    """
    from dpregress.cli.collect import holder_in
    from dpregress.collector.store import open_store
    from dpregress.parties.documents import LARGEST_DOCUMENT, read_bytes

    made = load_study(study_file)
    unread = f"{hashes} does not hold hashes of invitations, one a line: ask for the file again"
    try:
        found = [bytes.fromhex(line) for line in read_bytes(hashes, LARGEST_DOCUMENT).decode("ascii").split()]
    except ValueError as error:
        raise InvalidInput(unread) from error
    if not found or {len(each) for each in found} != {32} or len(set(found)) < len(found):
        raise InvalidInput(unread)
    with open_store(store, made, holder_in(made, key_file)) as opened:
        new = opened.admit(found)
    say(f"Admitted {len(found):,} invitations: {new:,} new, {len(found) - new:,} admitted before.")


@click.command("list")
@_STORE
@_KEY
@_OUT
def collect_list(store: str, key_file: Path, out: Path) -> None:
    """Close one of two collectors, and write the signed list of the reports that it holds, for the other one.

    From then on the collector takes no more reports. The list holds random ids, and tells nothing of any answer.

    \b
    Example:
      dpregress collect list --store clinic.db --key clinic.key --out clinic.list
    """
    from dpregress.collector.shares.lists import close_list
    from dpregress.collector.store import open_store
    from dpregress.parties.keys import read_secret

    with open_store(store) as opened:
        text = close_list(opened, read_secret(key_file))
        n = opened.sealed
    write_one(out, text)
    say(f"Wrote {out}: {n:,} reports. This collector takes no more. Give the list to the other collector.")


@click.command("sum")
@_STORE
@_KEY
@click.option("--other", type=_PATH, required=True, help="The list of the other collector.")
@account_options("A ledger of the participants, charged once for the study.")
@_OUT
def collect_sum(
    store: str,
    key_file: Path,
    other: Path,
    ledger_file: Path | None,
    dataset: str | None,
    analyst: str | None,
    purpose: str | None,
    out: Path,
) -> None:
    """Write the noisy sum of this collector's shares, over the reports that both collectors hold.

    It is charged before noise is drawn, and kept before it is written. There is one sum: the command writes the same
    one when it is run again.

    \b
    Example:
      dpregress collect sum --store clinic.db --key clinic.key --other university.list --out clinic.sum
    """
    from dpregress.accounting.wording import describe
    from dpregress.collector.shares.lists import load_list
    from dpregress.collector.shares.noisy_sums import load_share_sum, release_share_sum
    from dpregress.collector.store import open_store
    from dpregress.parties.keys import read_secret

    source = "the shares that one of two collectors holds"
    ledger = open_ledger(ledger_file, dataset, analyst, purpose, source=source, out=out, rehearsed=None)
    with open_store(store) as opened:
        text = release_share_sum(opened, read_secret(key_file), load_list(other, opened.study), ledger=ledger)
        made = opened.study
    write_one(out, text)
    say(f"Wrote {out}: {load_share_sum(out, made).n:,} reports that both collectors hold.")
    against = "against whoever does not know this collector's shares"
    if ledger is not None:
        say(f"Each user spent {describe(made.spend)} {against}.")
        return
    cost = f"The sum costs each user {describe(made.spend)} {against}"
    say(f"{cost}. This command charged no ledger: run it again with --ledger.")
    say("The store alone records the sum: an older copy of it would draw other noise. Keep none, or give --ledger.")


@click.command("join")
@click.argument("study_file", metavar="STUDY", type=_PATH)
@click.argument("sums", metavar="SUM SUM", type=_PATH, nargs=2)
@click.option("--public", "public_rows", type=_PATH, help="The public rows of the study.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option("-o", "--out", type=_PATH, help="Folder for model.json and privacy.json.")
@click.option("--overwrite", is_flag=True, help="Replace an existing model.")
def collect_join(
    study_file: Path, sums: tuple[Path, Path], public_rows: Path | None, level: float, out: Path | None, overwrite: bool
) -> None:
    """Add the noisy sums of both collectors of STUDY, and fit its model. This costs nobody anything.

    \b
    Example:
      dpregress collect join two.json clinic.sum university.sum --public pilot.csv --out two-model
    """
    from dpregress.accounting.wording import describe
    from dpregress.collector.shares.holder import SHARE_PROMISE, UNBOUNDED
    from dpregress.collector.shares.joining import read_joined
    from dpregress.collector.shares.noisy_sums import load_share_sum
    from dpregress.estimators.saving import MODEL_FILES, model_documents

    made = load_study(study_file)
    if not made.holders:
        raise InvalidInput(f"{study_file} has one collector: read it out with `dpregress collect fit`")
    found = read_joined(made, [load_share_sum(path, made) for path in sums], public=public_rows, level=level)
    if out is not None:
        with taken(out, MODEL_FILES, overwrite=overwrite) as place:
            place.write(*model_documents(found.model))
    columns = ("coef", "estimate", "standard_error", "lower", "upper")
    told = found.encode()["coefficients"]
    rows = [[each["name"], *("" if each[key] is None else number(each[key]) for key in columns)] for each in told]
    header = ["", "private", "unshrunk", "std. error", f"from ({100 * level:g}%)", "to"]
    print_table(f"{made.title}: {found.n:,} reports", header, rows)
    if any(each["lower"] is None for each in told):
        say(_why_blank(public_rows is not None, str(found.model.family)))
    say(f"Each user spent {describe(made.spend)}: {SHARE_PROMISE}.")
    say(f"Note: {UNBOUNDED}.")
    if out is not None:
        say(f"Wrote {' and '.join(MODEL_FILES)} in {out}.")


def _why_blank(public: bool, family: str) -> str:
    """Why there are no intervals."""
    if not public and family != "gaussian":
        return "No intervals without --public, the public rows of the study."
    return (
        "No intervals: the noise is too large for an unshrunk fit to so few reports, or the public rows differ too "
        "much from the people who reported."
    )


#: The commands, in the group of the collector.
SHARE_COMMANDS = (collect_identity, collect_admit, collect_list, collect_sum, collect_join)
