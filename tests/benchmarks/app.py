"""Click to next duel visible, in Chromium: alone, and with twenty annotators at once.

Measured inside the page, from the click to the frame that shows the next duel; the nineteen others
speak the app's protocol without a browser, for theirs would run on machines of their own. Plans are
made meanwhile, and the waits for them are included: alone every 35th click ends a plan's round;
twenty people share a study whose rounds have 700 duels, so that each of them waits for the others
once in 35 clicks, as nobody can be asked about a plan that is not made.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "browser"))

# Clicks `count` times after thinking `think` ms (half to one and a half times); gives milliseconds.
ANNOTATE = """
async ([count, think]) => {
  const side = () => Math.random() < 0.5 ? 'left' : 'right';
  const find = (side) => document.querySelector(`[class*="st-key-${side}-"] button`);
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const next = (before) => new Promise((done) => {
    const look = () => {
      const now = find('left');
      document.querySelector('.st-key-go-on button')?.click();  // a round has ended
      if (now && now !== before) done(watch.disconnect());
    };
    const watch = new MutationObserver(look);
    watch.observe(document.body, { childList: true, subtree: true });
    look();
  });
  const took = [], waits = [];
  for (let i = 0; i < count; i++) {
    await pause(Math.max(400, think * (0.5 + Math.random())));  // sooner is refused
    const before = find('left');
    const start = performance.now();
    find(side()).click();
    let waited = false;
    const rest = () => { waited ||= !!document.querySelector('.stSpinner, .stMain h3'); };
    const moment = setInterval(rest, 10);
    await next(before);
    clearInterval(moment);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));  // drawn
    (waited ? waits : took).push(performance.now() - start);
  }
  window.took = [took, waits];
}
"""


def main() -> None:
    """Print the median and the 95th percentile, alone and with twenty."""
    from app_server import CHROMIUM_FLAGS, Server
    from playwright.sync_api import sync_playwright

    from dopl_core import studies
    from dopl_core.studies import access

    chromium = shutil.which("chromium")
    if chromium is None:
        raise ValueError("the benchmark of the app needs a browser: install chromium")
    folder = Path(tempfile.mkdtemp())
    server = Server(folder).start()
    store = studies.open_store(server.environment["DOPL_DATABASE_URL"])
    print(f"app: click to next duel visible (load before: {os.getloadavg()[0]:.1f})")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)

            def play(others: int, clicks: int, think: int, **rules: int) -> None:
                config = studies.from_environment("cpap", practice=False, **rules)
                study = studies.create_study(store, config)
                me, *them = [access.invite(store, study, f"{n}") for n in range(others + 1)]
                crowd = _crowd(server.url, think, them)
                page = browser.new_context().new_page()
                page.goto(f"{server.url}/annotate?invite={me}")
                page.get_by_role("button", name="Begin").click(timeout=60_000)
                page.locator("[class*='st-key-left-'] button").wait_for(timeout=60_000)
                page.evaluate(f"(given) => {{ ({ANNOTATE})(given) }}", [clicks, think])
                limit = 5 * clicks * think + 60_000
                found = page.wait_for_function("window.took", timeout=limit).json_value()
                waits, took = found[1], found[0] + found[1]
                page.context.close()
                if crowd is not None:
                    crowd.kill()
                    crowd.wait()
                now = studies.get_study(store, study)
                p50, p95 = np.percentile(took, [50, 95])
                print(
                    f"  {others + 1:2} annotators, {think / 1000:g} s to think: median {p50:.0f} "
                    f"ms, 95 % under {p95:.0f} ms, slowest {max(took):.0f} ms (of {len(took)} "
                    f"clicks; {now.answers} answers in all, {now.episode - 1} plans); slowest that "
                    f"waited for no plan and for nobody {max(found[0]):.0f} ms ({len(waits)} did)",
                    flush=True,
                )

            play(0, 10, 500)  # the first clicks of a server and a browser are not like the others
            play(0, 100, 500)
            play(19, 100, 2000, horizon=100)
            browser.close()
    finally:
        server.kill()
        shutil.rmtree(folder)


def _crowd(url: str, think: int, tokens: list[str]) -> "subprocess.Popen[bytes] | None":
    script = Path(__file__).with_name("_crowd.py")
    command = [sys.executable, str(script), url, str(think / 1000), *tokens]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL) if tokens else None


if __name__ == "__main__":
    main()
