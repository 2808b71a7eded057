"""``dpregress regress``, ``combine`` and ``moments``: what is computed from released moments, at no further cost."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import click

from dpregress.cli.output import FIT_FILES, number, print_lines, print_table, say
from dpregress.cli.places import taken
from dpregress.errors import InvalidInput

_PATH = click.Path(path_type=Path)
_OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace existing results.")


@click.command()
@click.argument("file", type=_PATH)
@click.option("--target", help="Response column.")
@click.option("--features", help="Feature columns, separated by commas [default: all others].")
@click.option("--formula", help='Model formula in place of --target and --features, such as "visits ~ age + C(plan)".')
@click.option("--alpha", type=float, default=0.0, show_default=True, help="Ridge penalty, as in scikit-learn.")
@click.option("--no-intercept", is_flag=True, help="Fit through the origin.")
@click.option("--path", "penalty", type=click.Choice(["lasso", "ridge", "elastic-net"]), help="A path of penalties.")
@click.option("--select", "method", type=click.Choice(["forward", "best"]), help="The best sets of terms of each size.")
@click.option(
    "--criterion", type=click.Choice(["bic", "aic"]), default="bic", show_default=True,
    help="By which --path and --select choose.",
)  # fmt: skip
@click.option("--level", type=float, default=0.95, show_default=True, help="Of intervals.")
@click.option("--out", "-o", type=_PATH, help="Folder for model.json, privacy.json and report.html.")
@_OVERWRITE
def regress(
    file: Path,
    target: str | None,
    features: str | None,
    formula: str | None,
    alpha: float,
    no_intercept: bool,
    penalty: str | None,
    method: str | None,
    criterion: str,
    level: float,
    out: Path | None,
    overwrite: bool,
) -> None:
    """Regress a column of a released FILE on others. This costs nothing more.

    Standard errors and intervals count sampling, with equal error variances, and privacy noise. After --path or
    --select, intervals hold simultaneously for all submodels, however the columns were chosen.

    \b
    Examples:
      dpregress regress moments.json --target visits --features age,smoker
      dpregress regress moments.json --target age --path lasso
      dpregress regress moments.json --target visits --select best --out visits-model
    """
    from dpregress import DPLinearRegression, DPRidge, ReleasedMoments
    from dpregress.cli.tables import split_names
    from dpregress.estimators.saving import fit_texts

    released = ReleasedMoments.load(file)
    columns, more = split_names(features), {"formula": formula, "fit_intercept": not no_intercept}
    if alpha == 0:
        model: DPRidge = DPLinearRegression.from_moments(released, target, columns, **more)
    else:
        model = DPRidge.from_moments(released, target, columns, alpha=alpha, **more)
    print_lines(str(model.summary(level=level)))
    if penalty is not None:
        _print_path(model.path(penalty), criterion, level)
    if method is not None:
        _print_sets(model.select(method), criterion, level)
    if out is not None:
        with taken(out, FIT_FILES, overwrite=overwrite) as place:
            place.write(*fit_texts(model, f"{model.coefficients_.target} in {file.name}"))
        say(f"Wrote {', '.join(FIT_FILES)} in {out}.")
    say(f"Computed from the release ({released.privacy_.describe()}): nothing more was spent.")


@click.command("combine")
@click.argument("files", type=_PATH, nargs=-1, required=True)
@click.option("--out", "-o", type=_PATH, required=True, help="The file to write.")
@_OVERWRITE
def combine_files(files: tuple[Path, ...], out: Path, overwrite: bool) -> None:
    """Add up the releases of several sites.

    The sites have the same columns and different people, and must have released in the same coordinates (--like).
    Nobody may be in two of the tables. Everybody then has the guarantee of their own site.

    \b
    Example:
      dpregress combine north.json south.json --out both.json
    """
    from dpregress import ReleasedMoments, combine

    releases = []
    for file in files:
        found = ReleasedMoments.load(file)
        sites = tuple(replace(site, name=site.name or file.stem) for site in found.sites)
        releases.append(replace(found, sites=sites))
    together = combine(releases)
    with taken(out, overwrite=overwrite) as place:
        place.write(together.text())
    _print_sites(together)
    say(f"Wrote {out}.")


@click.command()
@click.argument("file", type=_PATH)
@click.option("--columns", help="Columns, separated by commas [default: all].")
@click.option("--partial", is_flag=True, help="Partial correlations: of each pair given the other columns.")
@click.option("--components", type=click.IntRange(min=1), metavar="K", help="The first K principal components.")
@click.option("--sites", is_flag=True, help="The sites of combined releases, and whether they agree.")
def moments(file: Path, columns: str | None, partial: bool, components: int | None, sites: bool) -> None:
    """Show means and correlations of the columns of a released FILE. This costs nothing more.

    \b
    Examples:
      dpregress moments moments.json
      dpregress moments moments.json --partial --components 2
    """
    from dpregress import ReleasedMoments
    from dpregress.cli.tables import split_names

    released, chosen = ReleasedMoments.load(file), split_names(columns)
    if sites:
        _print_sites(released)
        return
    header, rows = released.table()
    wanted = released.design(chosen)
    print_table(f"{released.n:,} private rows", header, [row for row in rows if row[0] in wanted])
    found = released.partial_correlations(chosen) if partial else released.correlations(chosen)
    title = "Partial correlations" if partial else "Correlations"
    cells = [
        [name, *(f"{value:.3f} ({error:.3f})" for value, error in zip(values, errors, strict=True))]
        for name, values, errors in zip(found.names, found.value.tolist(), found.error.tolist(), strict=True)
    ]
    print_table(f"{title} (standard errors)", ["", *found.names], cells)
    if components is not None:
        parts = released.principal_components(components, columns=chosen)
        lower, upper = parts.conf_int().T
        summary = zip(parts.eigenvalues, lower, upper, parts.share, strict=True)
        shown = [[f"PC{k + 1}", *map(number, row)] for k, row in enumerate(summary)]
        print_table("Principal components of the correlations", ["", "eigenvalue", "[0.025", "0.975]", "share"], shown)
        loadings = [[name, *map(number, row)] for name, row in zip(parts.names, parts.loadings, strict=True)]
        print_table("Loadings", ["", *(row[0] for row in shown)], loadings)
    say(f"Computed from the release ({released.privacy_.describe()}): nothing more was spent.")


def _print_path(found, criterion: str, level: float) -> None:  # type: ignore[no-untyped-def]  # imported lazily
    best = found.best(criterion)
    rows = [
        [name, number(value), number(other)]
        for name, value, other in zip(found.names, found.coef[best], found.coef[-1], strict=True)
    ]
    print_table(
        f"Path of {len(found.alphas)} penalties",
        [
            "",
            f"alpha = {number(found.alphas[best])} (least {criterion.upper()})",
            f"alpha = {number(found.alphas[-1])}",
        ],
        [["(intercept)", number(found.intercept[best]), number(found.intercept[-1])], *rows],
    )
    _print_selected(found.refit(criterion), level)


def _print_sets(found, criterion: str, level: float) -> None:  # type: ignore[no-untyped-def]  # imported lazily
    rows = [
        [str(len(terms)), number(aic - found.aic.min()), number(bic - found.bic.min()), ", ".join(terms)]
        for terms, aic, bic in zip(found.terms, found.aic, found.bic, strict=True)
    ]
    print_table("Sets of terms, with AIC and BIC above their least", ["terms", "AIC", "BIC", "which"], rows)
    _print_selected(found.refit(criterion), level)


def _print_selected(model, level: float) -> None:  # type: ignore[no-untyped-def]  # imported lazily
    if not model.names:
        say("No column is kept.")
    else:
        print_table("The chosen columns, not shrunk", model.header(level), model.rows(level))
        say(model.said_of(level))
    if model.left_out:
        say(model.left_out)


def _print_sites(released) -> None:  # type: ignore[no-untyped-def]  # imported lazily
    rows = [[site.name or "site 1", f"{site.moments.n:,}", f"{site.privacy.promise.mu:.4g}"] for site in released.sites]
    print_table(f"{released.n:,} private rows", ["site", "rows", "mu"], rows)
    if len(released.sites) < 2:
        return
    try:
        test = released.heterogeneity()
    except InvalidInput as error:
        say(str(error))
        return
    verdict = "" if math.isnan(test.pvalue) else f", p = {test.pvalue:.3g}"
    say(
        f"Do the sites agree in means and covariances (of normal rows)? "
        f"chi2({test.df}) = {test.statistic:.5g}{verdict}."
    )
    say(f"Guarantee: {released.privacy_.describe()}, for people who are in one site only.")
