"""A process whose linear algebra rounds as another processor's does, and what is done in it.

`python elsewhere.py imports FILE...` or `plays URL STUDY`; what came of it is printed as JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bundles import OURS
from playing import Clock, check_replay, play

from dopl_core import studies
from dopl_core.learning.reproducibility import fingerprint
from dopl_core.studies import Store

CORES = ("Haswell", "Prescott")
HERE = Path(__file__).resolve()


def elsewhere(core: str, *arguments: object) -> dict[str, Any]:
    """What this file says when it is run as on another processor."""
    environment = os.environ | {"OPENBLAS_CORETYPE": core, "PYTHONPATH": str(HERE.parents[2])}
    command = [sys.executable, str(HERE), *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    said: dict[str, Any] = json.loads(run.stdout)
    return said


def take_in(store: Store, clock: Clock, file: Path) -> str:
    """How a bundle came out; it has gone on, and replays again. Or why it is refused."""
    how: list[str] = []
    try:
        studies.replay_bundle(file, how.append)
    except OURS as error:
        return str(error)
    study = studies.import_bundle(store, file)
    check_replay(store, study)
    clock.wait(10**6)
    labels = [state.label for state in studies.get_study(store, study).config.states]
    assert play(store, study, 20, clock=clock, states=labels) > 5
    check_replay(store, study)
    studies.replay_bundle(studies.export_bundle(store, study))
    studies.delete_study(store, study)
    return how[0]


def play_on(store: Store, clock: Clock, study: str) -> str:
    """Some answers and plans more; how the study then comes out."""
    clock.wait(10**6)
    play(store, study, 20, clock=clock)
    how: list[str] = []
    studies.replay_study(store, study, how.append)
    check_replay(store, study)
    return how[0]


def main() -> None:
    what, *given = sys.argv[1:]
    clock = Clock()
    said = {"arithmetic": fingerprint()}
    if what == "plays":
        clock.wait(10**7)
        store = studies.open_store(given[0], clock=clock)
        said["how"] = play_on(store, clock, given[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            store = studies.open_store(f"sqlite:///{folder}/any.db", clock=clock)
            said |= {file: take_in(store, clock, Path(file)) for file in given}
            store.close()
    print(json.dumps(said))


if __name__ == "__main__":
    main()
