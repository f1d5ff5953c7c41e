"""Which functions of ours a click passes, from its callback to the next comparison drawn."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / folder}/" for folder in ("dopl_core", "pages"))


def functions_passed(do: Callable[[], object], entrances: Sequence[str]) -> set[tuple[str, str]]:
    """Every function of dopl_core and pages that runs inside of the entrances: (file, name).

    Lambdas and comprehensions belong to the function around them.
    entrances: names of functions at which the path starts. In a browser a click runs its callback
        and the fragment around its button; AppTest draws the rest of the page as well, which is
        left out here.
    """
    passed: set[tuple[str, str]] = set()
    inside: dict[int, int] = {}  # calls of entrances that are running, by thread

    def is_ours(code: CodeType) -> bool:
        return code.co_filename.startswith(OURS) and not code.co_name.startswith("<")

    def look(frame: FrameType, event: str, _: object) -> None:
        code, thread = frame.f_code, threading.get_ident()
        if event not in ("call", "return") or not is_ours(code):
            return
        if code.co_name in entrances:
            inside[thread] = inside.get(thread, 0) + (1 if event == "call" else -1)
        if event == "call" and inside.get(thread, 0) > 0:
            passed.add((code.co_filename.removeprefix(f"{ROOT}/"), code.co_qualname))

    threading.setprofile(look)
    try:
        do()
    finally:
        threading.setprofile(None)
    return passed
