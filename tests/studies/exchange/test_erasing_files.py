"""What is left in the files of the database by a killed erasure, and by a deleted study."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from erased_clinic import PERSON, PHOTO, check_gone, filled, on_disk
from named_clinic import SECRETS
from playing import check_replay, clinic

from dopl_core import studies
from dopl_core.studies import Store
from dopl_core.studies.store.scrub import needs_scrub


def test_nothing_of_a_deleted_study_is_left_in_the_files(store: Store, tmp_path: Path) -> None:
    kept, study = studies.create_study(store, clinic(title="Kept")), filled(store)
    assert PHOTO in on_disk(store, tmp_path)
    studies.delete_study(store, study)
    found = on_disk(store, tmp_path)
    assert [one for one in (*PERSON, *SECRETS) if one.encode() in found] == []
    check_replay(store, kept)


# For each number of steps read, a child of this process begins an erasure and is killed after as
# many: statements, or steps of five instructions of SQLite, so also in the middle of a statement.
KILLED = """
import itertools, os, signal, sys
import sqlalchemy as sa
from dopl_core import studies

def count(most):
    steps = itertools.count(1)
    return lambda *_: os.kill(os.getpid(), signal.SIGKILL) if next(steps) >= most else 0

for line in sys.stdin:
    child = os.fork()
    if not child:
        store = studies.open_store(sys.argv[1])
        kill = count(int(line))
        if store.is_sqlite:
            on = lambda connection, *_: connection.set_progress_handler(kill, 5)
            sa.event.listen(store.engine, "checkout", on)
        else:
            for engine in (store.engine, store.slow):
                sa.event.listen(engine, "before_cursor_execute", kill)
                sa.event.listen(engine, "commit", kill)
        studies.erase_person(store, sys.argv[2], "Pat-017")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.long
def test_an_erasure_that_is_killed_is_done_as_a_whole_or_not_at_all(
    store: Store, url: str, tmp_path: Path
) -> None:
    who = [("Pat-017", "Jörg Möller"), *((f"p{n}", f"P {n}") for n in range(3))]
    arms = [studies.Arm(arm, name, "all", "Low") for arm, name in who]
    config = studies.from_roster(arms, ["Low", "High"], title="Ward", budget=2, practice=False)
    study = studies.create_study(store, config)
    before = studies.export_bundle(store, study)
    command = [sys.executable, "-c", KILLED, url, study]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as erasing_process:
        most, killed = 2, 0
        while studies.export_bundle(store, study) == before:
            print(most, file=erasing_process.stdin, flush=True)
            code = int(erasing_process.stdout.readline())
            assert code in (0, -signal.SIGKILL)
            killed += code != 0
            most *= 2
        erasing_process.stdin.close()
    assert killed >= 5
    studies.retain(store)  # clears the files, if the process was killed after its transaction
    assert not needs_scrub(store)
    check_gone(store, study, tmp_path, ("Pat-017", "Jörg Möller"))
