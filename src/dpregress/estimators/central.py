"""The common steps of all central estimators: public facts, charge, ask, solve."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpregress.accounting import GDP, Event, gaussian_promise
from dpregress.accounting.names import note_of
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.errors import InvalidInput, NotAvailable, one_line
from dpregress.estimators.base import PrivateLinearModel
from dpregress.estimators.diagnosable import Diagnosed, diagnose_model, one_predictor
from dpregress.estimators.diagnosing import Subject, diagnosed, shared
from dpregress.estimators.progress import reported
from dpregress.estimators.provenance import made_now
from dpregress.estimators.results import estimates_of, original
from dpregress.estimators.summary import SummaryNotes
from dpregress.estimators.training import Training
from dpregress.inference import Diagnosis, Suitability, suitability
from dpregress.inputs.response import check_support
from dpregress.public.facts import PublicFacts
from dpregress.releases import ClassCoefficients, Coefficients, Estimates
from dpregress.rows import Engine
from dpregress.rows.engines import Progress
from dpregress.rows.memory import check_moments_fit, check_squares_fit
from dpregress.solvers import Solution, Solver, Uncertainty
from dpregress.solvers.shared.near_public import unless_far
from dpregress.trust import Session

_LARGEST_PENALTY = 1e200


class CentralModel(PrivateLinearModel):
    """Base class of linear estimators for a curator. Subclasses choose the solver."""

    #: How the public rows suited the private ones; None without public rows.
    suitability_: Suitability | None = None

    @abstractmethod
    def _solver(self, facts: PublicFacts, budget: GDP) -> Solver:
        """The method, from public facts and the budget."""

    @property
    def _compares_public(self) -> bool:
        """Whether public rows are left out where many private rows lie far beyond them."""
        return True

    @abstractmethod
    def _uncertainty(self, solution: Solution) -> Uncertainty | None:
        """Covariances of the whitened coefficients, if they are known."""

    def _result(self, solution: Solution, facts: PublicFacts) -> Coefficients | ClassCoefficients:
        """Coefficients in original units."""
        return original(solution, self._uncertainty(solution), facts)

    def _fit(self, budget: Event, data: Training, progress: bool | Progress, engine: Engine | None = None) -> Self:
        facts = self._facts(
            data.features, data.source.n, data.target, data.public, data.schema, data.intercept, data.exposure
        )
        check_support(data.target, data.schema, "" if self.target_classes else self.response_model.family)
        promise = gaussian_promise(budget)
        check_moments_fit(facts.start.space.order, len(self.target_classes))
        if data.diagnose and getattr(self, "recipe", None) == "paper":
            raise NotAvailable('recipe="paper" releases no dispersion, which a diagnosis needs: choose another recipe')
        budgets = shared(data.unit.per_record(promise), data.diagnose, self.response_model)
        make = self._solver
        solver = unless_far(facts, budgets.fit, make) if self._compares_public else make(facts, budgets.fit)
        if solver.squares:
            check_squares_fit(solver.squares)
        asks, rounds = None if budgets.questions else solver.asks, solver.rounds + budgets.questions
        with reported(progress, rounds) as report, data.rows(engine, report, asks, solver.pieces) as rows:
            session = Session.reserve(
                rows,
                promise,
                rounds=rounds,
                budget=budget,
                ledger=self.ledger,
                unit=data.unit,
                note=note_of(f"{type(self).__name__} of {data.target}"),
                request=data.request,
                random_state=self.random_state,
            )
            solution = solver.solve(session)
            result = self._result(solution, facts)
            estimates, diagnosis = self._estimates(solution, facts, data.unit.most), None
            if budgets.diagnosis is not None:
                subject = Subject.of_fit(one_predictor(result), self.response_model, estimates, facts, solution.space)
                if subject.scaled:
                    diagnosis = diagnosed(session, subject, budgets.diagnosis, data.source.n)

        data.inputs.keep(self)
        self.coefficients_ = result
        self.estimates_, self.diagnosis_ = estimates, diagnosis
        shortened = None if diagnosis is None or diagnosis.shortened is None else diagnosis.shortened[0]
        self.suitability_ = self._suited(solution, facts, shortened)
        self.coef_: Vector = result.coef
        self.intercept_: Any = result.intercept
        self.moments_ = solution.moments
        self.design_ = data.design
        self.exposure_ = data.exposure
        self.provenance_ = made_now(data.origin)
        self.privacy_ = session.statement(facts.assumed_public())
        return self

    def _estimates(self, solution: Solution, facts: PublicFacts, rows_of_a_unit: int) -> Estimates | None:
        """Estimates for inference, if the recipe has any."""
        several = self.target_classes if len(self.target_classes) > 2 else ()
        robust = getattr(self, "cov_type", "model") == "robust"
        return estimates_of(solution, facts.n, several, rows_of_a_unit, robust=robust, numbers=facts.numbers)

    def _suited(self, solution: Solution, facts: PublicFacts, shortened: float | None) -> Suitability | None:
        """How public rows suited the private ones, if there are any and their moments are released."""
        gram = solution.moments.gram if solution.moments is not None else None
        gram = solution.unshrunk.gram if gram is None and solution.unshrunk is not None else gram
        if gram is None or facts.public is None or facts.public.rows is None:
            return None
        told = self.estimates_ is None or bool(self.estimates_.identified.any())
        return suitability(solution.space, gram, facts.public.rows, shortened, left_out=solution.left_out, told=told)

    def _notes(self) -> SummaryNotes:
        """What coefficients have a penalty, and what the released moments tell of the public rows."""
        penalty = getattr(self, "alpha", 0.0)
        penalised = (f"The penalty (alpha = {penalty:g}) is part of coef_, which predicts, and not of coef.",)
        suited = () if self.suitability_ is None else self.suitability_.sentences()
        return SummaryNotes((*(penalised if penalty and self.estimates_ is not None else ()), *suited))

    def diagnose(
        self,
        X: Any,
        y: Any = None,
        *,
        privacy: Event,
        exposure: Any = None,
        unit: Any = None,
        max_rows_per_unit: int | None = None,
        random_state: Any = None,
    ) -> Diagnosis:
        """Diagnose the fitted model on private rows, at a cost of its own: ROC, AUC, calibration, deviance, residuals.

        The ledger of the model is charged. ``fit(.., diagnose=0.02)`` does the same within the budget of the fit. The
        result is also kept as ``diagnosis_`` (docs/diagnosis.md).

        Parameters
        ----------
        X : array-like, table or file
            Private rows with the columns of the fit.
        y : array-like of shape (n,), optional
            Default: the column of the table X that has the response's name.
        privacy : GDP, ApproxDP or ZCDP
            The whole budget of the diagnosis.
        exposure, unit : array-like of shape (n,) or str, optional
            As in :meth:`fit`, or the name of a column of the table X.
        max_rows_per_unit : int, optional
        random_state : None, int or Generator
            A seed is for tests and simulations only.

        Raises
        ------
        NotAvailable
            For more than two classes, and for a fit that did not release the dispersion; nothing is charged.
        BudgetExceeded
            If the ledger does not hold enough; nothing is charged.
        """
        check_is_fitted(self)
        model = Diagnosed(
            one_predictor(self.coefficients_), self.response_model, self.estimates_, self.written_formula, self.schema
        )
        self.diagnosis_ = diagnose_model(
            model, X, y, privacy=privacy, exposure=exposure, unit=unit, max_rows_per_unit=max_rows_per_unit,
            ledger=self.ledger, random_state=random_state,
        )  # fmt: skip
        return self.diagnosis_


def checked_penalty(alpha: float, space: WhitenedSpace) -> float:
    """The penalty, unless it is negative, not finite, or too large for the scale of the columns."""
    try:
        usable = math.isfinite(alpha) and alpha >= 0
    except (TypeError, OverflowError):
        usable = False
    if not usable:
        raise InvalidInput(f"alpha must be finite and not negative, not {one_line(alpha)}")
    if alpha * float(np.abs(space.slopes).max()) ** 2 > _LARGEST_PENALTY:
        raise InvalidInput(f"alpha = {alpha:g} is too large for columns of this scale: choose a smaller one")
    return float(alpha)
