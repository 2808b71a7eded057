"""Fitted models as files: what a program reads back, and a page for people."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpregress.accounting import Ledger, PrivacyStatement
from dpregress.coordinates import Domain, Vector
from dpregress.display import shown
from dpregress.errors import OutputError, reason
from dpregress.estimators.inferential import InferenceMixin
from dpregress.inference import Diagnosis
from dpregress.public import Categorical
from dpregress.releases.model_files import WrittenFormula, WrittenSummary, model_text, privacy_text
from dpregress.reports import Fitted, Pictures, Provenance, fit_facts, fit_page
from dpregress.reports.page import pictures_page
from dpregress.version import SOFTWARE

MODEL_FILES = ("model.json", "privacy.json")


class SavingMixin(InferenceMixin):
    """Files of a fitted model, beside its inference."""

    moments_: Any
    #: Where the rows came from and when the fit was made, for reports; None before a fit.
    provenance_: Provenance | None = None

    def save(self, folder: str | Path) -> None:
        """Write ``model.json``, ``privacy.json`` and what else a model needs to a folder.

        Earlier files of these names are overwritten without a question, while the command line refuses to unless it is
        given ``--overwrite``. :func:`dpregress.load` and ``dpregress predict`` read them back.

        Parameters
        ----------
        folder : path
            It is made if it is not there.

        Raises
        ------
        OutputError
            If the files cannot be written.
        """
        write_whole({Path(folder) / name: text for name, text in self._files().items()})

    def report(self, path: str | Path, *, title: str | None = None) -> None:
        """Write a self-contained HTML page with the summary and the guarantee, as ``dpregress fit`` does.

        An earlier file is overwritten without a question, while the command line refuses to without ``--overwrite``.

        Parameters
        ----------
        path : path
            The file, or a folder for ``report.html``.
        title : str, optional
            Default: the name of the response.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        page = report_page(self, self._named() if title is None else title)
        file = Path(path)
        write_whole({file / "report.html" if file.is_dir() else file: page})

    @property
    def written_formula(self) -> WrittenFormula | None:
        """The fitted formula in the form of a model file; None for a model without one."""
        return None

    @property
    def written_schema(self) -> str | None:
        """The schema of the fitted columns in the form of a model file, if it is needed to predict."""
        return None

    @property
    def written_domain(self) -> Domain | None:
        """The domain of a model of coded columns."""
        return None

    def _files(self) -> dict[str, str]:
        """The texts of the files that :meth:`save` writes, by their names."""
        return dict(zip(MODEL_FILES, model_documents(self), strict=True))

    def _promised(self) -> PrivacyStatement:
        """The guarantee that files hold."""
        found: PrivacyStatement = self.privacy_
        return found

    def _named(self) -> str:
        self._check_fitted()
        return str(self.coefficients_.target)


def model_documents(model: SavingMixin) -> tuple[str, str]:
    """The texts of ``model.json`` and ``privacy.json``."""
    model._check_fitted()
    text = model_text(
        model.coefficients_,
        model._promised(),
        model.moments_,
        software=SOFTWARE,
        response=model.response_model,
        formula=model.written_formula,
        schema=model.written_schema,
        estimates=model.estimates_,
        diagnosis=None if model.diagnosis_ is None else model.diagnosis_.encode(),
        domain=model.written_domain,
        summary=_written_summary(model),
    )
    return text, privacy_text(model._promised(), software=SOFTWARE)


def _written_summary(model: SavingMixin) -> WrittenSummary:
    """What the summary says beside the numbers and the guarantee of the file."""
    statement = model._statement()
    party = None if statement is model._promised() else statement
    return WrittenSummary(model._model_name(), *model._notes(), party)


def report_page(model: SavingMixin, title: str) -> str:
    """The page about a fitted model as HTML text."""
    return fit_page(title, [fitted_part(model, "Coefficients")], software=SOFTWARE)


def fitted_part(model: SavingMixin, title: str) -> Fitted:
    """A fitted model as a part of a page."""
    model._check_fitted()
    summary, response, formula = model.summary(), model._known_response(), model.written_formula
    facts = fit_facts(
        summary,
        response=response,
        formula=None if formula is None else formula.text,
        levels=_references(model, formula),
        provenance=model.provenance_,
        ledgers=_ledgers(model),
    )
    return Fitted(
        title,
        model.coefficients_,
        model._promised(),
        summary,
        facts=facts,
        response=response,
        deviation=_deviation(model),
        pictures=None if model.diagnosis_ is None else pictures_of(model.diagnosis_),
    )


def _references(model: Any, formula: WrittenFormula | None) -> dict[str, str]:
    """The reference level of every categorical column of the fit."""
    if formula is not None:
        return {name: levels[0] for name, levels in formula.levels.items()}
    columns = {} if model.schema is None else model.schema.columns
    features = set(model.coefficients_.features)
    return {
        name: column.levels[0]
        for name, column in columns.items()
        if isinstance(column, Categorical) and features.intersection(column.design(name))
    }


def _ledgers(model: Any) -> tuple[Ledger, ...]:
    """Those that the fit was charged to; with several parties, that of each."""
    given = model.ledger
    several = given.values() if isinstance(given, Mapping) else [given]
    return tuple(ledger for ledger in several if ledger is not None)


def _deviation(model: SavingMixin) -> Vector | None:
    """Released standard deviations of the columns; None unless all of them are known."""
    spread = None if model.estimates_ is None else model.estimates_.spread
    if spread is None or not (np.diag(spread) > 0).all():
        return None
    return np.asarray(np.sqrt(np.diag(spread)))


def pictures_of(found: Diagnosis) -> Pictures:
    """What a page shows of a diagnosis."""
    roc = found.roc() if found.scale is None else None
    return Pictures(found.measures(), roc, found.calibration(), found.residuals())


def diagnosis_page(found: Diagnosis, title: str) -> str:
    """The page about a diagnosis that was paid for by itself as HTML text."""
    assert found.privacy is not None
    return pictures_page(title, pictures_of(found), found.privacy, software=SOFTWARE)


def fit_texts(model: SavingMixin, title: str) -> tuple[str, ...]:
    """The texts of ``model.json``, ``privacy.json`` and ``report.html``."""
    return (*model_documents(model), report_page(model, title))


def write_whole(texts: dict[Path, str]) -> None:
    """Write each file whole or not at all: a process that is killed leaves what was there before."""
    new: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():  # such as a device or a folder, which cannot be replaced
                path.write_text(text, encoding="utf-8", errors="replace")
                continue
            target = Path(os.path.realpath(path))  # a link stays a link
            new[target] = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
            with new[target].open("w", encoding="utf-8", errors="replace") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, new[target])
        for target, written in new.items():
            written.replace(target)
    except (OSError, ValueError) as error:
        raise OutputError(f"cannot write to {shown(path)}: {reason(error)}; choose another place") from error
    finally:
        for written in new.values():
            written.unlink(missing_ok=True)
