"""How arms move, with help and without: one model, from counts of moves to rows and draws of them.

everybody   the rows of everybody, and what help does, from all moves and what trials found
tilts       what columns and each person's own moves say: tilts towards better or worse states
own_rows    each person's rows, drawn in to what the others show
weeks       what changes with time: seasons, help that wears off or works late
model       these together: `estimate` and `draw`
dynamics    what a plan is made from; the paper's boxes
"""
