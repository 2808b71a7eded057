"""Generalised linear and non-linear models under local privacy: every user's device adds the noise."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from dpregress.accounting import ApproxDP, Composed, Event, Ledger, PrivacyStatement, PureDP, Relation, Unit, user_of
from dpregress.accounting.names import note_of
from dpregress.accounting.shuffle import shuffled_epsilon
from dpregress.coordinates import Vector
from dpregress.errors import ChargedBefore, InvalidInput, NotAvailable, UnboundedData, one_line
from dpregress.estimators.base import PrivateLinearModel
from dpregress.estimators.parameters import checked_bounds
from dpregress.estimators.progress import reported
from dpregress.estimators.provenance import made_now
from dpregress.estimators.results import estimates_of, original
from dpregress.estimators.scoring import VarianceScore
from dpregress.estimators.summary import SummaryNotes
from dpregress.estimators.training import Training
from dpregress.inference import IntervalKind, moment_estimates
from dpregress.inputs.names import listed
from dpregress.inputs.public import columns_behind, moments_of
from dpregress.inputs.tables import Inputs
from dpregress.models import family_of
from dpregress.models.mean_responses import MeanResponse, mean_of
from dpregress.public import Numeric, Schema
from dpregress.public.facts import PublicFacts
from dpregress.releases import CrossMoments, Estimates, Moments, Release, Score
from dpregress.releases.model_files import ResponseModel
from dpregress.rows import Engine
from dpregress.rows.engines import Progress
from dpregress.solvers.local.equation_estimates import equation_estimates
from dpregress.solvers.local.message_plan import MessagePlan
from dpregress.solvers.local.messages import MessageRecipe
from dpregress.solvers.local.moment_matching import solve_message_plan
from dpregress.solvers.local.planning import plan_messages
from dpregress.solvers.local.reading import LEAST_KEPT, joint_moments
from dpregress.trust import Local, Session

#: Whose guarantee it is: a user's message is all that anybody sees of their row.
_DEVICE = Unit("user, whose own device adds the noise (local model)")
_SHARED = Unit(
    "user, against one of two collectors that hold shares of the answers, or against both if they do not collude"
)

#: Families that files hold.
_FILED = ("gaussian", "binomial", "poisson")


class LocalGLM(VarianceScore, PrivateLinearModel):
    r"""A model ``E[y | x] = m(x'b + b0)`` from one noisy message of every user.

    Each user whitens their row by the public moments, bounds it, and sends ``x~ (y - c)``, and where it helps also x~,
    where y lies, and products of columns, as one random unit vector or with Gaussian noise, whichever is predicted to
    lose less; the server sums. :meth:`fit` simulates a whole study by the exact law of that sum. One study serves any
    number of families (:meth:`refit`).

    Parameters
    ----------
    privacy : ApproxDP
        The budget of one user's message, for replacing their whole row by any other. Unit vectors spend no delta.
    family : str or MeanResponse, default="binomial"
        A family with its usual link ("gaussian", "binomial", "poisson"), another mean response of Wang et al. (2023)
        ("boosting", "sigmoid", "cubic", "log1pexp"), or a mean response of your own: m and its slope.
    public : PublicMoments, table or file, optional
        Moments of public rows with the same columns, or the rows themselves (a table or a file); labelled ones
        are a prior. Without them the Gram matrix is collected too, which takes far more users; with too few, users are
        asked for the mean alone, or the study is refused.
    schema : Schema, optional
        Bounds and levels; bounds of y under the name of y (a Series' name, else "y").
    row_bound : float, optional
        A public bound on the norm of a row, where there is neither a public table nor a schema.
    response_bounds : pair of float, optional
        Public bounds of y, to which it is clipped; default: the family's own (0 and 1), the schema's, or the range
        of public labels.
    fit_intercept : bool, default=True
    formula : str, optional
        Such as ``"visits ~ age + C(plan)"``: the columns, and whether there is an intercept (docs/formulas.md).
    recipe : {"auto", "unit-vector", "gaussian", "joint"}, default="auto"
        What users send. "auto" takes what is predicted to lose least.
    ledger : Ledger, optional
        What one user who answers every study may spend, of unit "record" or "user"; each study is charged once.
        A budget of ApproxDP or GDP covers all messages, one of PureDP unit vectors. The epsilons of unit vectors add
        up; beside Gaussian messages, a unit vector counts by its mu, which is dearer.
        :meth:`fit` charges before any row is read. :meth:`fit_release` comes after the users have answered, so it
        can only record what they spent. Without a ledger nothing is recorded.
    random_state : None, int or numpy Generator
        None draws from the operating system. A seed is for tests and simulations, and warns.

    Attributes
    ----------
    coef_, intercept_, privacy_, coefficients_, n_features_in_, feature_names_in_
        As in :class:`DPRidge`; ``privacy_`` is the guarantee of one user.
    estimates_ : Estimates or None
        For inference, not shrunk; None where public facts do not bound their error (docs/inference.md).
    message_plan_ : MessagePlan
        What users were asked.
    release_ : Score, CrossMoments or Moments
        What the study collected; anything computed from it is free.
    scale_ : Scale
        Stein's constant and whether it is a root; if not, the noise hides the signal.

    References
    ----------
    Wang, Hu, Zhang, Gaboardi, Xu (2023) for the setting; docs/methods/local.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import ApproxDP, LocalGLM, PublicMoments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50_000, 3)); y = rng.random(50_000) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5]))
    >>> public = PublicMoments.from_rows(X[:500])
    >>> model = LocalGLM(ApproxDP(2.0, 1e-6), public=public).fit(X[500:], y[500:])
    >>> bool(np.abs(model.coef_ - [1.0, -1.0, 0.5]).max() < 0.4)
    True
    >>> model.coef_for("boosting").shape
    (3,)
    """

    def __init__(
        self,
        privacy: Event | None = None,
        *,
        family: str | MeanResponse = "binomial",
        public: Any = None,
        schema: Schema | None = None,
        row_bound: float | None = None,
        response_bounds: tuple[float, float] | None = None,
        fit_intercept: bool = True,
        formula: str | None = None,
        recipe: MessageRecipe = "auto",
        ledger: Ledger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.privacy = privacy
        self.family = family
        self.public = public
        self.schema = schema
        self.row_bound = row_bound
        self.response_bounds = response_bounds
        self.fit_intercept = fit_intercept
        self.formula = formula
        self.recipe = recipe
        self.ledger = ledger
        self.random_state = random_state

    def plan(self, features: tuple[str, ...], n: int, *, target: str = "y", collectors: int = 0) -> MessagePlan:
        """What users will be asked, before there are any: a function of the public facts.

        Parameters
        ----------
        features : tuple of str
            Design columns, in the order of the public rows.
        n : int
            How many users are expected; the best radius depends on it, privacy does not.
        target : str
        collectors : int
            How many collectors add noise to their shares of the sum, once each; 0 where every user adds noise to a
            message (docs/collector/two-collectors.md).
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InvalidInput(f"n is a whole number of users of at least 1, not {one_line(n)}")
        budget, facts = self._checked_parameters(), self._planned(tuple(listed(features)), n, target)
        return plan_messages(facts, budget, self._bounds(facts), self.recipe, collectors=collectors)

    def fit_release(self, release: Release, message_plan: MessagePlan) -> Self:
        """Fit to what a study has collected: the fit costs nothing more, further studies do.

        ``privacy_`` is what a user spent on the study of this release alone. A user who answers several
        studies, of this model or another, spends their sum: Gaussian messages ``sqrt(sum mu_i^2)``, unit vectors
        ``sum epsilon_i`` (docs/methods/local.md).

        Parameters
        ----------
        release : Score, CrossMoments or Moments
            The sum of the users' messages.
        message_plan : MessagePlan
            The plan that they answered.

        Raises
        ------
        InvalidInput
            For a release of another plan.
        BudgetExceeded, LedgerError
            When ``ledger`` does not hold what the study cost each user, or counts something else. The users have
            answered all the same.
        """
        self._checked_parameters()
        if not (isinstance(release, Score | CrossMoments | Moments) and isinstance(message_plan, MessagePlan)):
            raise InvalidInput("fit_release takes what a study released, and the message plan that its users answered")
        response = message_plan.space.response
        if response is None or not release.space.same_as(message_plan.space):
            raise InvalidInput("this release belongs to another study")
        facts = self._planned(message_plan.space.features, release.n, response.name)
        self._record(message_plan, release)
        self._keep(facts, message_plan, release)
        self.design_ = None
        self.provenance_ = made_now("a collected study")
        self.privacy_ = PrivacyStatement(
            budget=message_plan.spend,
            promise=message_plan.spend,
            events=Composed.of(release.events),
            relation=Relation.REPLACE_ONE,
            unit=(_SHARED if message_plan.collectors else _DEVICE).name,
            assumed_public=_assumed_public(facts),
            seeded=False,
            recorded=None if self.ledger is None else self.ledger.location,
        )
        Inputs(len(message_plan.space.features), None).keep(self)
        return self

    def refit(self, family: str | MeanResponse) -> Self:
        """The same release for another family: post-processing, free of cost.

        Parameters
        ----------
        family : str or MeanResponse
        """
        check_is_fitted(self)
        mean_of(family)
        self.family = family
        self._keep(self._fitted_facts, self.message_plan_, self.release_)
        return self

    def coef_for(self, family: str | MeanResponse) -> Vector:
        """Coefficients of another family from the same release, of shape (d,); free of cost."""
        check_is_fitted(self)
        response = mean_of(family)
        solution, _ = solve_message_plan(self.message_plan_, self.release_, self._fitted_facts, response)
        return original(solution, None, self._fitted_facts).coef

    def shuffled_epsilon(self, delta: float | None = None) -> float:
        """The central epsilon at delta if messages are shuffled before anybody sees them.

        Its conditions are those of :func:`~dpregress.accounting.shuffle.shuffled_epsilon`: all n users answer
        independently, and nobody but the shuffler can tell whose message is whose.

        Parameters
        ----------
        delta : float, optional
            Default: that of the budget.

        Raises
        ------
        NotAvailable
            Where collectors added the noise: there are no messages to shuffle.
        """
        check_is_fitted(self)
        if self.message_plan_.collectors:
            raise NotAvailable("two collectors added the noise to sums: there are no messages to shuffle")
        message_plan, delta = self.message_plan_, self._checked_parameters().delta0 if delta is None else delta
        return shuffled_epsilon(message_plan.spend, self.release_.n, delta, entries=message_plan.query.size)

    def predict(self, X: ArrayLike, *, interval: IntervalKind | None = None, level: float = 0.95) -> Any:
        """Mean responses ``m(X coef + intercept)``, of shape (m,).

        Parameters
        ----------
        X : array-like or table of shape (m, d)
            Missing cells are replaced as in the fit.
        interval : {"mean", "prediction"}, optional
            Also an interval of the mean response, or of a new one; the result is then a
            :class:`~dpregress.inference.PredictedIntervals` about the unshrunk estimate.
        level : float, default=0.95
        """
        if interval is not None:
            return self._intervals(self._rows(X), interval, level)
        return np.asarray(mean_of(self.family).mean(self._linear_predictor(X)))

    @property
    def response_model(self) -> ResponseModel:
        """How the linear predictor becomes a prediction, for models that files can hold."""
        if not isinstance(self.family, str) or self.family not in _FILED:
            raise NotAvailable("files hold gaussian, binomial and poisson models only")
        return ResponseModel(self.family, family_of(self.family).link.name)

    def _notes(self) -> SummaryNotes:
        """The guarantee of shuffled messages, beside that of one message."""
        hidden = () if self.coef_.any() else ("Noise hides all slopes: predictions are the mean for everybody.",)
        if self.message_plan_.collectors:
            return SummaryNotes(after=hidden)
        central, delta = self.shuffled_epsilon(), self._checked_parameters().delta0
        shuffled = f"If shuffled: epsilon = {central:.3g}, delta = {delta:g} against whoever sees all messages."
        return SummaryNotes(after=(*hidden, shuffled))

    def _no_estimates(self) -> str:
        return (
            "this LocalGLM has no estimates for inference: give public rows, five a coefficient or more, and ask more "
            "users or spend more if noise hides the answer"
        )

    def _known_response(self) -> ResponseModel | None:
        return self.response_model if isinstance(self.family, str) and self.family in _FILED else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the checks fit tens of rows, where noise must drown them
        return tags

    def _fit(self, budget: Event, data: Training, progress: bool | Progress, engine: Engine | None = None) -> Self:
        if data.unit.rows is not None:
            raise InvalidInput("a user sends one message about one row: unit= is for data that a curator holds")
        if data.weights is not None:
            raise InvalidInput("a user's message has one weight: leave weights= out")
        if data.diagnose:
            raise InvalidInput("a device answers once, and its answer is the fit's: leave diagnose= out")
        if data.exposure is not None:
            raise InvalidInput("a user's message is about a row without an exposure: leave exposure= out")
        facts = self._facts(data.features, data.source.n, data.target, data.public, data.schema, data.intercept)
        assert isinstance(budget, ApproxDP)
        message_plan = plan_messages(facts, budget, self._bounds(facts), self.recipe)
        with reported(progress, 1) as report, data.rows(engine, report) as rows:
            # one ledger stands for n, one on each device, of which each is charged for one message before its row is
            # looked at; a real device does so when device_report is given its ledger
            session = Session.reserve(
                rows,
                message_plan.spend,
                trust=Local(),
                budget=message_plan.spend if isinstance(message_plan.spend, PureDP) else budget,
                ledger=self.ledger,
                unit=self._counted(),
                note=note_of(f"a message about {data.target}"),
                request=data.request,
                random_state=self.random_state,
            )
            release: Release = session(message_plan.query, message_plan.spend)
        self._keep(facts, message_plan, release)
        self.design_ = data.design
        self.provenance_ = made_now(data.origin)
        data.inputs.keep(self)
        self.privacy_ = replace(session, unit=_DEVICE).statement(_assumed_public(facts))
        return self

    def _checked_parameters(self) -> ApproxDP:
        mean_of(self.family)
        budget = super()._checked_parameters()
        if not isinstance(budget, ApproxDP):
            raise InvalidInput(f"users' messages take a budget ApproxDP(epsilon, delta), not {budget}")
        return budget

    def _counted(self) -> Unit:
        """The user, as the ledger calls them."""
        return _DEVICE if self.ledger is None else user_of(self.ledger.account.unit)

    def _record(self, message_plan: MessagePlan, release: Release) -> None:
        """Charge what users have spent on a collected study, once however often it is fitted."""
        if self.ledger is None:
            return
        study = hashlib.sha256(np.ascontiguousarray(release.total).tobytes()).hexdigest()
        with suppress(ChargedBefore):
            self.ledger.reserve(message_plan.spend, unit=self._counted(), note=f"a collected study, {study}", once=True)

    def _planned(self, features: tuple[str, ...], n: int, target: str) -> PublicFacts:
        public = None
        if self.public is not None:
            columns = columns_behind(features, self.public, self.schema)
            public = moments_of(self.public, columns, target, self.schema)[0].select(features)
        return self._facts(features, n, target, public, self.schema, self.fit_intercept)

    def _bounds(self, facts: PublicFacts) -> tuple[float, float]:
        """Public bounds of the response."""
        if self.response_bounds is not None:
            return checked_bounds("response_bounds", self.response_bounds)
        own = mean_of(self.family).bounds
        column = None if facts.schema is None else facts.schema.column(facts.target)
        declared = column.bounds if isinstance(column, Numeric) else None
        if own is not None:
            if declared is not None and not own[0] <= declared[0] < declared[1] <= own[1]:
                raise InvalidInput(
                    f"the schema declares {facts.target!r} between {declared[0]:g} and {declared[1]:g}, and responses "
                    f"of family {one_line(self.family)} lie between {own[0]:g} and {own[1]:g}: name the family, such "
                    "as family='gaussian'"
                )
            return own
        if declared is not None:
            return declared
        if facts.trusted_labels is not None:
            return float(facts.trusted_labels.min()), float(facts.trusted_labels.max())
        raise UnboundedData(f"{facts.target!r} needs public bounds: give response_bounds=, or public labels")

    def _keep(self, facts: PublicFacts, message_plan: MessagePlan, release: Release) -> None:
        response = mean_of(self.family)
        solution, scale = solve_message_plan(message_plan, release, facts, response)
        self.estimates_ = _estimates(message_plan, release, facts, response, solution.whitened)
        self._fitted_facts, self.message_plan_, self.release_ = facts, message_plan, release
        self.coefficients_, self.scale_ = original(solution, solution.uncertainty, facts), scale
        self.coef_: Vector = self.coefficients_.coef
        self.intercept_: float = self.coefficients_.intercept
        self.moments_ = None


def _estimates(
    message_plan: MessagePlan, release: Release, facts: PublicFacts, response: MeanResponse, start: Vector
) -> Estimates | None:
    """From public rows, or of a linear model from the users' own Gram matrix; else what is not known has no bound.

    What collectors release holds the Gram matrix with little noise, so that a linear model needs no public rows.
    """
    moments = _joint_moments(release) if response == mean_of("gaussian") else None
    if moments is not None and message_plan.collectors:
        return moment_estimates(moments)
    found = equation_estimates(message_plan, release, facts, response, start)
    if found is not None:
        return estimates_of(found, release.n)
    if moments is not None and facts.public is None:
        kept = float(np.clip(moments.gram[0, 0], LEAST_KEPT, 1.0)) if moments.space.intercept else 1.0
        return moment_estimates(moments, lost=(1 / kept - 1) * moments.gram)
    return None


def _joint_moments(release: Release) -> Moments | None:
    if isinstance(release, CrossMoments) and release.gram is not None:
        return joint_moments(release)
    return release if isinstance(release, Moments) else None


def _assumed_public(facts: PublicFacts) -> tuple[str, ...]:
    return (*facts.assumed_public(), "the bounds of the response")
