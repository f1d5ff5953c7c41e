"""Places of a list by lot: people on it who wait, and people off it who get their places.

Both are drawn at random, so each of them can be compared with the people they were drawn from: what
help does to people who are nearly always helped, and to people who nearly never are.
"""

import numpy as np

from dopl_core.learning.bandit import IntArray


def exchange(
    listed: IntArray,
    others: IntArray,
    count: int,
    rng: np.random.Generator,
    codes: IntArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Who of `listed` waits, and who of `others` gets their places: `count` of each, in order.

    Fewer, if there are not as many others. All who are listed are as likely to wait, and all others
    to be drawn.

    codes: [N] groups that places are shared out among. Each place stays in its group, so all are as
        likely within each group.
    """
    waiting: list[int] = []
    drawn: list[int] = []
    left = others
    for arm in rng.permutation(listed).tolist():
        if len(drawn) == count or not len(left):
            break
        alike = left if codes is None else left[codes[left] == codes[arm]]
        if len(alike):
            waiting.append(arm)
            drawn.append(int(rng.choice(alike)))
            left = left[left != drawn[-1]]
    return np.sort(np.array(waiting, dtype=np.int64)), np.sort(np.array(drawn, dtype=np.int64))
