// Keys for those who read lists: the dialog "keys" of each page names them. None sends anything, "r" leads to a dry run.
// They are off while something is typed, with Ctrl, Alt or Meta, and if the box "keys" is not ticked (WCAG 2.1.4).
"use strict";

const KEYS = "waitreg.keys";
const LIST = "waitreg.list";
const GO_MS = 1_500;
const TYPING = "input:not([type=checkbox]), select, textarea, dialog[open] *";
const main = document.getElementById("content");
const dialog = document.getElementById("keys-help");
let goesUntil = 0;

const follow = (link) => link?.click();
const row = () => document.activeElement.closest("tbody tr");

function step(by) {
  const rows = [...main.querySelectorAll("tbody tr")].filter((each) => each.checkVisibility());
  const next = rows[rows.indexOf(row()) + by] ?? (row() ? null : rows[0]);
  if (!next) return;
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

// The list that this tab showed last is what "[" and "]" step through.
function neighbor(by) {
  const places = JSON.parse(sessionStorage.getItem(LIST) ?? "[]");
  const here = places.indexOf(location.pathname);
  const next = here < 0 ? undefined : places[here + by];
  if (next) location.assign(next);
}

function remember() {
  const links = [...main.querySelectorAll('td a[href^="/dead-letters/"]')].map((link) => link.pathname);
  if (location.pathname === "/dead-letters" && links.length) sessionStorage.setItem(LIST, JSON.stringify(links));
}

function go(letter) {
  const links = [...document.querySelectorAll("nav a")];
  follow(links.find((link) => link.textContent.toLowerCase().startsWith(letter)));
}

function dryRun() {
  if (document.querySelector("td input:checked")) follow(document.querySelector('#ticked [formaction^="/redrive/"]'));
}

const ACTIONS = {
  j: () => step(1),
  k: () => step(-1),
  x: () => row()?.querySelector("input[type=checkbox]")?.click(),
  Enter: () => follow(row()?.querySelector("[data-open]") ?? row()?.querySelector("a")),
  "/": () => main.querySelector("form input:not([type=hidden])")?.focus(),
  "[": () => neighbor(-1),
  "]": () => neighbor(1),
  g: () => (goesUntil = Date.now() + GO_MS),
  r: dryRun,
  "?": () => dialog.showModal(),
};

function pressed(event) {
  const { key, target } = event;
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || target.matches(TYPING)) return;
  // A link or a button that has the focus is pressed by Enter itself.
  if (key === "Enter" && !target.matches("tr")) return;
  const goes = Date.now() < goesUntil && /^[a-z]$/.test(key);
  goesUntil = 0;
  if (!goes && !Object.hasOwn(ACTIONS, key)) return;
  event.preventDefault();
  if (goes) go(key);
  else ACTIONS[key]();
}

const box = document.getElementById("keys");
const listen = () => (box.checked ? document.addEventListener : document.removeEventListener).call(document, "keydown", pressed);
box.checked = localStorage.getItem(KEYS) !== "off";
box.addEventListener("change", () => {
  localStorage.setItem(KEYS, box.checked ? "on" : "off");
  listen();
});
box.closest("label").hidden = false;
remember();
listen();
