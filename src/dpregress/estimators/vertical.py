"""Regression on columns that several parties hold of the same people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator

from dpregress.accounting import (
    RECORD,
    ApproxDP,
    Event,
    Ledger,
    MemoryLedger,
    PrivacyStatement,
    Request,
    compose_statements,
    gaussian_promise,
)
from dpregress.accounting.names import note_of
from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput, NotAvailable, check_choice, one_line
from dpregress.estimators.inferential import terms_of
from dpregress.estimators.joint import joint_coefficients
from dpregress.estimators.parameters import checked_bounds, checked_privacy
from dpregress.estimators.provenance import made_now
from dpregress.estimators.saving import SavingMixin
from dpregress.estimators.shown import ShownMixin
from dpregress.estimators.summary import SummaryNotes, ranges_note, ranges_of
from dpregress.estimators.vertical_estimates import joint_estimates
from dpregress.estimators.vertical_sides import PartySide, length_of_mixture, numbers_among, party_space
from dpregress.inference import IntervalKind
from dpregress.inputs.parties import (
    LabelledArray,
    Parties,
    by_party,
    check_party_columns,
    check_party_response,
    check_row_counts,
    joined_parties,
    named_parties,
    party_columns,
    with_response,
)
from dpregress.inputs.tables import column_names, design, encoded, matrix, opened_table
from dpregress.mechanisms import noise_sampler
from dpregress.mechanisms.randomness import shared_seed
from dpregress.mechanisms.sketching import sketch_matrix
from dpregress.public import Numeric, PublicMoments, Schema
from dpregress.releases import Coefficients, Moments
from dpregress.releases.model_files import ResponseModel
from dpregress.rows import ArraySource, Encoder, PrivateRows, Source
from dpregress.rows.memory import check_mixture_fits
from dpregress.rows.readers.files import is_table, to_table
from dpregress.solvers.vertical.joint import regression
from dpregress.solvers.vertical.release import PARTY_ROUNDS, join_parties, release_party
from dpregress.trust import Session, Vertical
from dpregress.trust.unrecorded import note_unrecorded_fit

PARTY_FAMILIES = ("gaussian", "binomial")
_DEFAULT_BOUNDS = (-1.0, 1.0)


class VerticalRegression(ShownMixin, SavingMixin, BaseEstimator):
    r"""Regression across parties that hold different columns of the same people, under differential privacy.

    Each party releases, within its own budget, the ranges of its numbers, the moments of its columns and a noisy
    mixture ``B Z`` of its whitened rows; from the releases any column can be regressed on any others. Correlations
    between parties are ``M_j' M_k / n``, shrunk by their known noise, so that noise alone predicts nearly the mean.

    This class runs all parties in one process, for studies and simulations; ``dpregress vertical`` runs them as
    institutions that never see each other's rows.

    Parameters
    ----------
    privacy : ApproxDP, GDP or ZCDP
        The budget of every party, for its own columns. A person is in all releases: see ``joint_privacy_``.
    family : {"gaussian", "binomial"}, default="gaussian"
        "binomial": logistic regression of a target at the two ends of its declared bounds, by Stein's constant:
        exact for normal predictors (docs/methods/vertical.md).
    public : mapping of str to PublicMoments, optional
        By the name of a party: moments of public rows of its columns, used in place of bounds.
    schema : Schema, optional
        Public bounds and levels by column name.
    bounds : (float, float), default=(-1, 1)
        Public bounds of every column that the schema does not name.
    rows : int, optional
        The length k of the mixture; default: a rule of d, n and epsilon (docs/methods/vertical.md).
    recipe : {"sparse", "dense", "hadamard"}, default="sparse"
        The sketch matrix B: eight signs a column, all signs, or rows of a randomised Hadamard matrix.
    ledger : mapping of str to Ledger, optional
        By the name of a party, one for each: charged before anything is read.
    random_state : None, int or numpy Generator
        None draws from the operating system. A seed is for tests and simulations, and warns.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        In the order of ``features``, by default that of the joint table without the target.
    intercept_ : float
    coefficients_ : Coefficients
        The same with names and standard errors (privacy, sketching and sampling).
    estimates_ : Estimates or None
        For inference, not shrunk; None for a binomial family (docs/inference.md).
    moments_ : Moments
        Of the chosen columns, with the law of every entry's noise: for any other solver, free.
    joint_ : Joint
        Moments of all columns of all parties, and the ranges of numbers: in the fit, and in predictions, values beyond
        them count as their ends.
    rows_ : int
        The length of the mixture.
    privacy_ : tuple of PrivacyStatement
        What each party promises for its own columns, in the order of the parties.
    joint_privacy_ : PrivacyStatement
        What holds for a person over all parties: their composition.

    References
    ----------
    Wu et al. (2022), Algorithm 2, from which this differs as docs/methods/vertical.md says.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import ApproxDP, VerticalRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200_000, 3)); y = X @ [0.5, -0.3, 0.1]
    >>> model = VerticalRegression(ApproxDP(1.0, 1e-6)).fit([X[:, :2], X[:, 2:]], y)
    >>> bool(np.abs(model.coef_ - [0.5, -0.3, 0.1]).max() < 0.2)
    True
    """

    def __init__(
        self,
        privacy: Event | None = None,
        *,
        family: str = "gaussian",
        public: Mapping[str, PublicMoments] | None = None,
        schema: Schema | None = None,
        bounds: tuple[float, float] = _DEFAULT_BOUNDS,
        rows: int | None = None,
        recipe: str = "sparse",
        ledger: Mapping[str, Ledger] | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.privacy = privacy
        self.family = family
        self.public = public
        self.schema = schema
        self.bounds = bounds
        self.rows = rows
        self.recipe = recipe
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Parties, y: ArrayLike | None = None) -> Self:
        """Release every party's moments and mixture, and regress y, which the last party holds, on all columns of X.

        Parameters
        ----------
        X : mapping or sequence of array-like or table of shape (n, d_j)
            The parties, as ``table`` of :meth:`fit_table`.
        y : array-like of shape (n,)
            Private: a further column of the last party, under its own name (that of a Series, else "y"). Where
            another party holds the response, use :meth:`fit_table`.

        Raises
        ------
        InvalidInput, BudgetExceeded
            As :meth:`fit_table`.
        """
        if y is None:
            raise InvalidInput("this estimator requires y to be passed, but the target y is None")
        self._checked_parameters()
        parties = named_parties(X)
        if parties:
            holder, target = list(parties)[-1], str(getattr(y, "name", None) or "y")
            declared = None if self.schema is None else self.schema.column(target)
            if declared is not None and len(declared.design(target)) > 1:
                raise InvalidInput(f"the schema makes several columns of {target!r}: name one of them in fit_table")
            parties[holder] = with_response(parties[holder], y, target)
        return self.fit_table(parties)

    def fit_table(self, table: Parties, target: int | str = -1, features: Sequence[int | str] | None = None) -> Self:
        """Release every party's moments and mixture, and regress one column on others.

        Parameters
        ----------
        table : mapping or sequence of array-like, table or path, of shape (n, d_j)
            At least two parties, with rows of the same people in the same order. Private. A mapping names the
            parties; those of a sequence are called party0, party1, .. Columns of an array are called x0, x1, .. over
            the joint table. A missing cell counts as the released mean of its column, or as what the schema declares.
        target : int or str, default=-1
            A column of the joint table, by place or name.
        features : sequence of int or str, optional
            Default: all others.

        Raises
        ------
        InvalidInput
            For public facts that do not fit together; nothing is charged then.
        BudgetExceeded
            When a ledger does not hold enough; no ledger is charged then, and nothing is read.
        """
        budget = self._checked_parameters()
        check_choice("family", self.family, PARTY_FAMILIES)
        promise = gaussian_promise(budget)
        parties = named_parties(table)
        sides = self._sides(parties)
        names = tuple(name for side in sides for name in side.space.features)
        response, chosen = party_columns(names, target, features)
        if self.family == "binomial":
            self._check_two_values(response)
            sides = [side.without(response) for side in sides]
        columns = [len(side.space.features) for side in sides]
        rows = length_of_mixture(sides, promise) if self.rows is None else self.rows
        check_mixture_fits(rows, columns)
        mixing = sketch_matrix(self.recipe, sides[0].source.n, rows, shared_seed(self.random_state))
        check_party_columns(names, response, chosen)
        for side in sides:
            check_party_response(side.source, response, self.schema)
        noise = noise_sampler(self.random_state)
        ledgers = self._ledgers(list(parties), promise, budget)
        if self.ledger is None and not noise.seeded:
            note_unrecorded_fit()
        sessions = [
            Session.reserve(
                PrivateRows(side.source),
                promise,
                trust=Vertical(),
                rounds=PARTY_ROUNDS,
                budget=budget,
                ledger=ledger,
                note=f"vertical release of {len(side.space.features)} columns",
                request=Request(formula=note_of(f"moments and sketch of {', '.join(side.space.features)}")),
                sampler=noise,
            )
            for side, ledger in zip(sides, ledgers, strict=True)
        ]
        asked = zip(sides, sessions, strict=True)
        joint = join_parties([release_party(by, side.space, promise, mixing, side.numbers) for side, by in asked])
        self.rows_, self.joint_ = rows, joint
        self.provenance_ = made_now(f"the tables of {', '.join(parties)}")
        self.privacy_ = tuple(session.statement(_ASSUMED_PUBLIC) for session in sessions)
        self.joint_privacy_ = compose_statements(self.privacy_)
        self.coefficients_ = self.regress(response, chosen)
        self.estimates_ = joint_estimates(joint, response, chosen) if self.family == "gaussian" else None
        self.moments_ = self.regression_moments(response, chosen)
        self.coef_: Vector = self.coefficients_.coef
        self.intercept_ = self.coefficients_.intercept
        return self

    def regress(self, target: int | str, features: Sequence[int | str] | None = None) -> Coefficients:
        """Regress another column on others, from what is released already: free.

        Parameters
        ----------
        target : int or str
        features : sequence of int or str, optional
            Default: all others.

        Raises
        ------
        InvalidInput
            Before :meth:`fit`, for names that are not columns, or for a binomial target whose two values are not
            declared.
        """
        response, chosen = self._chosen(target, features)
        levels = None
        if self.family == "binomial":
            self._check_two_values(response)
            levels = self._bounds_of(response)
        return joint_coefficients(self.joint_, response, chosen, levels)[0]

    def regression_moments(self, target: int | str, features: Sequence[int | str] | None = None) -> Moments:
        """The released moments of a regression, for any other solver: free, and without shrinkage.

        Parameters
        ----------
        target, features
            As in :meth:`regress`.
        """
        return regression(self.joint_, *self._chosen(target, features))[0]

    def predict(self, X: ArrayLike | Parties, *, interval: IntervalKind | None = None, level: float = 0.95) -> Any:
        """``X coef + intercept``, of shape (m,); for a binomial family the probability of the upper bound.

        Parameters
        ----------
        X : array-like or table of shape (m, d), or mapping or sequence of the parties' tables or arrays
            The features, in the order of ``coef_``; tables are read by name. Rows of all parties are of the same people
            in the same order.
        interval : {"mean", "prediction"}, optional
            Also an interval of the mean response, or of a new one; the result is then a
            :class:`~dpregress.inference.PredictedIntervals` about the unshrunk estimate.
        level : float, default=0.95
        """
        self._check_fitted()
        features, columns = self.coefficients_.features, self.joint_.moments.space.features
        x = design(joined_parties(X, features, columns), schema=self.schema, features=features)
        if x.shape[1] != len(self.coef_):
            raise InvalidInput(f"X has {x.shape[1]} columns, the model {len(self.coef_)} features")
        if interval is not None:
            return self._intervals(x, interval, level)
        linear = self.coefficients_.predict(x)
        return np.asarray(expit(linear)) if self.family == "binomial" else linear

    @property
    def response_model(self) -> ResponseModel:
        """How the linear predictor becomes a prediction; of a binary target, the probability of its upper bound."""
        return ResponseModel("binomial", "logit") if self.family == "binomial" else ResponseModel()

    def _notes(self) -> SummaryNotes:
        """What each party promises, what holds for a person over all parties, and ranges."""
        person, budget = self.joint_privacy_.promise, self.privacy_[0].budget
        nominal = ", nominally" if self.joint_privacy_.seeded else ""
        whole = f"For a person over all parties{nominal}: mu = {person.mu:.4g}"
        if isinstance(budget, ApproxDP):
            whole += f", epsilon = {person.epsilon(budget.delta0):.4g} at delta = {budget.delta0:g}"
        each = f"Each of {len(self.privacy_)} parties promises this for its own columns."
        return SummaryNotes(after=(each, f"{whole}.", *ranges_note(ranges_of(self.coefficients_))))

    def _no_estimates(self) -> str:
        return (
            "a binomial VerticalRegression has no estimates for inference: it is exact for normal predictors only, "
            'and no release tells whether they are: take family="gaussian"'
        )

    def _check_fitted(self) -> None:
        if "coefficients_" not in vars(self):
            raise NotAvailable("nothing is fitted yet: call fit first")

    def _statement(self) -> PrivacyStatement:
        found: PrivacyStatement = self.privacy_[0]
        return found

    def _promised(self) -> PrivacyStatement:
        return self.joint_privacy_

    def _terms(self) -> Mapping[str, Sequence[str]]:
        return terms_of(self.coefficients_.features, self.schema)

    def _checked_parameters(self) -> Event:
        """Refuse parameters of another type than documented; the budget."""
        Numeric(*checked_bounds("bounds", self.bounds))
        whole = isinstance(self.rows, int | np.integer) and not isinstance(self.rows, bool)
        if self.rows is not None and not (whole and 1 <= self.rows <= 2**31):
            raise InvalidInput(f"rows= takes a whole number from 1 to 2^31, not {one_line(self.rows)}")
        return checked_privacy(self, by_party=("ledger",))

    def _chosen(self, target: int | str, features: Sequence[int | str] | None) -> tuple[str, list[str]]:
        if not hasattr(self, "joint_"):
            raise InvalidInput("nothing is released yet: call fit first")
        return party_columns(self.joint_.moments.space.features, target, features)

    def _sides(self, parties: Mapping[str, Any]) -> list[PartySide]:
        if len(parties) < 2:
            raise InvalidInput("give at least two parties: one party alone needs no row sketch")
        known = by_party("public", self.public, parties, PublicMoments)
        sides: list[PartySide] = []
        for name, party in parties.items():
            public = known.get(name)
            sides.append(self._side(party, public, sum(len(side.space.features) for side in sides)))
        check_row_counts([side.source.n for side in sides])
        if sides[0].source.n < 1:
            raise InvalidInput("the parties hold no rows: nothing can be fitted")
        return sides

    def _side(self, party: Any, public: PublicMoments | None, taken: int) -> PartySide:
        source: Source
        if is_table(party) or isinstance(party, str | PathLike):
            rows = to_table(party) if is_table(party) else opened_table(party)
            encoder = Encoder.of(column_names(rows), None, self.schema)
            if not encoder.features:
                raise InvalidInput("a party holds no columns: leave it out")
            source, names = encoded(rows, encoder, None), encoder.features
        else:
            last = (party.target,) if isinstance(party, LabelledArray) else ()
            x = party.columns if isinstance(party, LabelledArray) else matrix(party)
            source = ArraySource(x)
            names = (*(f"x{taken + place}" for place in range(x.shape[1] - len(last))), *last)
            if public is not None and len(public.names) == len(names):
                public = replace(public, names=names)
        bounded = self._bounded(names)
        numbers = {} if public is not None else numbers_among(names, bounded)
        return PartySide(source, party_space(names, bounded, public), numbers)

    def _bounded(self, names: Sequence[str]) -> Schema:
        """The schema with the common bounds for every column that it does not bound."""
        schema = self.schema or Schema({})
        bounded = {name: Numeric(*self.bounds) for name in names if not schema.bounds_all([name])}
        return Schema({**schema.columns, **bounded})

    def _check_two_values(self, target: str) -> None:
        """Refuse a binomial target whose two values are not declared: they are not those of the default bounds."""
        declared = self.schema is not None and self.schema.bounds_all([target])
        if not declared and tuple(self.bounds) == _DEFAULT_BOUNDS:
            raise InvalidInput(
                f"the two values of {target!r} are not declared: give schema=Schema({{{target!r}: Numeric(0, 1)}}), or "
                "its own two values as the bounds"
            )

    def _bounds_of(self, name: str) -> tuple[float, float]:
        return self._bounded([name]).bounds_of(name)

    def _ledgers(self, parties: Sequence[str], promise: Event, budget: Event) -> Sequence[Ledger]:
        """One a party; a ledger that cannot be charged is refused before any is."""
        if self.ledger is None:
            return [MemoryLedger(promise) for _ in parties]
        found = by_party("ledger", self.ledger, parties, Ledger)
        if len(found) != len(parties):
            raise InvalidInput(f"ledger= names {len(found)} of {len(parties)} parties: give one each")
        for ledger in found.values():
            # a ledger that several parties share is charged for each of them
            times = sum(other.shares(ledger) for other in found.values())
            ledger.check(promise, unit=RECORD, asked=budget, times=times)
        return [found[name] for name in parties]


_ASSUMED_PUBLIC = (
    "the number of people and that each party holds a row of each",
    "the names, bounds and levels of the columns",
    "the mixing matrix",
)
