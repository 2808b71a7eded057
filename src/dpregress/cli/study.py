"""``dpregress study``."""

from __future__ import annotations

from pathlib import Path

import click

from dpregress.cli.output import number, print_table, say
from dpregress.cli.places import taken, write_one
from dpregress.display import how_many
from dpregress.errors import InvalidInput

_PATH = click.Path(path_type=Path)
#: Users for whom errors are shown, unless they are given.
_USERS = "1000,10000,100000,1000000"


@click.group()
def study() -> None:
    """Describe a local-privacy study.

    That is what users are asked, how their answers are randomised, and what it can find.

    \b
    Example:
      dpregress study new sleep.toml --public pilot.csv --out sleep.json
      dpregress study plan sleep.json
      dpregress collect serve sleep.json --store sleep.db --admin-key admin.key
    """


@study.command("new")
@click.argument("description", type=_PATH)
@click.option("--public", "public_rows", type=_PATH, help="Public rows of the features (CSV, Parquet).")
@click.option("-o", "--out", type=_PATH, required=True, help="The study file to write (JSON).")
@click.option("--overwrite", is_flag=True, help="Replace an existing file: only before reports are sent.")
@click.option(
    "--two-collectors", "identities", type=_PATH, nargs=2,
    help="Two collectors that hold shares of the answers and add the noise, by what collect identity wrote.",
)  # fmt: skip
def study_new(
    description: Path, public_rows: Path | None, out: Path, overwrite: bool, identities: tuple[Path, Path] | None
) -> None:
    """Make a study from a DESCRIPTION (TOML): questions with bounds and units, budget, times, consent.

    The file never changes afterwards: devices know it by its hash, and every report carries that hash.

    \b
    Example:
      dpregress study new sleep.toml --public pilot.csv --out sleep.json
    """
    from dpregress.collector.drafting import study_from_toml
    from dpregress.collector.shares.holder import load_identity

    with taken(out, overwrite=overwrite) as place:
        made = study_from_toml(description, public_rows, [load_identity(path) for path in identities or ()])
        place.write(made.text())
    _say_study(made)
    say(f"Wrote {out}. Give the hash to participants; `dpregress collect invite` puts it into their links.")


@study.command("plan")
@click.argument("study_file", metavar="STUDY", type=_PATH)
@click.option("--users", default=_USERS, show_default=True, help="Numbers of users, separated by commas.")
@click.option("--public", "public_rows", type=_PATH, help="The public rows from which the study was made.")
def study_plan(study_file: Path, users: str, public_rows: Path | None) -> None:
    """Show the standard errors to expect from STUDY at several numbers of users, before it opens.

    They are those of a study in which nothing explains the response.

    \b
    Example:
      dpregress study plan sleep.json --users 2000,20000 --public pilot.csv
    """
    from dpregress.collector.drafting import expected_errors

    made = load_study(study_file)
    try:
        numbers = [int(each.replace("_", "")) for each in users.split(",")]
    except ValueError as error:
        raise InvalidInput("--users takes whole numbers separated by commas, such as 2000,20000") from error
    if min(numbers) < 1:
        raise InvalidInput("--users takes numbers of at least 1")
    errors = expected_errors(made, numbers, public_rows)
    rows = [[name, *map(number, errors[:, place])] for place, name in enumerate(made.space.features)]
    print_table("Expected standard errors", ["coefficient", *(f"{each:,} users" for each in numbers)], rows)
    say("These are for answers that explain nothing of the response; `collect simulate` has answers that do.")


@study.command("show")
@click.argument("study_file", metavar="STUDY", type=_PATH)
def study_show(study_file: Path) -> None:
    """Show what STUDY asks, what a report costs, and when it is open.

    \b
    Example:
      dpregress study show sleep.json
    """
    made = load_study(study_file)
    terms = made.terms
    assert terms is not None
    language = terms.languages[0]
    rows = []
    for question in terms.questions:
        told = question.encode()
        within = ", ".join(told["levels"]) if "levels" in told else f"{told['lower']:g} to {told['upper']:g}"
        rows.append([question.name, question.text[language], f"{within} {told.get('unit', '')}".strip()])
    print_table(made.title, ["question", "text", "answers"], rows)
    _say_study(made)


@study.command("sign")
@click.argument("study_file", metavar="STUDY", type=_PATH)
@click.option("--key", "key_file", type=_PATH, required=True, help="The signing key, created if needed.")
def study_sign(study_file: Path, key_file: Path) -> None:
    """Sign STUDY, so that participants can tell who stands behind it. The signature is written beside it.

    \b
    Example:
      dpregress study sign sleep.json --key signing.key
    """
    from dpregress.collector.signing import signature_path, study_signature
    from dpregress.mechanisms.randomness import shared_seed
    from dpregress.parties.documents import fingerprint, public_half
    from dpregress.parties.keys import read_secret, write_secret

    made = load_study(study_file)
    if not key_file.exists():
        write_secret(key_file, shared_seed(None))
    key = read_secret(key_file)
    write_one(signature_path(study_file), study_signature(made, key))
    say(f"Signed {made.digest.hex()}: {signature_path(study_file).name}.")
    say(f"Fingerprint of the key: {fingerprint(public_half(key))}")


@study.command("verify")
@click.argument("study_file", metavar="STUDY", type=_PATH)
@click.option("--hash", "digest", help="The hash that was told to participants.")
@click.option("--signed-by", help="Fingerprint of the key that must have signed it.")
def study_verify(study_file: Path, digest: str | None, signed_by: str | None) -> None:
    """Check that STUDY keeps its promise, and optionally that it has this hash and this signature.

    \b
    Example:
      dpregress study verify sleep.json
    """
    from dpregress.collector.signing import check_study_signature, signature_path
    from dpregress.parties.documents import fingerprint_in

    made = load_study(study_file)
    check_hash(made, digest, study_file)
    signature = signature_path(study_file)
    signer = check_study_signature(made, signature) if signature.exists() else None
    if signed_by is not None and signer != fingerprint_in(signed_by, "--signed-by"):
        raise InvalidInput(f"{study_file} is not signed by that key: do not answer it")
    _say_study(made)
    say("Not signed." if signer is None else f"Signed by the key with the fingerprint {signer}.")


def check_hash(made, digest: str | None, study_file: Path) -> None:  # type: ignore[no-untyped-def]  # imported lazily
    """Refuse a study with another hash than the one that was told."""
    if digest is not None and digest.strip().lower() != made.digest.hex():
        raise InvalidInput(f"{study_file} has the hash {made.digest.hex()}, not the one given: do not answer it")


def load_study(path: Path):  # type: ignore[no-untyped-def]
    """A study that a collector can run."""
    from dpregress.collector import Study

    made = Study.load(path)
    if made.terms is None:
        raise InvalidInput(f"{path} has no terms: make it with `dpregress study new`")
    return made


def _say_study(made) -> None:  # type: ignore[no-untyped-def]
    from dpregress.accounting.wording import describe

    told = made.terms.encode()
    say(
        f"Open from {told['opens']} to {told['closes']}, {told['enrolment']} enrolment, one report a user; "
        f"nothing is read out before {how_many(told['minimum'], 'report')}."
    )
    say(
        f"A report costs its user {describe(made.spend)}; users are told epsilon = {told['budget']['epsilon']:g}, "
        f"delta = {told['budget']['delta']:g}."
    )
    if made.holders:
        from dpregress.collector.shares.holder import SHARE_PROMISE, UNBOUNDED

        say("Two collectors hold shares of the answers; each adds the noise to its own sum:")
        for each in made.holders:
            say(f"  {each.name} at {each.address}, fingerprint of its key {each.fingerprint}")
        say(f"Tell participants: {SHARE_PROMISE}; {UNBOUNDED}.")
    say(f"Hash {made.digest.hex()}.")
