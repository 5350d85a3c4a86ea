// Sends an edited record as bytes, which a form of a browser can't do: a line of JSON, and after it the value. The answer
// is the review, or a sentence that says what is wrong; a change makes it void.
"use strict";

const form = document.getElementById("edit");
const headers = document.getElementById("headers");
const kind = document.getElementById("kind");
const review = document.getElementById("review");

function show() {
  for (const part of form.querySelectorAll("[data-kind]")) part.hidden = part.dataset.kind !== kind.value;
}

const written = (box) => [box.querySelector("select").value, box.querySelector(".content").value];

function body(more) {
  const field = document.getElementById(kind.value);
  const value = kind.value === "file" ? (field.files[0] ?? "") : (field?.value ?? "");
  const head = {
    key: written(document.getElementById("key")),
    headers: [...headers.children].map((row) => [row.querySelector(".name").value, ...written(row)]),
    value: { text: "bytes", file: "bytes" }[kind.value] ?? kind.value,
    allow: [...form.querySelectorAll("[name=allow]:checked")].map((box) => box.value),
    ...more,
  };
  return new Blob([JSON.stringify(head), "\n", value]);
}

// What is typed here is kept nowhere, so a browser asks before it leaves the page.
const ask = (event) => event.preventDefault();

function changed() {
  addEventListener("beforeunload", ask);
  review.replaceChildren();
}

async function put(address, more) {
  const type = { "Content-Type": "application/octet-stream" };
  const answer = await fetch(address, { method: "PUT", headers: type, body: body(more) });
  if (answer.redirected) {
    removeEventListener("beforeunload", ask);
    return location.assign(answer.url);
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById("reviewed") ?? page.querySelector("main > p:last-child");
  review.replaceChildren(document.adoptNode(found));
  review.focus();
}

async function send(address, more) {
  const buttons = document.querySelectorAll("#go, #send button");
  buttons.forEach((button) => (button.disabled = true));
  await put(address, more).catch((error) => review.replaceChildren(`The console didn't answer: ${error.message}`));
  buttons.forEach((button) => (button.disabled = false));
}

form.addEventListener("input", changed);
kind.addEventListener("change", show);
form.addEventListener("click", (event) => {
  const row = event.target.closest(".header");
  if (event.target.id === "add") headers.append(document.getElementById("header").content.cloneNode(true));
  else if (event.target.matches(".remove")) row.remove();
  else if (event.target.matches(".up")) {
    row.previousElementSibling?.before(row);
    event.target.focus();
  } else return;
  changed();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (kind.value === "file" && !document.getElementById("file").files.length) review.textContent = "Choose a file first.";
  else send(form.dataset.review, {});
});
review.addEventListener("submit", (event) => {
  event.preventDefault();
  send(event.target.dataset.send, Object.fromEntries(new FormData(event.target)));
});

show();
document.getElementById("go").disabled = false;
