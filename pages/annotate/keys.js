// What Streamlit's buttons cannot do: a click anywhere on a card chooses it, a held key counts once,
// space is "can't tell" unless a control has the focus, the focus stays on its side in the next
// comparison, which starts at the top, screen readers announce "Saved.", and each answer carries its response time.
(() => {
  if (window.doplKeys) return;
  window.doplKeys = true;
  const ANSWERS = { arrowleft: "left", arrowright: "right", s: "skip", t: "tie" };
  const OURS = [...Object.keys(ANSWERS), " ", "enter", "u"];
  const one = (which) => document.querySelector(`[class*="st-key-${which}-"] button`);
  const number = () => Number(document.querySelector("[class*='st-key-choices-']")?.className.match(/st-key-choices-(\d+)/)?.[1]);
  const busy = () => document.activeElement?.closest("input, textarea, select, button, a, summary, [contenteditable], [role=dialog]");

  // When the cards were painted, and the time from the click before until then.
  let seen = 0, painted = null, trip = null, clicked = null;
  const look = () => {
    const now = number() || 0;
    if (now === seen) return;
    seen = now;
    painted = trip = null;
    document.querySelector(".stMain")?.scrollTo(0, 0);  // the next pair starts at the top
    if (!now) clicked = null;  // something else is shown: this is not a round trip
    else requestAnimationFrame(() => setTimeout(() => {
      if (now !== seen) return;
      painted = performance.now();
      trip = clicked && painted - clicked;
      clicked = null;
    }));
  };
  const tell = () => {
    clicked = performance.now();
    if (painted === null) return;
    const [upper, lower] = ["left", "right"].map((side) => document.querySelector(`[class*="st-key-card-${side}"]`).getBoundingClientRect());
    const narrow = upper.bottom <= lower.top;
    window.doplSay?.({ impression: seen, response: clicked - painted, trip, narrow });
  };

  window.addEventListener("keydown", (event) => {
    if (!one("left") || event.target.closest?.("input, textarea")) return;
    const key = event.key.toLowerCase();
    if (event.target.closest?.("[data-testid=stPopoverBody]")) {  // keys there are about what it asks
      if (ANSWERS[key] || key === "u") event.stopImmediatePropagation();
      return;
    }
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    if (event.repeat && OURS.includes(key)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (plain && key === " " && !busy()) {
      event.preventDefault();
      one("skip")?.click();
    } else if (plain && ANSWERS[key] && one(ANSWERS[key])) {
      tell();
    }
  }, true);

  let waiting = null;
  window.addEventListener("click", (event) => {
    const at = (what) => event.target.closest?.(what);
    const key = at("[class*='st-key-']")?.className.match(/st-key-(left|right|skip|tie)-\d/);
    if (key && at("button")) tell();
    waiting = key && event.detail === 0 && document.activeElement?.closest("[class*='st-key-']") ? key[1] : null;
    const card = at("[class*='st-key-card-']")?.className.match(/st-key-card-(left|right)/);
    if (card && !at("button, a, summary, details, input") && getSelection().isCollapsed) one(card[1])?.click();
  }, true);

  new MutationObserver(() => {
    look();
    document.querySelector(".st-key-note:not([aria-live])")?.setAttribute("aria-live", "polite");
    for (const card of document.querySelectorAll("[class*='st-key-card-']:not([role])")) {
      card.setAttribute("role", "group");
      card.setAttribute("aria-label", window.doplCards[card.className.includes("card-left") ? "left" : "right"]);
    }
    if (!waiting || document.activeElement !== document.body) return;
    one(waiting)?.focus();
  }).observe(document.body, { childList: true, subtree: true });
  look();
})();
