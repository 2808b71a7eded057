"""Naive reference of the estimate for inference of a linear fit: the merge of all scores, the remainder, the sandwich.

Written from the equations of the method alone, to cross-check an independent implementation.

A transcript has one entry per released score: where it was asked, b_t, the released mean g_t and the standard
deviation sigma_t of its noise. H is the released Gram matrix, whose entries have the variance eps_G, and M the released
second moment of whole contributions, per row. What a clip leaves of the slope of a score is S, without it T, and c is
the share of rows that it clips. Of a score whose residuals are clipped S is (1 - c) H and T is H; of gradients of whole
rows they are means over rows (``left``).

    theta = (sum S_t' S_t / v_t)^-1 sum S_t' (g_t + S_t b_t) / v_t,   V_privacy = (sum S_t' S_t / v_t)^-1
    v_t   = sigma_t^2 + eps_G |m_t|^2 + c_t^2 |T_t m_t|^2 / p,   m_t = b_T - b_t
    V     = J^-1 M J^-1 / n + V_privacy

Clips keep another part of changes than S says, the same share c of each (``kept``). For T scores with p numbers each,
on 161 shares from .2 to 1.8,

    density(c) ~ exp(-Q(c) / (2 f) - (1 - c)^2 / (2 0.3^2))
    Q(c) = min over theta of sum |g_t - c S_t (theta - b_t)|^2 / v_t
    f  = max(1, min Q / (T p - p))
    q  = 1 / mean of c,   s^2 = mean of (1/c - q)^2
    w  = (sum S_t' S_t / v_t)^-1 sum S_t' g_t / v_t
    a^2 = max(0, 1 - trace (sum S_t' S_t / v_t)^-1 / |w|^2)

V_privacy gets the term s^2 a^2 w w', and S_t / q stands in place of S_t in everything but v_t, w and t(b).

Where scores contradict one another, every v_t but the last is raised by the same e (``merged``). With k numbers in all
scores but the last,

    Q(e) = sum |g_t - S_t (theta(e) - b_t)|^2 / v_t(e),   v_t(e) = v_t + e, v_T(e) = v_T
    e    = 0 unless Q(0) > k + 2 sqrt(2 k), and then Q(e) = k

The model then misses the share h of changes, with Q and theta as they were without e. With theta, v_t and V_privacy as
they are with e, and d_t the change after the clip, V_privacy gets the term d d' (``missed``).

    h^2   = min(1, (Q(0) - k) / sum |S_t (theta - b_t)|^2 / v_t)
    d     = V_privacy sum S_t' h c_t d_t / v_t,   d_t = S_t (theta - b_t)
    c_t^2 = max(0, 1 - trace(S_t V_privacy S_t') / |d_t|^2)

What weights and clips take from the last score is released as v, with noise of the standard deviation s_K. J is the
slope of the ordinary score, and u what they take from a row with the whitened features x, the weight s and the
residual r; the bound K shrinks it.

    u      = x r - s x clip(s r, +-C),   of gradients   u = x r - shortened(t^2 x r, C),  t = min(1, 1.4 s)
    v      = mean u min(1, K/|u|)
    t(b)   = (J - S_T) (b - b_T)
    theta <- theta + J^-1 G (v - t(theta)),  G = T (T + s_K^2 I)^-1

T is a 25th of the mean of u u'. It is scaled by what |v - t|^2 / p is next to tr T / p (``scaled``), and L, what may
lie beyond K, by what it is next to l / 25 (``beyond_share``), but to a fifth at least of what does if they do not
grow. Residuals grow with rows (``growing``):

    r <- r max(1, |x| / (2 sqrt(mean |x|^2)))^2, with |x| at most the length that one row in a thousand exceeds (where
    all features are numbers)
    l = mean |u min(1, K/|u|)|^2 / p,   L = mean e e',  e = u - u min(1, K/|u|)

Where rows are far out or the model is wrong a second remainder is released, at a wider bound K_W (``followed``). With a
and a_W what both say beyond t along one direction e, the variance along e also has the squares of what the wider one
adds or a still wider one may add (``further``), and the sampling error of the few rows beyond K.

    c >= |a_W - a|,   c >= |a_W| (4^q - 1),   q = log(|a_W| / a_K) / log(K_W / K)
    f = a_W^2 K / (a_K n),   a_K = max(|a|, s_K)

Along e the estimate is that of the last score alone: with ``r = g_T - S_T (theta - b_T)``, theta moves by the part of r
along e as well, and the variance along e also has sigma_T^2.
"""

from typing import NamedTuple

import numpy as np


class Asked(NamedTuple):
    """A score of the transcript: where, its mean and the deviation of that; S, T and c."""

    place: np.ndarray
    score: np.ndarray
    sigma: float
    left: np.ndarray
    whole: np.ndarray
    clipped: float


class Remainder(NamedTuple):
    """A released remainder: what it says beyond what is expected, the deviation of its noise, and its bound."""

    surprise: np.ndarray
    noise: float
    bound: float


def merged(asked, gram_variance, last):
    """The estimate, the variance of its noise as a matrix, and what 1/c multiplies slopes by; ``last`` is b_T."""
    variances = known(asked, gram_variance, last)
    longer, deviation = kept(asked, variances)
    unknown = deviation * moved_by(asked, variances)
    estimate, privacy = agreed(divided(asked, longer), variances)
    return estimate, privacy + np.outer(unknown, unknown), longer


def agreed(asked, variances):
    """The estimate and the variance of its noise, where scores that contradict one another have larger variances."""
    estimate, privacy = explained(asked, variances)
    numbers = len(estimate) * (len(asked) - 1)
    beyond = misfit(asked, variances, estimate) - numbers
    if beyond <= 2 * np.sqrt(2 * numbers):
        return estimate, privacy
    share = min(1.0, np.sqrt(beyond / changes(asked, variances, estimate)))
    raised = contradicting(asked, variances, numbers)
    estimate, privacy = explained(asked, raised)
    doubt = missed(asked, raised, estimate, privacy, share)
    return estimate, privacy + np.outer(doubt, doubt)


def kept(asked, variances):
    """``q`` and ``s``: one over the mean of c, and how far 1/c is from it."""
    shares = np.linspace(0.2, 1.8, 161)
    misfits = []
    for share in shares:
        slopes = divided(asked, 1 / share)
        estimate, _ = explained(slopes, variances)
        misfits.append(misfit(slopes, variances, estimate))
    order = len(asked[0].score)
    spread = max(1.0, min(misfits) / (len(asked) * order - order))
    exponents = -np.array(misfits) / (2 * spread) - (1 - shares) ** 2 / (2 * 0.3**2)
    density = np.exp(exponents - exponents.max())
    density = density / density.sum()
    longer = 1 / (density @ shares)
    return longer, np.sqrt(density @ (1 / shares - longer) ** 2)


def divided(asked, longer):
    """The scores with the slopes S divided by this, but not T, which v_t rests on."""
    return [score._replace(left=score.left / longer) for score in asked]


def moved_by(asked, variances):
    """``a w``: how far the estimate moves if 1/c grows by 1, without what noise adds to that."""
    estimate, privacy = explained([score._replace(place=0 * score.place) for score in asked], variances)
    return estimate * np.sqrt(max(0.0, 1 - np.trace(privacy) / (estimate @ estimate)))


def known(asked, gram_variance, last):
    """``v_t`` of each score."""
    variances = []
    for place, _, sigma, _, whole, clipped in asked:
        away = last - place
        wrong = gram_variance * away @ away + clipped**2 * np.sum((whole @ away) ** 2) / len(last)
        variances.append(sigma**2 + wrong)
    return np.array(variances)


def explained(asked, variances):
    """``theta`` and ``V_privacy`` with these variances."""
    precision, total = 0.0, 0.0
    for (place, score, _, left, _, _), variance in zip(asked, variances, strict=True):
        precision = precision + left.T @ left / variance
        total = total + left.T @ (score + left @ place) / variance
    return np.linalg.solve(precision, total), np.linalg.inv(precision)


def misfit(asked, variances, estimate):
    """``Q``."""
    found = 0.0
    for (place, score, _, left, _, _), variance in zip(asked, variances, strict=True):
        found += np.sum((score - left @ (estimate - place)) ** 2) / variance
    return found


def changes(asked, variances, estimate):
    """The squares of what the estimate changes the scores by, in their variances."""
    found = 0.0
    for (place, _, _, left, _, _), variance in zip(asked, variances, strict=True):
        found += np.sum((left @ (estimate - place)) ** 2) / variance
    return found


def missed(asked, variances, estimate, privacy, share):
    """How far the estimate is off if the model misses this share of all changes, as far as these are not noise."""
    total = np.zeros(len(estimate))
    for (place, _, _, left, _, _), variance in zip(asked, variances, strict=True):
        change = left @ (estimate - place)
        square = change @ change
        if square > 0:
            unexplained = max(0.0, 1 - np.trace(left @ privacy @ left.T) / square)
            total += left.T @ change * share * np.sqrt(unexplained) / variance
    return privacy @ total


def contradicting(asked, variances, numbers):
    """Variances raised by the e with Q(e) = k, by bisection (Paule and Mandel 1982): Q falls to 0 as e grows."""
    others = np.append(np.ones(len(asked) - 1), 0.0)

    def beyond(raised):
        estimate, _ = explained(asked, variances + raised * others)
        return misfit(asked, variances + raised * others, estimate) > numbers

    low, high = 0.0, variances.max()
    while beyond(high):
        high = 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) else (low, middle)
    return variances + high * others


def sampling(slope, meat, n):
    """The sandwich, with J the slope of what the meat is the second moment of."""
    bread = np.linalg.inv(slope)
    return bread @ meat @ bread / n


def points(sizes, shares):
    """64 quantiles of sizes, in equal shares."""
    ascending = np.argsort(sizes)
    below = np.cumsum(shares[ascending])
    found = [sizes[ascending][below >= (point + 0.5) / 64][0] for point in range(64)]
    return np.array(found), np.ones(64) / 64


def uncut(squares, rows, weights, sizes, shares, bound):
    """``T M T``: a released second moment of contributions, with what the bound takes undone as the model has it."""
    within, whole = moments(rows * weights[:, None], sizes, shares, bound)
    raised = 0.001 * np.trace(whole) / len(whole) * np.eye(len(whole))
    undone = carried(at_least(within + raised, whole + raised, 0.2), whole + raised)
    return undone @ squares @ undone


def moments(rows, sizes, shares, bound):
    """``A = mean x x' a(x)`` and ``B = mean x x'``, with ``a(x) = E min(r^2, K^2/|x|^2) / E r^2``."""
    order = rows.shape[1]
    within, whole = np.zeros((order, order)), np.zeros((order, order))
    for row in rows:
        share = shares @ np.minimum(sizes**2, bound**2 / (row @ row)) / (shares @ sizes**2)
        within += share * np.outer(row, row) / len(rows)
        whole += np.outer(row, row) / len(rows)
    return within, whole


def at_least(matrix, other, least):
    """A matrix whose eigenvalues relative to another are raised to this."""
    outer = root(other)
    inner = np.linalg.inv(outer)
    values, vectors = np.linalg.eigh(inner @ matrix @ inner)
    return outer @ vectors @ np.diag(np.maximum(values, least)) @ vectors.T @ outer


def clipped_residual(row, weight, residual, clip):
    """What a row adds to a score whose residuals are clipped."""
    return weight * row * np.clip(weight * residual, -clip, clip)


def gradient(row, weight, residual, clip):
    """What a row adds to a score of whole rows: weights are those of a radius 1.4 times as long."""
    reach = min(1.0, 1.4 * weight)
    return shortened(reach**2 * row * residual, clip)


def length(row, weight):
    """That of the gradient of a row whose weighted residual is 1, without a clip."""
    return np.linalg.norm(gradient(row, weight, 1 / weight, np.inf))


def left(gram, rows, weights, sizes, shares, clip):
    """S of gradients, row by row: the second moment of rows at the reach whose gradients are within the clip.

    What the second moment of weighted rows lacks of H is added 1.4 times.
    """
    found = 1.4 * np.array(gram)
    for row, weight in zip(rows, weights, strict=True):
        reached = min(1.0, 1.4 * weight) * row
        within = shares @ (sizes * length(row, weight) <= clip)
        found = found + within * np.outer(reached, reached) / len(rows)
        found = found - 1.4 * weight**2 * np.outer(row, row) / len(rows)
    return found


def whole(gram, rows, weights):
    """T of gradients: S without a clip."""
    return left(gram, rows, weights, np.ones(1), np.ones(1), np.inf)


def gradients(rows, weights, sizes, shares):
    """The lengths of gradients before a clip, and their shares: 200 quantiles of rows' lengths, times sizes."""
    lengths = [length(row, weight) for row, weight in zip(rows, weights, strict=True)]
    quantiles = np.quantile(lengths, (np.arange(200) + 0.5) / 200)
    return np.outer(quantiles, sizes).ravel(), np.outer(np.ones(200) / 200, shares).ravel()


def cut(rows, weights, sizes, shares, clip):
    """The share of gradients that a clip shortens."""
    lengths, counts = gradients(rows, weights, sizes, shares)
    return counts[lengths > clip].sum()


def best_clip(lengths, counts, per_unit, order, n):
    """The clip of gradients: the largest whose loss is within a twentieth of the sampling variance of the least loss.

    The noise has the root mean squared norm ``per_unit`` for a clip of 1.
    """
    ascending = np.argsort(lengths)
    clips = []
    for share in 1 - np.geomspace(0.7, 1e-5, 40):
        reached = np.cumsum(counts[ascending]) >= share
        clips.append(lengths[ascending][reached][0])
    clips.extend(times * lengths.max() for times in (1, 2**0.5, 2, 2**1.5, 4))
    square = counts @ lengths**2
    losses = []
    for clip in clips:
        over = np.maximum(lengths - clip, 0)
        removed, kept = counts @ over**2 / square, 1 - counts @ (over * lengths) / square
        noise = (per_unit * clip) ** 2
        losses.append((noise + 0.15 * removed**2 * square / order) / kept**2 + removed * square / n)
    return max(clip for clip, loss in zip(clips, losses, strict=True) if loss <= min(losses) + 0.05 * square / n)


def shortened(vector, bound):
    """A vector within a ball."""
    length = np.linalg.norm(vector)
    return vector if length <= bound else vector * (bound / length)


def slope(gram, rows, weights):
    """``J = H + mean (1 - s^2) x x'``."""
    found = np.array(gram)
    for row, weight in zip(rows, weights, strict=True):
        found = found + (1 - weight**2) * np.outer(row, row) / len(rows)
    return found


def expected(slope, left, estimate, last):
    """``t(b)``, with S of the last score."""
    return (slope - left) @ (estimate - last)


def root(matrix):
    """The symmetric root of a positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(np.sqrt(values)) @ vectors.T


def carried(now, target):
    """The symmetric positive T with ``T now T = target``."""
    outer = root(target)
    return outer @ np.linalg.inv(root(outer @ now @ outer)) @ outer


def recoloured(rows, weights, gram):
    """Rows, linearly transformed so that their weighted Gram matrix is this one: they stand for the private rows.

    Of the maps that do this, it is the symmetric one A, with A (weighted Gram) A = H, which moves rows least.
    """
    weighted = rows * weights[:, None]
    return rows @ carried(weighted.T @ weighted / len(rows), gram)


def growing(rows):
    """How many times as large the residuals of a row are if they grow with the square of its length, of far rows."""
    lengths = np.linalg.norm(rows, axis=1)
    most = np.sort(lengths)[int(np.ceil(0.999 * (len(lengths) - 1)))]
    return np.maximum(1.0, np.minimum(lengths, most) / (2 * np.sqrt(np.mean(lengths**2)))) ** 2


def unfitted(rows, weights, times, sizes, shares, added, bound):
    """The second moments of u, of what the bound leaves of it, and of what the bound takes of it.

    Every row has weighted residuals ``s r`` of every size, in these shares, so many times as large;
    ``added(row, weight, residual)`` is what it adds to the last score.
    """
    order = rows.shape[1]
    whole, within, beyond = np.zeros((3, order, order))
    for row, weight, larger in zip(rows, weights, times, strict=True):
        for size, share in zip(larger * sizes, shares, strict=True):
            taken = row * size / weight - added(row, weight, size / weight)
            left = shortened(taken, bound)
            whole += share * np.outer(taken, taken) / len(rows)
            within += share * np.outer(left, left) / len(rows)
            beyond += share * np.outer(taken - left, taken - left) / len(rows)
    return whole, within, beyond


def scaled(lost, surprise, noise, *, generous):
    """T at the size that ``v - t`` suggests: the likely one for predictions, an upper limit of it for intervals.

    For intervals, what exceeds the mean square that T stands for may have any direction.
    """
    usual = np.trace(lost) / len(lost)
    size = suggested(surprise, noise, generous=generous)
    excess = max(size - usual, 0.0) if generous else 0.0
    return lost * min(size / usual, 1.0) + excess * np.eye(len(lost))


def suggested(surprise, noise, *, generous):
    """The mean square of a remainder beyond its noise."""
    order = len(surprise)
    allowance = 1 + 2 * np.sqrt(2 / order) if generous else 1.0
    return max(surprise @ surprise / order * allowance - noise**2, 0.0)


def beyond_share(usual, surprise, noise):
    """Of what may lie beyond the bound: a 25th, times the size of the remainder over the usual one.

    More than that, up to all, if noise cannot explain it.
    """
    order = len(surprise)
    clear = (surprise @ surprise / order - (1 + 2 * np.sqrt(2 / order)) * noise**2) / usual
    times = min(suggested(surprise, noise, generous=True) / usual, max(clear, 1.0))
    return min(times / 25, 1.0)


def larger(one, other):
    """The one with the larger trace."""
    return one if np.trace(one) >= np.trace(other) else other


def gain(lost, noise):
    """``G``."""
    return lost @ np.linalg.inv(lost + noise**2 * np.eye(len(lost)))


def move(slope, lost, surprise, noise, generous):
    """How far the estimate moves, and the covariance of that, with a doubt where T and noise explain too little.

    If generous, the move itself is a doubt.
    """
    order = len(lost)
    bread, followed = np.linalg.inv(slope), gain(lost, noise)
    covariance = bread @ followed @ bread * noise**2
    excess = surprise @ np.linalg.inv(lost + noise**2 * np.eye(order)) @ surprise / order
    if excess > 1 + 2 * np.sqrt(2 / order):
        doubt = (1 - 1 / np.sqrt(excess)) * bread @ (np.eye(order) - followed) @ surprise
        covariance = covariance + np.outer(doubt, doubt)
    moved = bread @ followed @ surprise
    return moved, covariance + generous * np.outer(moved, moved)


def followed(slope, first, wider, rest, sigma, n):
    """The move and its covariance where a second remainder at a wider bound was released.

    Nothing is followed unless one of both stands out of its noise; then the first one along all directions, and the
    wider one along that of the one that stands out more. There the estimate is that of the last score, which the merged
    estimate misses by ``rest``, with noise of the deviation ``sigma``.
    """
    order = len(slope)
    if max(stands_out(first), stands_out(wider)) <= order * (1 + 2 * np.sqrt(2 / order)):
        return np.zeros(order), np.zeros((order, order))
    bread = np.linalg.inv(slope)
    along = first.surprise if stands_out(first) >= stands_out(wider) else wider.surprise
    along = along / np.linalg.norm(along)
    near, far = along @ first.surprise, along @ wider.surprise
    moved = bread @ (first.surprise + (far - near + along @ rest) * along)
    few = far**2 * first.bound / (max(abs(near), first.noise) * n)
    beyond = wider.noise**2 + sigma**2 + further(along, first, wider) ** 2 + few
    variance = first.noise**2 * np.eye(order) + beyond * np.outer(along, along)
    return moved, bread @ variance @ bread


def stands_out(remainder):
    """The square of a remainder, in the variance of its noise."""
    return remainder.surprise @ remainder.surprise / remainder.noise**2


def further(along, first, wider):
    """``c``: what the wider bound adds, or what one four times as wide would add if the remainder grows on."""
    near, far = along @ first.surprise, along @ wider.surprise
    added = abs(far - near)
    if abs(far) <= 2 * wider.noise or abs(far) <= abs(near):
        return added
    power = np.log(abs(far) / max(abs(near), first.noise)) / np.log(wider.bound / first.bound)
    return max(added, abs(far) * (4 ** min(power, 1.0) - 1))


def shift(slope, beyond):
    """``J^-1 L J^-1 / 100``."""
    bread = np.linalg.inv(slope)
    return bread @ beyond @ bread / 100
