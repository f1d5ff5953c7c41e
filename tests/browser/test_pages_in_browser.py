"""The owner's and the researcher's pages in a real browser."""

import csv
import io
import shutil
import zipfile
from pathlib import Path

import pytest
from acts import choice, come_in, expect_answers, open_duels, think
from playwright.sync_api import expect

from dopl_core import studies


def test_an_error_in_a_roster_names_its_row(page, server, tmp_path):
    roster = tmp_path / "bad.csv"
    roster.write_text("id,state\np1,Low\np1,High\n")
    page.goto(f"{server.url}/studies")
    page.get_by_role("tab", name="New study").click()
    page.locator("input[type=file][accept*=csv]").set_input_files(roster)
    expect(page.get_by_text('bad.csv row 3: id "p1" is already in row 2')).to_be_visible()
    expect(page.get_by_role("button", name="Create the study")).to_have_count(0)


@pytest.mark.long
def test_an_exported_study_is_the_same_after_import(page, server, store, tmp_path):
    study = studies.create_study(store, studies.from_environment("cpap", practice=False))
    open_duels(page, server, study)
    for count in range(1, 4):
        think(page)
        page.keyboard.press("ArrowLeft")
        expect_answers(page, count)
    before = studies.export_bundle(store, study)

    page.goto(f"{server.url}/studies?study={study}")
    page.get_by_role("tab", name="Data").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Bundle (zip)").click()
    bundle = tmp_path / "bundle.zip"
    download.value.save_as(bundle)
    assert bundle.read_bytes() == before
    assert "duels.csv" in zipfile.ZipFile(bundle).namelist()
    page.get_by_text("Without names", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Bundle without names").click()
    nameless = studies.export_bundle(store, study, without_names=True)
    assert Path(download.value.path()).read_bytes() == nameless != before

    page.get_by_text("Delete this study", exact=True).click()
    page.get_by_text("Yes, delete this study").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    with pytest.raises(studies.StudyError):
        studies.get_study(store, study)

    page.get_by_role("tab", name="Import").click()
    page.locator("input[type=file][accept*=zip]").set_input_files(bundle)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="CPAP adherence")).to_be_visible()
    assert studies.export_bundle(store, study) == before
    open_duels(page, server, study)
    expect_answers(page, 3)


@pytest.mark.long
def test_a_simulation_runs_in_the_background_and_its_csv_can_be_downloaded(page, server):
    page.goto(f"{server.url}/simulate")
    page.get_by_role("spinbutton", name="Episodes (plans)").fill("6")
    page.get_by_role("spinbutton", name="Seeds").fill("1")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("of 12 episodes")).to_be_visible()
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_role("button", name="Try it now")).to_be_visible()
    page.get_by_role("link", name="Simulate").click()
    expect(page.get_by_text("finished: 12 of 12 episodes")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("epochs DOPL gains")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Rows (CSV)").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8-sig"))))
    assert len(rows) == 12
    assert {row["learner"] for row in rows} == {"dopl", "random"}
    with page.expect_download() as download:
        page.get_by_role("button", name="Picture (PNG)").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def stop_button(page):
    """The run's button; Streamlit's header has one of the same name while a script runs."""
    return page.get_by_test_id("stButton").get_by_role("button", name="Stop")


def test_a_simulation_can_be_stopped_and_continued(page, server):
    page.goto(f"{server.url}/simulate")
    page.get_by_role("spinbutton", name="Episodes (plans)").fill("3000")
    page.get_by_role("button", name="Start").click()
    stop_button(page).click(timeout=30_000)
    expect(page.get_by_text("stopped:")).to_be_visible()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("running:")).to_be_visible()
    stop_button(page).click()
    expect(page.get_by_text("stopped:")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("18000 episodes")).to_have_count(0)
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_continuing_a_deleted_simulation_shows_an_error(page, server):
    page.goto(f"{server.url}/simulate")
    page.get_by_role("spinbutton", name="Episodes (plans)").fill("3000")
    page.get_by_role("button", name="Start").click()
    stop_button(page).click(timeout=30_000)
    expect(page.get_by_text("stopped:")).to_be_visible()
    newest = max(path for path in (server.folder / "runs").iterdir() if path.is_dir())
    shutil.rmtree(newest)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("run.json: No such file")).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_an_invitation_opens_one_page_and_can_be_revoked(page, browser, server, study):
    page.goto(f"{server.url}/studies?study={study}")
    page.get_by_role("tab", name="Invite").click()
    page.get_by_label("Name of the colleague").fill("Ann")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Make a link").click()
    link = page.locator("code", has_text="invite=").inner_text()
    assert link.startswith(f"{server.url}/annotate?invite=")
    expect(page.get_by_text("open on this computer only")).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == link
    page.get_by_role("button", name="QR code").click()
    code = page.get_by_alt_text("QR code of the link")
    expect(code).to_be_visible()
    assert code.evaluate("picture => picture.complete && picture.naturalWidth > 0")
    page.keyboard.press("Escape")
    ann = browser.new_context().new_page()
    come_in(ann, link)
    expect_answers(ann, 0)
    expect(ann.get_by_role("navigation")).to_have_count(0)
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Revoked", exact=True)).to_be_visible()
    think(ann)
    choice(ann, "left").click()
    expect(ann.get_by_text("This link is no longer valid.")).to_be_visible()
    ann.context.close()


def test_insights_have_findings_as_titles(page, server, store, study):
    for name in ("Ann", "Bo"):
        for _ in range(10):
            ask = studies.next_duel(store, study, name)
            studies.answer(store, ask.impression, "left", response_ms=900, too_fast_ms=0)
    page.goto(f"{server.url}/insights?study={study}")
    expect(page.get_by_text("Too early to tell", exact=False)).to_be_visible()
    page.get_by_role("tab", name="How people answer").click()
    expect(page.get_by_text("20 answers so far, by 2 people")).to_be_visible()
    expect(page.get_by_text("Half of the answers took at most 0.9 s")).to_be_visible()
    expect(page.get_by_text("Left was chosen in 20 of 20 answers (100 %,")).to_be_visible()
    with page.expect_download() as download:
        page.locator(".st-key-csv-left-share").get_by_role("button").click()
    assert (
        download.value.path()
        .read_text("utf-8-sig")
        .startswith("person,left_share,low,high,answers\n")
    )
    page.get_by_role("tab", name="What was learned").click()
    expect(page.get_by_text("Estimated next states, without and with help")).to_be_visible()


@pytest.mark.long
def test_a_rehearsal_fills_a_copy_and_does_not_change_the_study(page, server, store, study):
    page.goto(f"{server.url}/studies?study={study}")
    page.get_by_role("tab", name="Rehearse").click()
    page.get_by_role("spinbutton", name="Answers").fill("8")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Rehearse on a copy").click()
    expect(page.get_by_role("heading", name="Rehearsal: CPAP adherence")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("8", timeout=30_000)
    assert studies.get_study(store, study).answers == 0
