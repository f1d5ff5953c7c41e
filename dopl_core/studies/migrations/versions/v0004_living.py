"""Version 4: studies that live. Who was really helped, changes of a study, first sittings; and
events are chained, so that tampering is seen.
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_BEFORE = "purpose IN ('policy', 'repeat', 'gold', 'practice')"
_AFTER = "purpose IN ('policy', 'sitting', 'repeat', 'gold', 'practice')"


def upgrade() -> None:
    op.add_column("epochs", sa.Column("helped", sa.LargeBinary))
    op.add_column("events", sa.Column("chain", sa.Text))
    op.add_column("studies", sa.Column("chain", sa.Text))
    for name in ("changes", "in_force"):
        op.add_column("studies", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "sqlite":
        _allow_sittings_on_sqlite()
    else:
        op.drop_constraint("duels_purpose", "duels", type_="check")
        op.create_check_constraint("duels_purpose", "duels", _AFTER)


def _allow_sittings_on_sqlite() -> None:
    """SQLite cannot change a check: the table is made anew, with all else it has.

    Dropping the old one deletes the impressions of its duels, for foreign keys stay on in a
    transaction: so these are put aside, and put back.
    """
    run = op.get_bind().exec_driver_sql
    made = "SELECT sql FROM sqlite_master WHERE type = '{}' AND tbl_name = 'duels' AND sql NOTNULL"
    (table,) = run(made.format("table")).scalars().all()
    indexes = run(made.format("index")).scalars().all()
    if _BEFORE not in table:
        raise RuntimeError("the table duels has not the check that version 3 gave it")
    new = re.sub(r'^CREATE TABLE "?duels"?', "CREATE TABLE duels_new", table)
    run(new.replace(_BEFORE, _AFTER))
    run("INSERT INTO duels_new SELECT * FROM duels")
    run("CREATE TABLE impressions_aside AS SELECT * FROM impressions")
    run("DROP TABLE duels")
    run("ALTER TABLE duels_new RENAME TO duels")
    for index in indexes:
        run(index)
    run("INSERT INTO impressions SELECT * FROM impressions_aside")
    run("DROP TABLE impressions_aside")
