"""``dpregress vertical``: regression across institutions, step by step."""

from __future__ import annotations

from pathlib import Path

import click

from dpregress.cli.charging import charging_options, open_ledger
from dpregress.cli.families import FamilyChoice, party_families
from dpregress.cli.output import number, print_table, say
from dpregress.cli.parties import (
    SIGNATURE,
    dry_run_release,
    joint_page,
    read_agreement,
    read_design,
    read_ends,
    read_pseudonyms,
    say_keys,
    say_person,
)
from dpregress.cli.places import taken, write_one
from dpregress.errors import InvalidInput, LedgerError

_PATH = click.Path(path_type=Path)
#: A correlation with a standard deviation of this or more is of no use.
_USELESS = 0.5
_RELEASE = "{}.release.json"
_PSEUDONYMS = "{}.pseudonyms.json"


@click.group()
def vertical() -> None:
    """Regress on columns that several institutions hold.

    The columns are those of the same people. No party sends a row to another. The parties agree on a plan, sign it,
    and align their people under a key that the analyst never has. Each party releases one noisy file. From all
    files, anyone can regress any column on any others.

    \b
    Example:
      dpregress vertical plan study.toml --key alignment.key --out shared      one party, for all
      dpregress vertical sign shared/plan.json --party clinic --keys clinic-keys
      dpregress vertical align shared/plan.json clinic.csv --party clinic --keys clinic-keys \\
          --key alignment.key --exchange parties-only
      dpregress vertical release shared/plan.json clinic.csv --party clinic --keys clinic-keys \\
          --key alignment.key --exchange parties-only --ledger clinic.db --dataset clinic --out public
      dpregress vertical join shared/plan.json public/*.release.json --out public
      dpregress vertical fit public/joint.json --target cost --out cost-model
    """


@vertical.command("keys")
@click.option("--keys", type=_PATH, required=True, help="The party's own folder of secrets, created if needed.")
def vertical_keys(keys: Path) -> None:
    """Make a party's signing key, if it has none, and print its fingerprint.

    If the terms state this fingerprint, as key = "..." of the party, the plan accepts no other key.

    \b
    Example:
      dpregress vertical keys --keys clinic-keys
    """
    from dpregress.parties import new_identity, open_identity
    from dpregress.parties.documents import fingerprint
    from dpregress.parties.keys import has_identity

    identity = open_identity(keys) if has_identity(keys) else new_identity(keys)
    click.echo(f"Fingerprint of the key in {keys}: {fingerprint(identity.public_key)}")


@vertical.command("plan")
@click.argument("terms", type=_PATH)
@click.option("--key", "key_file", type=_PATH, required=True, help="The alignment key, created if needed.")
@click.option("--out", type=_PATH, required=True, help="Folder for plan.json.")
@click.option("--confirm-delta", is_flag=True, help="Allow a delta above one over the number of people.")
@click.option("--overwrite", is_flag=True, help="Replace an existing plan.")
def vertical_plan(terms: Path, key_file: Path, out: Path, confirm_delta: bool, overwrite: bool) -> None:
    """Make a plan from TERMS (TOML): parties, their keys, columns, bounds, units, n, budgets, row rule.

    The length k of the row sketch follows from n, the columns and the budgets, unless TERMS gives it. The plan
    commits to the alignment key: give the key to every party and never to the analyst.

    \b
    Example:
      dpregress vertical plan study.toml --key alignment.key --out shared
    """
    from dpregress.accounting import Relation, check_delta_confirmed
    from dpregress.mechanisms.randomness import shared_seed
    from dpregress.parties import plan_from_toml
    from dpregress.parties.documents import digest, document_text
    from dpregress.parties.keys import committed, read_secret, write_secret
    from dpregress.rows.memory import check_mixture_fits

    with taken(out / "plan.json", overwrite=overwrite) as place:
        secret = read_secret(key_file) if key_file.exists() else shared_seed(None)
        made = plan_from_toml(terms, key_commitment=committed(secret))
        check_mixture_fits(made.k, [len(party.encoder.features) for party in made.parties])
        for party in made.parties if not confirm_delta else ():
            check_delta_confirmed(party.budget, made.n, Relation.REPLACE_ONE)
        if not key_file.exists():
            write_secret(key_file, secret)
        place.write(document_text(made.encode()))
    rows = [
        [party.name, ", ".join(party.encoder.features), number(party.budget.epsilon0), number(party.budget.delta0)]
        for party in made.parties
    ]
    print_table(
        f"{made.study}: {made.n:,} people, sketched in {made.k:,} rows", ["party", "columns", "epsilon", "delta"], rows
    )
    useless = ": too large to be useful, so plan for more people or budget" if made.deviation >= _USELESS else ""
    say(f"A correlation between two parties will have a standard deviation of about {made.deviation:.2f}{useless}.")
    say_person(made.person, max(party.budget.delta0 for party in made.parties))
    named = {terms.name: terms.key for terms in made.parties if terms.key is not None}
    say("Keys named in the plan: " + (", ".join(f"{who} {key}" for who, key in named.items()) or "none") + ".")
    say(f"Digest {digest(made.encode())}. Wrote plan.json in {out}: every party signs it.")


@vertical.command("sign")
@click.argument("plan_file", metavar="PLAN", type=_PATH)
@click.option("--party", required=True, help="Party that signs.")
@click.option("--keys", type=_PATH, required=True, help="The party's own folder of secrets, created if needed.")
def vertical_sign(plan_file: Path, party: str, keys: Path) -> None:
    """Sign PLAN as a party, and commit to a share of the sketch's seed.

    The signature is written beside PLAN. A signature of the same plan with other keys is not replaced.

    \b
    Example:
      dpregress vertical sign shared/plan.json --party clinic --keys clinic-keys
    """
    from dpregress.parties import load_plan, new_identity, open_identity, signature_text
    from dpregress.parties.documents import fingerprint
    from dpregress.parties.keys import has_identity
    from dpregress.parties.plan import check_unsigned
    from dpregress.rows.memory import check_mixture_fits

    made = load_plan(plan_file)
    made.party(party)
    check_mixture_fits(made.k, [len(terms.encoder.features) for terms in made.parties])
    name = SIGNATURE.format(party)
    known = open_identity(keys) if has_identity(keys) else None
    check_unsigned(made, party, known, plan_file.parent / name)
    identity = known or new_identity(keys)
    write_one(plan_file.parent / name, signature_text(made, party, identity))
    signed = [terms.name for terms in made.parties if (plan_file.parent / SIGNATURE.format(terms.name)).exists()]
    say(f"{party} has signed: {name}. Signed by {', '.join(signed)} of {len(made.parties)} parties.")
    say(f"Fingerprint of {party}'s key: {fingerprint(identity.public_key)}")


@vertical.command("align")
@click.argument("plan_file", metavar="PLAN", type=_PATH)
@click.argument("data", type=_PATH, required=False)
@click.option("--party", required=True)
@click.option("--keys", type=_PATH, required=True, help="The party's own folder of secrets.")
@click.option("--key", "key_file", type=_PATH, required=True, help="The alignment key that the parties share.")
@click.option("--exchange", type=_PATH, required=True, help="A folder that the parties share, closed to the analyst.")
@click.option("--mock", is_flag=True, help="Invented people instead of DATA.")
def vertical_align(
    plan_file: Path, data: Path | None, party: str, keys: Path, key_file: Path, exchange: Path, mock: bool
) -> None:
    """Write keyed pseudonyms of the people in DATA, and check those of the other parties once all are there.

    The file tells the other parties which pseudonyms this party holds, and so whether it holds anybody whose
    identifiers they can guess. It also reveals the party's share of the sketch's seed. Run the command again when
    the others have run it: it then says whether all agree on the same people. Only its owner can read the file:
    pass it on to parties only. Invented people never replace real ones.

    \b
    Example:
      dpregress vertical align shared/plan.json clinic.csv --party clinic --keys clinic-keys \\
          --key alignment.key --exchange parties-only
    """
    from dpregress.parties import align as aligned
    from dpregress.parties import open_identity, pseudonym_file
    from dpregress.parties.align import check_key, check_not_real
    from dpregress.parties.keys import read_secret

    agreed = read_agreement(plan_file)
    agreed.plan.party(party)
    key = read_secret(key_file)
    check_key(agreed, key)
    identity = open_identity(keys)
    pseudonyms = read_pseudonyms(agreed, party, data, key, mock)
    if mock:
        check_not_real(exchange / _PSEUDONYMS.format(party))
    text = pseudonym_file(agreed, party, identity, pseudonyms, mock=mock)
    write_one(exchange / _PSEUDONYMS.format(party), text, private=True)
    files = {terms.name: exchange / _PSEUDONYMS.format(terms.name) for terms in agreed.plan.parties}
    waiting = [name for name, path in files.items() if not path.exists()]
    if waiting:
        say(f"Wrote {party}'s pseudonyms in {exchange}. Waiting for {', '.join(waiting)}.")
        return
    found = aligned(agreed, files, key)
    say(f"All parties agree on {len(found.pseudonyms):,} people: commitment {found.commitment[:16]}.")
    say_keys(agreed)


@vertical.command("release")
@click.argument("plan_file", metavar="PLAN", type=_PATH)
@click.argument("data", type=_PATH, required=False)
@click.option("--party", required=True)
@click.option("--keys", type=_PATH, required=True, help="The party's own folder of secrets; keeps the release too.")
@click.option("--key", "key_file", type=_PATH, required=True, help="The alignment key.")
@click.option("--exchange", type=_PATH, required=True, help="The folder of all parties' pseudonyms.")
@charging_options("The party's ledger (see `dpregress ledger new`).")
@click.option("--out", type=_PATH, required=True, help="Folder for the release.")
@click.option("--mock", is_flag=True, help="Invented rows instead of DATA: nothing is charged.")
def vertical_release(
    plan_file: Path,
    data: Path | None,
    party: str,
    keys: Path,
    key_file: Path,
    exchange: Path,
    ledger_file: Path | None,
    dataset: str | None,
    analyst: str | None,
    purpose: str | None,
    dry_run: bool,
    out: Path,
    mock: bool,
) -> None:
    """Charge the ledger and release the party's columns of DATA, once.

    If it is run again, it writes the same file and charges nothing, because fresh noise on the same rows would cost
    again. A cell that is missing or not a number counts as the released mean of its column. If several rows are about
    one person, the first counts.

    \b
    Example:
      dpregress vertical release shared/plan.json clinic.csv --party clinic --keys clinic-keys \\
          --key alignment.key --exchange parties-only --ledger clinic.db --dataset clinic --out public
    """
    from dpregress.inputs.described import described_table
    from dpregress.parties import align as aligned
    from dpregress.parties import make_release, open_identity, read_release
    from dpregress.parties.align import in_order, order_check, row_order
    from dpregress.parties.keys import read_secret
    from dpregress.parties.release import mock_rows

    agreed = read_agreement(plan_file)
    terms = agreed.plan.party(party)
    name = _RELEASE.format(party)
    kept = keys / f"{agreed.digest[:16]}{'.mock' if mock else ''}.{name}"
    if kept.exists():
        read_release(agreed, kept)
        write_one(out / name, kept.read_text(encoding="utf-8"))
        say(f"Released before: the same file again, nothing charged. Wrote {name} in {out}.")
        return
    if not mock and (ledger_file is None or dataset is None):
        raise LedgerError("real rows are released against a ledger: give --ledger and --dataset")
    if mock and dry_run:
        raise InvalidInput("--dry-run goes with real rows: --mock charges nothing")
    source = "" if data is None else described_table(data)
    ledger = None
    if not mock:
        ledger = open_ledger(ledger_file, dataset, analyst, purpose, source=source, out=out / name, rehearsed=None)
    key = read_secret(key_file)
    identity = open_identity(keys)
    files = {each.name: exchange / _PSEUDONYMS.format(each.name) for each in agreed.plan.parties}
    people = aligned(agreed, files, key)
    if people.mock != mock:
        raise InvalidInput("the parties aligned " + ("invented people: add --mock" if people.mock else "real people"))
    if dry_run:
        dry_run_release(agreed, party, identity, data, ledger, out / name)
        return
    pseudonyms = read_pseudonyms(agreed, party, data, key, mock)
    order = row_order(people, pseudonyms)
    rows = in_order(mock_rows(agreed, party) if mock else read_design(terms, data), order)
    check = order_check(people, key, pseudonyms, order)
    text = make_release(agreed, party, identity, people, rows, check, ledger)
    write_one(kept, text, private=True)
    write_one(out / name, text)
    spent = (
        "Invented rows: nothing charged." if mock else f"Charged epsilon = {terms.budget.epsilon0:g} to {ledger_file}."
    )
    say(f"{spent} Wrote {name} in {out}; the same file stays in {keys}.")


@vertical.command("inspect")
@click.argument("file", type=_PATH)
@click.option("--plan", "plan_file", type=_PATH, required=True, help="The signed plan.")
def vertical_inspect(file: Path, plan_file: Path) -> None:
    """Show a governance officer what a release FILE holds, and whether it is what the plan allows.

    \b
    Example:
      dpregress vertical inspect public/clinic.release.json --plan shared/plan.json
    """
    from dpregress.parties import read_release
    from dpregress.releases import Isotropic

    agreed = read_agreement(plan_file)
    found = read_release(agreed, file)
    moments, mixture = found.release.moments, found.release.mixture
    assert isinstance(moments.noise, Isotropic)
    assert isinstance(mixture.noise, Isotropic)
    looked = found.release.found
    ends = 0 if looked is None else 2 * len(looked.ranges.places)
    rows = [["ranges of the numbers, by two histograms of each", f"{ends:,}", "in them"]] if ends else []
    rows += [
        [
            "sums of the columns and of their products, in units of half their ranges",
            f"{len(moments.total) * (len(moments.total) + 1) // 2:,}",
            number(moments.noise.sigma),
        ],
        [
            f"sketch of all {mixture.n:,} people: {mixture.k:,} rows of signed sums",
            f"{mixture.total.size:,}",
            number(mixture.noise.sigma * mixture.unit),
        ],
    ]
    terms = agreed.plan.party(found.party)
    title = f"{found.party}: {', '.join(terms.encoder.features)}" + (" (INVENTED ROWS)" if found.mock else "")
    print_table(title, ["what it holds", "numbers", "noise sd"], rows)
    say("No number in it belongs to one person: noise was added to each. It holds no identifier and no pseudonym.")
    say(
        f"Budget: epsilon = {terms.budget.epsilon0:g}, delta = {terms.budget.delta0:g} "
        f"for these columns of any one person (mu = {terms.promise.mu:.4g})."
    )
    say_person(agreed.plan.person, terms.budget.delta0)
    say(f"Signed by {found.party}; agreement {agreed.digest}.")
    say_keys(agreed)


@vertical.command("join")
@click.argument("plan_file", metavar="PLAN", type=_PATH)
@click.argument("releases", nargs=-1, type=_PATH, required=True)
@click.option("--out", type=_PATH, required=True, help="Folder for joint.json.")
@click.option("--overwrite", is_flag=True, help="Replace an existing joint.json.")
def vertical_join(plan_file: Path, releases: tuple[Path, ...], out: Path, overwrite: bool) -> None:
    """Check the RELEASES of all parties against PLAN and each other, and join them.

    The command refuses releases that are changed, cut off, repeated or missing, and those of another agreement, of
    other people or in another order. It flags shared columns that do not agree. It costs nothing, because it uses
    only what was released.

    \b
    Example:
      dpregress vertical join shared/plan.json public/clinic.release.json public/lab.release.json --out public
    """
    from dpregress.parties import join_releases
    from dpregress.parties.join import joint_text

    with taken(out / "joint.json", overwrite=overwrite) as place:
        agreed = read_agreement(plan_file)
        joined = join_releases(agreed, releases)
        place.write(joint_text(joined))
    columns = joined.joint.moments.space.features
    invented = " of INVENTED ROWS" if joined.mock else ""
    say(f"Joined {len(joined.parties)} releases{invented}: {', '.join(columns)}. Wrote joint.json in {out}.")
    for flag in joined.flags:
        say(f"Flag: {flag}.")
    say_keys(agreed)


@vertical.command("fit")
@click.argument("joint_file", metavar="JOINT", type=_PATH)
@click.option("--target", required=True, help="Any column of any party.")
@click.option("--features", help="Columns, separated by commas [default: all others].")
@click.option(
    "--family", type=FamilyChoice(party_families), default="gaussian", show_default=True,
    help="Family of the response: a number, or one of two classes.",
)  # fmt: skip
@click.option("--classes", help="The two values of a binomial target, the lower first [default: 0,1].")
@click.option("--out", type=_PATH, required=True, help="Folder for model.json, privacy.json and report.html.")
@click.option("--overwrite", is_flag=True, help="Replace an existing model.")
def vertical_fit(
    joint_file: Path,
    target: str,
    features: str | None,
    family: str,
    classes: str | None,
    out: Path,
    overwrite: bool,
) -> None:
    """Regress a column of JOINT on others. This is free, as often as you like.

    To predict for tables with categorical columns, give `dpregress predict` a --schema of these columns: a joint
    release knows only indicators such as smoker=yes.

    \b
    Examples:
      dpregress vertical fit public/joint.json --target cost --features age,dose --out cost-model
      dpregress vertical fit public/joint.json --target smoker=yes --family binomial --out smoker-model
    """
    from dpregress import __version__
    from dpregress.cli.tables import split_names
    from dpregress.estimators.joint import joint_coefficients
    from dpregress.parties import load_joint
    from dpregress.releases.model_files import ResponseModel, model_text, privacy_text

    names = ("model.json", "privacy.json", "report.html")
    software = f"dpregress {__version__}"
    with taken(out, names, overwrite=overwrite) as place:
        joined = load_joint(joint_file)
        others = [name for name in joined.joint.moments.space.features if name != target]
        ends = read_ends(family, classes)
        found, moments = joint_coefficients(joined.joint, target, split_names(features) or others, ends)
        response = ResponseModel("binomial", "logit", (f"{ends[0]:g}", f"{ends[1]:g}")) if ends else ResponseModel()
        place.write(
            model_text(found, joined.person, moments, software=software, response=response),
            privacy_text(joined.person, software=software),
            joint_page(joined, found, response, file=joint_file.name, software=software),
        )
    rows = [["(intercept)", number(found.intercept), "", ""]]
    for name, *values in zip(found.features, found.coef, found.standard_error, found.privacy_error, strict=True):
        rows.append([name, *(number(value) for value in values)])
    title = f"{target}, {found.n:,} people at {len(joined.parties)} parties" + (
        " (INVENTED ROWS)" if joined.mock else ""
    )
    print_table(title, ["", "private", "std. error", "privacy s.e."], rows)
    if not found.coef.any():
        say(
            f"No correlation with {target} stands out from the noise: every slope is shrunk to 0, and the model "
            "predicts the mean. More people or a larger budget would help."
        )
    for party, each in zip(joined.parties, joined.per_party, strict=True):
        say(f"{party}: {each.describe()}.")
    say_person(joined.person.promise, max(each.budget.parameters()["delta"] for each in joined.per_party))
    say(f"Wrote {', '.join(names)} in {out}; nothing further was spent.")
