"""What the steps of ``dpregress vertical`` share: files that they read, and lines that they print."""

from __future__ import annotations

from pathlib import Path

from dpregress.cli.output import say
from dpregress.cli.places import taken
from dpregress.errors import InvalidInput

SIGNATURE = "{}.signature.json"


def read_agreement(plan_file: Path):  # type: ignore[no-untyped-def]  # imported lazily
    """The plan with the signatures beside it."""
    from dpregress.parties import agreement, load_plan

    made = load_plan(plan_file)
    signatures = [plan_file.parent / SIGNATURE.format(terms.name) for terms in made.parties]
    absent = [path.name for path in signatures if not path.exists()]
    if absent:
        raise InvalidInput(
            f"no {', '.join(absent)} beside {plan_file}: every party signs with `dpregress vertical sign`"
        )
    return agreement(made, signatures)


def say_keys(agreed) -> None:  # type: ignore[no-untyped-def]
    """Whose keys signed: a signature proves no more than that somebody held the key beside it."""
    from dpregress.parties.documents import fingerprint

    for terms in agreed.plan.parties:
        known = "named in the plan" if terms.key else f"not in the plan: compare it with the one {terms.name} reports"
        say(f"Key of {terms.name}: {fingerprint(agreed.public_keys[terms.name])} ({known})")


def read_pseudonyms(agreed, party: str, data: Path | None, key: bytes, mock: bool):  # type: ignore[no-untyped-def]
    from dpregress.parties.align import mock_pseudonyms, pseudonyms_of
    from dpregress.rows.readers.files import read

    if mock:
        return mock_pseudonyms(agreed.plan.n, key)
    if data is None:
        raise InvalidInput(f"give the table of {party}, or --mock for invented people")
    return pseudonyms_of(read(data, agreed.plan.identifiers), agreed.plan.identifiers, key)


def read_design(terms, data: Path | None):  # type: ignore[no-untyped-def]
    from dpregress.rows.readers.files import read

    if data is None:
        raise InvalidInput(f"give the table of {terms.name}, or --mock for invented rows")
    encoder = terms.encoder
    table = read(data, encoder.needed)
    encoder.check_types(table.schema)
    return encoder.x(table)


def dry_run_release(agreed, party: str, identity, data: Path | None, ledger, written: Path) -> None:  # type: ignore[no-untyped-def]
    """The dry run of a release: the columns of the table by their names and types, and what would be charged."""
    from dpregress.parties.release import rehearse_release
    from dpregress.rows.design.encoder import present
    from dpregress.rows.readers.files import read_files

    if data is None:
        raise InvalidInput(f"give the table of {party}, or --mock for invented people")
    terms, reader = agreed.plan.party(party), read_files(data)
    present((*agreed.plan.identifiers, *terms.encoder.needed), reader.schema.names, reader.name)
    terms.encoder.check_types(reader.schema)
    with taken(written, overwrite=True):
        pass
    rehearse_release(agreed, party, identity, ledger)


def read_ends(family: str, classes: str | None) -> tuple[float, float] | None:
    """The two values of a binomial response, the lower first; None for a number."""
    from dpregress.public import Numeric

    if family != "binomial":
        if classes is not None:
            raise InvalidInput("--classes goes with --family binomial")
        return None
    text = "0,1" if classes is None else classes
    try:
        lower, upper = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InvalidInput(f"--classes takes two numbers here, as 0,1, not {text!r}") from error
    if not lower < upper:
        raise InvalidInput("--classes takes the lower value first")
    return Numeric(lower, upper).bounds or (lower, upper)  # which refuses what cannot be computed with


def say_person(person, delta: float) -> None:  # type: ignore[no-untyped-def]
    say(
        f"A person is in every party's release. Over all releases, mu = {person.mu:.4g}, "
        f"epsilon = {person.epsilon(delta):.4g} at delta = {delta:g}."
    )


def joint_page(joined, found, response, *, file: str, software: str) -> str:  # type: ignore[no-untyped-def]
    """The report of a regression on joined releases: intervals where the releases allow them."""
    from dpregress.estimators.provenance import made_now
    from dpregress.estimators.summary import summary_of
    from dpregress.estimators.vertical_estimates import joint_estimates
    from dpregress.reports import Fitted, fit_facts, fit_page

    known = response.family == "gaussian" and joined.joint.kept is not None
    estimates = joint_estimates(joined.joint, found.target, found.features) if known else None
    summary = summary_of("Joint regression", found, joined.person, response=response, estimates=estimates)
    promised = (f"{party}: {each.describe()}" for party, each in zip(joined.parties, joined.per_party, strict=True))
    invented = "INVENTED ROWS " if joined.mock else ""
    facts = (
        *fit_facts(summary, response=response, provenance=made_now(f"{invented}{file}"), ledgers=None),
        ("Parties", "; ".join(promised)),
    )
    fitted = Fitted("Coefficients", found, joined.person, summary, facts=facts, response=response)
    return fit_page(f"{found.target} at {len(joined.parties)} parties", [fitted], software=software)
