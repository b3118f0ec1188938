"""Random scores and ratings of systems in dialogues, for tests of statistics."""

import numpy as np

from comperdial.stats.design import Design


def sample(rng, systems, dialogues, turns, *, metrics=3, missing=0.0, drop=0.0, average=False):
    """Return scores, ratings and design; ratings are tied, one metric too, and half of the units may be gone."""
    s, d, _ = (codes.ravel() for codes in np.indices((systems, dialogues, turns)))
    kept = rng.random(len(s)) >= drop
    kept[:: max(1, len(s) // (systems * dialogues))] = True
    s, d = s[kept], d[kept]
    truth = rng.normal(size=systems)[s] + 0.3 * rng.normal(size=dialogues)[d] + rng.normal(size=len(s))
    ratings = np.clip(np.round(truth * 2) / 2, -2, 2)
    scores = np.stack([truth * k + rng.normal(size=len(s)) for k in range(metrics)])
    scores[-1] = np.round(scores[-1])
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores, ratings, Design(np.unique(s, return_inverse=True)[1], np.unique(d, return_inverse=True)[1], average)


def crossed(systems=9, dialogues=5, turns=2, average=False):
    """Return the design of every system in every turn of every dialogue."""
    codes = np.indices((systems, dialogues, turns)).reshape(3, -1)
    return Design(codes[0], codes[1], average)


def drawn(design, metrics=3, seed=0, truth=1.0):
    """Return scores that follow a common quality, and rounded ratings of it."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=design.systems.max() + 1)[design.systems] + rng.normal(size=len(design.systems))
    ratings = np.round(quality + rng.normal(size=len(quality)))
    return truth * quality + rng.normal(size=(metrics, len(quality))), ratings
