"""Released marginals as versioned JSON; matrices are little-endian float64 in base64. Nothing is executed."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpregress.accounting import PrivacyStatement
from dpregress.coordinates.domain import Domain
from dpregress.coordinates.svec import Matrix
from dpregress.display import shown
from dpregress.errors import InvalidInput, reason
from dpregress.json_files import MALFORMED, parsed
from dpregress.releases.block_noise import BlockNoise, TableNoise
from dpregress.releases.marginals import Marginals, Mixture
from dpregress.releases.moment_noise import MomentNoise
from dpregress.releases.noise import Entrywise, NoiseLaw
from dpregress.releases.residual_noise import ResidualNoise
from dpregress.releases.tables import Clique

_TableLaw = type[ResidualNoise] | type[BlockNoise] | type[MomentNoise]
#: The largest count or noise scale that a file may hold.
_LARGEST = 1e100
_FORMAT = "dpregress.marginals/1"


def marginals_text(marginals: Marginals, privacy: PrivacyStatement, *, software: str) -> str:
    """Marginals and their guarantee as JSON text."""
    record = {
        "format": _FORMAT,
        "software": software,
        "domain": marginals.domain.encode(),
        "count": marginals.count,
        "gram": _packed(marginals.gram),
        "noise": _encoded_noise(marginals.noise),
        "unshrunk": _encoded_unshrunk(marginals),
        "chances": _packed(marginals.mixture.chances),
        "level_error": _packed(marginals.level_error),
        "privacy": privacy.encode(),
    }
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def load_marginals(path: str | Path) -> tuple[Marginals, PrivacyStatement]:
    """Read what :func:`marginals_text` wrote.

    Raises
    ------
    InvalidInput
        If the file is not a marginals file, or has another version.
    """
    try:
        record = parsed(Path(path).read_text(encoding="utf-8"))
        if record["format"] != _FORMAT:
            raise InvalidInput(f"it is of format {record['format']!r}, not {_FORMAT!r}")
        domain = Domain.decode(record["domain"])
        privacy = PrivacyStatement.decode(record["privacy"])
        marginals = Marginals(
            domain,
            _positive(record["count"]),
            _unpacked(record["gram"], (domain.width, domain.width)),
            _decoded_noise(record["noise"], domain),
            _mixture(domain, _unpacked(record["chances"], (-1, domain.levels))),
            privacy.events.parts,
            _unpacked(record["level_error"], (domain.levels,)),
            _decoded_unshrunk(record.get("unshrunk"), domain),
        )
    except (OSError, *MALFORMED) as error:
        raise InvalidInput(f"{shown(path)} is not a file of marginals: {reason(error)}") from error
    return marginals, privacy


def _positive(value: Any) -> float:
    number = float(value)
    if not 0 < number <= _LARGEST:
        raise InvalidInput("its numbers of records and scales of noise must be positive and finite")
    return number


def _mixture(domain: Domain, chances: Matrix) -> Mixture:
    sums = [chances[:, domain.levels_of(j)].sum(axis=1) for j in range(len(domain.attributes))]
    if not len(chances) or (chances < 0).any() or not np.allclose(sums, 1.0):
        raise InvalidInput("its mixture is not valid: probabilities must not be negative and must sum to 1")
    return Mixture(domain, chances)


def _packed(values: Matrix) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()


def _unpacked(text: str, shape: tuple[int, ...]) -> Matrix:
    values = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8").astype(np.float64).reshape(shape)
    if not np.isfinite(values).all():
        raise InvalidInput("it holds values that are not finite numbers")
    return values


def _encoded_unshrunk(marginals: Marginals) -> dict[str, Any] | None:
    if marginals.unshrunk is None:
        return None
    gram, noise = marginals.unshrunk
    return {"gram": _packed(gram), "noise": _encoded_noise(noise)}


def _decoded_unshrunk(record: Mapping[str, Any] | None, domain: Domain) -> tuple[Matrix, TableNoise] | None:
    """None in files of earlier versions."""
    if record is None:
        return None
    noise = _decoded_noise(record["noise"], domain)
    if not isinstance(noise, TableNoise):
        raise InvalidInput("its tables for inference have the noise law of others")
    return _unpacked(record["gram"], (domain.width, domain.width)), noise


def _encoded_noise(noise: NoiseLaw) -> dict[str, Any]:
    for law, (kind, _) in _TABLE_LAWS.items():
        if isinstance(noise, kind):
            sigmas = [[list(clique), sigma] for clique, sigma in noise.sigmas.items()]
            return {"law": law, "sigmas": sigmas, "kept": list(noise.kept)}
    if isinstance(noise, Entrywise):
        return {"law": "entrywise", "variance": _packed(noise.variance)}
    raise InvalidInput(f"{type(noise).__name__} is not a noise law of marginals")


def _decoded_noise(record: Mapping[str, Any], domain: Domain) -> NoiseLaw:
    if record["law"] == "entrywise":
        return Entrywise(_unpacked(record["variance"], (domain.width, domain.width)))
    if record["law"] not in _TABLE_LAWS:
        raise InvalidInput(f"there is no noise law {record['law']!r}")
    kind, beside = _TABLE_LAWS[record["law"]]
    sigmas = {tuple(int(j) for j in clique): _positive(sigma) for clique, sigma in record["sigmas"]}
    kept = tuple(int(place) for place in record["kept"])
    every = {*((j,) for j in range(len(domain.attributes))), *domain.pairs, *beside(domain)}
    if set(sigmas) != every or kept != tuple(range(domain.width)):
        raise InvalidInput("its noise does not match its columns")
    return kind(domain, sigmas, kept)


#: The laws of tables by their names in files, with the cliques that they have beside attributes and pairs.
_TABLE_LAWS: Mapping[str, tuple[_TableLaw, Callable[[Domain], list[Clique]]]] = {
    "residuals": (ResidualNoise, lambda _: [()]),
    "blocks": (BlockNoise, lambda _: []),
    "moments": (MomentNoise, lambda domain: [(), *domain.own_pairs]),
}
