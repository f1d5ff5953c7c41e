// What a button's shortcut cannot do: a held key is one press, space is "can't tell" unless a
// control has the focus, the focus stays on its side when the next duel comes, and "saved" is said
// to those who listen.
(() => {
  if (window.doplKeys) return;
  window.doplKeys = true;
  const OURS = ["arrowleft", "arrowright", " ", "enter", "s", "t", "u"];
  const one = (side) => document.querySelector(`[class*="st-key-${side}-"] button`);
  const busy = () => document.activeElement?.closest("input, textarea, select, button, a, summary, [contenteditable], [role=dialog]");
  window.addEventListener("keydown", (event) => {
    if (!one("left") || event.target.closest?.("input, textarea")) return;
    if (event.repeat && OURS.includes(event.key.toLowerCase())) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (event.key === " " && !event.ctrlKey && !event.metaKey && !event.altKey && !busy()) {
      event.preventDefault();
      one("skip")?.click();
    }
  }, true);
  let waiting = null;
  window.addEventListener("click", (event) => {
    const key = event.target.closest?.("[class*='st-key-']")?.className.match(/st-key-(left|right|skip|tie)-/);
    waiting = key && event.detail === 0 && document.activeElement?.closest("[class*='st-key-']") ? key[1] : null;
  }, true);
  new MutationObserver(() => {
    document.querySelector(".st-key-note:not([aria-live])")?.setAttribute("aria-live", "polite");
    if (!waiting || document.activeElement !== document.body) return;
    one(waiting)?.focus();
  }).observe(document.body, { childList: true, subtree: true });
})();
