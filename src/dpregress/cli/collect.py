"""``dpregress collect``: the service of a study, and what is read out of it."""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import click

from dpregress.cli.output import number, print_table, say
from dpregress.cli.places import taken
from dpregress.cli.study import load_study
from dpregress.display import how_many, plain
from dpregress.errors import InvalidInput, StoreError

_PATH = click.Path(path_type=Path)
_MISSING = "the collector needs its extra: pip install 'dpregress[collector]'"
_STORE = click.option(
    "--store",
    required=True,
    help="Where reports are kept: a file (SQLite), or postgresql://user:password@host/database.",
)
_KEY = click.option("--key", "key_file", type=_PATH, help="This collector's signing key, in a study of two collectors.")


@click.group()
def collect() -> None:
    """Collect and fit the reports of a local-privacy study.

    \b
    Example:
      dpregress study new sleep.toml --public pilot.csv --out sleep.json
      dpregress collect serve sleep.json --store sleep.db --admin-key admin.key
      dpregress collect invite sleep.json --store sleep.db --address https://sleep.example --count 200 --out sheet.html
      dpregress collect fit --store sleep.db --public pilot.csv --out sleep-model
    """


@collect.command("serve")
@click.argument("study_file", metavar="STUDY", type=_PATH)
@_STORE
@click.option("--admin-key", type=_PATH, required=True, help="The key for reading results, created if needed.")
@_KEY
@click.option("--public", "public_rows", type=_PATH, help="The public rows of the study, for confidence intervals.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port; 0 takes a free one."
)
@click.option("--certificate", type=_PATH, help="TLS certificate chain (PEM), where no proxy ends TLS.")
@click.option("--certificate-key", type=_PATH, help="Its private key (PEM).")
@click.option(
    "--proxies", default="127.0.0.1", show_default=True,
    help="Reverse proxies whose X-Forwarded-For is believed, separated by commas.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(0.01), default=20.0, show_default=True, help="Requests a second from one address."
)
@click.option(
    "--burst", type=click.FloatRange(1), default=100.0, show_default=True, help="Requests at once from one address."
)
@click.option("--check", is_flag=True, help="Open the store, check everything, and stop.")
def collect_serve(
    study_file: Path,
    store: str,
    admin_key: Path,
    key_file: Path | None,
    public_rows: Path | None,
    host: str,
    port: int,
    certificate: Path | None,
    certificate_key: Path | None,
    proxies: str,
    rate: float,
    burst: float,
    check: bool,
) -> None:
    """Serve STUDY to participants and keep their reports. Stop it with an interrupt: what was acknowledged is kept.

    \b
    Example:
      dpregress collect serve sleep.json --store sleep.db --admin-key admin.key --public pilot.csv --check
    """
    from dpregress.collector.drafting import study_model
    from dpregress.collector.signing import signature_beside
    from dpregress.collector.store import open_store
    from dpregress.mechanisms.randomness import shared_seed
    from dpregress.parties.keys import read_secret, write_secret

    made = load_study(study_file)
    holder = holder_in(made, key_file)
    signature = signature_beside(made, study_file)
    study_model(made.terms, public_rows)  # refuses other rows than those of the study
    if (certificate is None) != (certificate_key is None):
        raise InvalidInput("--certificate and --certificate-key go together")
    with open_store(store, made, holder) as opened:
        say(f"{made.title}: {opened.count:,} reports in {opened.where}.")
    if not admin_key.exists():
        write_secret(admin_key, shared_seed(None))
        say(f"Made the admin key {admin_key}: keep it secret.")
    try:
        from dpregress.collector.server.app import Collector, Settings
        from dpregress.collector.server.serving import Address, http_server, run_until_stopped
    except ImportError as error:
        raise InvalidInput(_MISSING) from error
    settings = Settings(read_secret(admin_key), signature, public_rows, rate, burst, holder=holder)
    collector = Collector(made, lambda: open_store(store), settings)
    server = http_server(collector, Address(host, port, certificate, certificate_key, proxies))
    if check:
        say(f"Study {made.digest.hex()}: everything is in place.")
        return
    if holder is not None:
        own = made.holders[holder]
        say(f"This is {own.name}, one of two collectors. Its page works at {own.address}/study only.")
    scheme = "http" if certificate is None else "https"
    listener = _listening(host, port)
    name = f"[{host}]" if ":" in host else host
    address = f"{scheme}://{name}:{listener.getsockname()[1]}"
    say(f"Listening on {address}/study#study={made.digest.hex()}; stop with Ctrl-C. The dashboard: {address}/dashboard")
    run_until_stopped(server, listener)
    say("Stopped; everything that was acknowledged is stored.")


def holder_in(made, key_file: Path | None) -> int | None:  # type: ignore[no-untyped-def]  # imported lazily
    """Which of the two collectors of a study this is, by its key; None for a study with one."""
    from dpregress.collector.shares.holder import place_of
    from dpregress.parties.keys import read_secret

    if not made.holders and key_file is not None:
        raise InvalidInput("this study has one collector, which has no signing key: leave --key out")
    if made.holders and key_file is None:
        raise InvalidInput("this study has two collectors: say which one this is by its signing --key")
    return None if key_file is None else place_of(made.holders, read_secret(key_file))


def _listening(host: str, port: int) -> socket.socket:
    """A socket that is bound, so that its port can be told."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from error
    return listener


@collect.command("invite")
@click.argument("study_file", metavar="STUDY", type=_PATH)
@_STORE
@click.option("--address", required=True, help="Where participants reach the collector, such as https://study.example.")
@click.option("--count", type=click.IntRange(1, 1_000_000), required=True, help="Invitations to make.")
@click.option(
    "-o", "--out", type=_PATH, required=True, help="A page of links and QR codes (.html), or of links (.txt)."
)
@_KEY
@click.option("--hashes", type=_PATH, help="Where to write what the other of two collectors needs to admit them.")
def collect_invite(
    study_file: Path, store: str, address: str, count: int, out: Path, key_file: Path | None, hashes: Path | None
) -> None:
    """Make single-use invitations, as links and as QR codes to print. The store keeps only hashes of their tokens.

    \b
    Example:
      dpregress collect invite sleep.json --store sleep.db --address https://sleep.example --count 3 --out sheet.html
    """
    from dpregress.collector.addresses import origin_of
    from dpregress.collector.invitations import invitation_sheet, invite, new_tokens, token_hashes
    from dpregress.collector.store import open_store

    made = load_study(study_file)
    holder, tokens = holder_in(made, key_file), new_tokens(count)
    if (holder is None) != (hashes is None):
        raise InvalidInput("--hashes goes with a study of two collectors: the other one admits them")
    own = [origin_of(each.address) for each in made.holders]
    if own and origin_of(address) not in own:
        raise InvalidInput(f"the page works at the addresses in the study only: give --address {' or '.join(own)}")
    with ExitStack() as held:
        place = held.enter_context(taken(out, overwrite=False, private=True))
        for_other = None if hashes is None else held.enter_context(taken(hashes, overwrite=False))
        links = invite(held.enter_context(open_store(store, made, holder)), tokens, address)
        if holder is not None and for_other is not None:
            for_other.write("".join(f"{each.hex()}\n" for each in token_hashes(tokens, 1 - holder)))
        place.write("\n".join([*links, ""]) if out.suffix == ".txt" else invitation_sheet(made.title, links))
    say(f"Wrote {count:,} invitations to {out}. Each counts once; whoever has a link can use it.")


@collect.command("add")
@_STORE
@click.argument("reports", nargs=-1, type=_PATH, required=True)
def collect_add(store: str, reports: tuple[Path, ...]) -> None:
    """Store REPORTS that came by other means than HTTP, by the same rules: one file a report.

    \b
    Example:
      dpregress collect add --store sleep.db report.bin
    """
    from dpregress.collector.admission import REASONS, Admission
    from dpregress.collector.store import Outcome, open_store
    from dpregress.parties.documents import read_bytes

    with open_store(store) as opened:
        rules, stored = Admission(opened.study, holder=opened.holder), 0
        for path in reports:
            found = rules.check(read_bytes(path, rules.length))
            outcome = found if isinstance(found, Outcome) else opened.add([found], rules.hour)[0]
            if outcome.reason is not None:
                raise InvalidInput(f"{path} is refused: {REASONS[outcome.reason]}")
            stored += outcome.status == 201
        others = len(reports) - stored
        before = f"; {others:,} {'was' if others == 1 else 'were'} stored before" if others else ""
        say(f"Stored {stored:,} of {how_many(len(reports), 'report')}{before}.")


@collect.command("fit")
@_STORE
@click.option("--public", "public_rows", type=_PATH, help="The public rows of the study, for confidence intervals.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option(
    "--dishonest", type=float, default=0.01, show_default=True,
    help="Share of dishonest reports for which the bound holds.",
)  # fmt: skip
@click.option("-o", "--out", type=_PATH, help="Folder for model.json and privacy.json.")
@click.option("--overwrite", is_flag=True, help="Replace an existing model.")
def collect_fit(
    store: str, public_rows: Path | None, level: float, dishonest: float, out: Path | None, overwrite: bool
) -> None:
    """Fit the model of the study to the reports so far. This costs nobody anything; a minimum count must be there.

    \b
    Example:
      dpregress collect fit --store sleep.db --public pilot.csv --out sleep-model
    """
    from dpregress.accounting.wording import describe
    from dpregress.collector.readout import read_out
    from dpregress.collector.store import open_store
    from dpregress.estimators.saving import MODEL_FILES, model_documents

    with open_store(store) as opened:
        found = read_out(opened, public=public_rows, level=level, share=dishonest)
        opened.record("read", reports=found.n)
    if out is not None:
        with taken(out, MODEL_FILES, overwrite=overwrite) as place:
            place.write(*model_documents(found.model))
    told = found.encode()["coefficients"]
    columns = ("coef", "estimate", "standard_error", "lower", "upper", "jackknife_error", "poisoned")
    rows = [[each["name"], *("" if each[key] is None else number(each[key]) for key in columns)] for each in told]
    percent = f"{100 * level:g}%"
    header = ["", "private", "unshrunk", "std. error", f"from ({percent})", "to", "jackknife s.e.", "moved by at most"]
    print_table(f"{found.study.title}: {found.n:,} reports", header, rows)
    say(f"The last column: how far {100 * dishonest:g}% dishonest reports can have moved the unshrunk fit.")
    if public_rows is None:
        say("No intervals without --public, the public rows of the study.")
    say(f"Each user spent {describe(found.study.spend)}.")
    if out is not None:
        say(f"Wrote {' and '.join(MODEL_FILES)} in {out}.")


@collect.command("status")
@_STORE
def collect_status(store: str) -> None:
    """Show how many reports were stored and refused, by reason.

    \b
    Example:
      dpregress collect status --store sleep.db
    """
    from dpregress.collector.store import open_store

    with open_store(store) as opened:
        terms, (issued, used) = opened.study.terms, opened.tokens()
        assert terms is not None
        counts = [["stored", f"{opened.count:,}"], *([reason, f"{n:,}"] for reason, n in opened.refused().items())]
        print_table(opened.study.title, ["reports", "number"], counts)
        say(f"Study {opened.study.digest.hex()}; minimum before read-out {terms.minimum:,}.")
        if terms.enrolment == "token":
            say(f"Invitations: {used:,} of {issued:,} used.")


@collect.command("verify")
@_STORE
def collect_verify(store: str) -> None:
    """Recompute all sums from the reports, bit for bit, and check the audit log and all notes of the store.

    Exit code 1, and a line for each fault, if the store cannot be read or is not what was stored.

    \b
    Example:
      dpregress collect verify --store sleep.db
    """
    from dpregress.collector.store import open_store

    try:
        with open_store(store) as opened:
            n, faults = opened.faults()
    except StoreError as error:
        n, faults = 0, [str(error)]
    for fault in faults:
        click.echo(f"error: {plain(fault)}", err=True)
    if faults:
        sys.exit(1)
    say(f"{n:,} reports: sums, tokens and the audit log agree to the last bit.")


@collect.command("backup")
@_STORE
@click.option("-o", "--out", type=_PATH, required=True, help="The file to write (SQLite).")
def collect_backup(store: str, out: Path) -> None:
    """Copy a store, as of one moment and while it is in use, into a file that is itself a store, and verify the copy.

    \b
    Example:
      dpregress collect backup --store sleep.db --out backup.db
    """
    from dpregress.collector.store import open_store

    with taken(out, overwrite=False, private=True) as place, open_store(store) as opened:
        n = place.fill(opened.backup)
        opened.record("backup", reports=n)
    say(f"Copied {n:,} reports to {out} and verified them. To go on from it, serve the study with --store {out}.")


@collect.command("simulate")
@click.argument("study_file", metavar="STUDY", type=_PATH)
@click.option("--users", type=click.IntRange(1, 10_000_000), required=True, help="Invented users.")
@click.option("--public", "public_rows", type=_PATH, help="The public rows of the study: the users resemble them.")
@click.option("--seed", type=int, help="Seed of the invented answers; the noise is always that of real devices.")
def collect_simulate(study_file: Path, users: int, public_rows: Path | None, seed: int | None) -> None:
    """Rehearse STUDY: invented users report through the real wire to a collector on this machine, which is then fitted.
    Two collectors exchange lists and noisy sums as they would.

    With public rows, each user answers all questions but the last as one of these rows does. Without them, answers have
    the means and the spread of the study's public moments.

    Nothing is kept. The study is treated as open, and as having no minimum.

    \b
    Example:
      dpregress collect simulate sleep.json --users 300 --public pilot.csv --seed 1
    """
    from dpregress.collector.rehearsal import rehearse, rehearse_two

    made = load_study(study_file)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        if made.holders:
            found, truth = rehearse_two(made, users, Path(folder), public_rows, seed)
        else:
            found, truth = rehearse(made, users, Path(folder) / "store.db", public_rows, seed)
    told = found.encode()["coefficients"]
    rows = [
        [
            each["name"],
            number(true),
            number(each["coef"]),
            "" if each["standard_error"] is None else number(each["standard_error"]),
        ]
        for each, true in zip(told, truth, strict=True)
    ]
    print_table(f"{found.n:,} invented users", ["", "true", "private", "std. error"], rows)
    say(f"{users / (time.perf_counter() - began):,.0f} users a second, most of it the noise of their devices.")
