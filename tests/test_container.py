"""The files for containers: what they start, as whom, with what, and what they may write.

tests/browser/test_wheel.py does the same steps without a container.
"""

import re
from typing import Any

import containerfile
import pytest
import yaml
from containerfile import ROOT, rest_of, stages
from sqlalchemy.engine import make_url

from dopl_core import cli

SERVER = ROOT / "data" / "guides" / "server"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((SERVER / "compose.yaml").read_text(encoding="utf-8")))


def test_the_image_is_built_in_one_stage_and_run_in_another() -> None:
    build, image = stages()
    bases = [rest_of(stage, "FROM")[0].split()[0] for stage in (build, image)]
    assert bases[0] == bases[1]
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", bases[0])
    [wheels] = [rest for rest in rest_of(build, "RUN") if rest.startswith("pip wheel")]
    assert "--no-deps" in wheels
    assert "--from=build /wheels /wheels" in rest_of(image, "COPY")


def test_the_image_installs_the_locked_versions_by_their_hashes() -> None:
    _, image = stages()
    [install] = [rest for rest in rest_of(image, "RUN") if "pip install" in rest]
    first, second = install.split(" && ")
    assert "--require-hashes --requirement /wheels/requirements.lock" in first
    assert second.endswith("--no-deps --no-index /wheels/dopl-*.whl")
    assert "data/guides/server/requirements.lock /wheels/" in rest_of(image, "COPY")


def test_nothing_private_of_a_checkout_is_copied() -> None:
    """A database, secrets and the history stay out."""
    copied = [rest.split()[:-1] for rest in rest_of(stages()[0], "COPY")]
    for source in (one for sources in copied for one in sources):
        assert (ROOT / source).exists(), source
        assert source not in (".", "data", ".git", ".streamlit")


def test_the_image_runs_the_app_with_a_key_and_not_as_root() -> None:
    _, image = stages()
    words = [word for word, _ in image]
    assert rest_of(image, "USER") == ["10001"]
    assert "RUN" not in words[words.index("USER") :]
    dopl, *arguments = containerfile.command()
    known, _ = cli.parser().parse_known_args(arguments)
    assert (dopl, known.run, known.key) == ("dopl", cli.app, True)
    python, option, script = containerfile.health_check()
    assert (python, option) == ("python", "-c")
    compile(script, "HEALTHCHECK", "exec")
    assert rest_of(image, "VOLUME") == [containerfile.environment()["HOME"]]


def test_compose_starts_the_processes_that_the_proxy_knows(compose: dict[str, Any]) -> None:
    services = compose["services"]
    apps = [one for one in services.values() if one["image"] == "dopl"]
    ports = [one["environment"]["STREAMLIT_SERVER_PORT"] for one in apps]
    proxy = (SERVER / "nginx.conf").read_text(encoding="utf-8")
    assert ports == re.findall(r"server 127\.0\.0\.1:(\d+) ", proxy)
    mounts = dict(volume.split(":")[:2] for volume in services["proxy"]["volumes"])
    named = set(re.findall(r"ssl_certificate(?:_key)? (\S+);", proxy))
    assert set(mounts.values()) == named | {"/etc/nginx/conf.d/default.conf"}
    assert mounts["./nginx.conf"] == "/etc/nginx/conf.d/default.conf"
    assert services["proxy"]["ports"] == ["443:443"]
    for app in apps:
        assert app["network_mode"] == "service:proxy"
        assert "ports" not in app
        assert app["environment"]["FORWARDED_ALLOW_IPS"] == "127.0.0.1"
        assert (SERVER / app["build"]["context"]).resolve() == ROOT
        assert ROOT / app["build"]["dockerfile"] == containerfile.FILE


def test_processes_write_to_their_data_only(compose: dict[str, Any]) -> None:
    for name in ("app1", "app2"):
        app = compose["services"][name]
        assert app["read_only"] is True
        assert app["cap_drop"] == ["ALL"]
        assert app["security_opt"] == ["no-new-privileges:true"]
        assert app["tmpfs"] == ["/tmp"]  # noqa: S108
        assert app["volumes"] == ["data:/data"]
        assert "data" in compose["volumes"]


def test_both_processes_share_the_database_of_the_file(compose: dict[str, Any]) -> None:
    database = compose["services"]["database"]
    made = database["environment"]
    for name in ("app1", "app2"):
        app = compose["services"][name]
        url = make_url(app["environment"]["DOPL_DATABASE_URL"])
        assert (url.host, url.port) == ("database", None)
        assert [url.username, url.password, url.database] == [
            made[f"POSTGRES_{what}"] for what in ("USER", "PASSWORD", "DB")
        ]
        assert app["depends_on"]["database"] == {"condition": "service_healthy"}
    assert database["volumes"][0].split(":")[0] in compose["volumes"]
    assert "ports" not in database


def test_pg_dump_in_the_image_is_of_the_servers_version(compose: dict[str, Any]) -> None:
    server = compose["services"]["database"]["image"].partition(":")[2]
    installed = " ".join(rest_of(stages()[1], "RUN"))
    assert f"postgresql-client-{server} " in installed
