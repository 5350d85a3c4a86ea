// Asks for the page again every ten seconds while it is on the screen, and replaces the parts that have changed. Parts
// have the attribute data-live and an ID. A part that is being used, by pointer, focus, selection, ticks or text, stays.
"use strict";

const EVERY_MS = 10_000;
const SWITCH = "waitreg.refresh";
const off = () => localStorage.getItem(SWITCH) === "off";

function used(part) {
  const selection = document.getSelection();
  const selected = !selection.isCollapsed && selection.containsNode(part, true);
  const written = [...part.querySelectorAll("input")].some((input) => input.value !== input.defaultValue);
  return selected || written || part.matches(":hover, :focus-within, :has(td input:checked)");
}

// What a reader opened or scrolled to is the page's own, so the new part gets it from the old one.
function take(part, next) {
  const opened = [...part.querySelectorAll("details")].map((details) => details.open);
  const boxes = [...part.querySelectorAll(".wide")].map((box) => [box.scrollLeft, box.scrollTop]);
  part.replaceWith(next);
  next.querySelectorAll("details").forEach((details, number) => (details.open = opened[number] ?? false));
  next.querySelectorAll(".wide").forEach((box, number) => box.scrollTo(...(boxes[number] ?? [0, 0])));
}

async function refresh() {
  const answer = await fetch(location.href);
  // A redirection leads to a login, which is no newer version of this page.
  if (!answer.ok || answer.redirected) throw new Error(`the console answered ${answer.status} at ${answer.url}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = page.getElementById(part.id);
    if (next && !used(part)) take(part, document.adoptNode(next));
  }
}

async function turn() {
  if (!document.hidden && !off()) {
    let failed = false;
    await refresh().catch((error) => {
      failed = true;
      console.warn(error);
    });
    document.getElementById("stale").hidden = !failed;
  }
  setTimeout(turn, EVERY_MS);
}

// What is shown for some time only is gone then, also from a page that stays open.
const limited = document.querySelector("[data-until-s]");
if (limited) setTimeout(() => location.replace(location.pathname), 1000 * limited.dataset.untilS);

if (document.querySelector("main [data-live]")) {
  const box = document.getElementById("refresh");
  box.checked = !off();
  box.addEventListener("change", () => localStorage.setItem(SWITCH, box.checked ? "on" : "off"));
  box.closest("label").hidden = false;
  setTimeout(turn, EVERY_MS);
}
