// Parts of pages are made on the server; this fetches them anew and puts them in their places. Four marks are known:
//   data-load="/a"               the element is filled from the address when the page is shown
//   data-live="/a"               a form whose fields are sent with every change; the answer goes into data-into
//   data-ask="/a"                the same when the form is sent
//   data-events="/a"             server-sent events, each of which is the new inside of the element
"use strict";

const newest = new Map();

function failed(place, text) {
  place.replaceChildren();
  const note = document.createElement("p");
  note.className = "state failed";
  note.textContent = text;
  place.append(note);
}

async function ask(key, address) {
  newest.get(key)?.abort();
  const control = new AbortController();
  newest.set(key, control);
  const answer = await fetch(address, { signal: control.signal, credentials: "same-origin" });
  const text = await answer.text();
  const page = new DOMParser().parseFromString(text, "text/html");
  if (!answer.ok) throw new Error(page.querySelector("main p")?.textContent || "The studio did not answer.");
  return page.body;
}

function fill(place, body) {
  place.replaceChildren(...body.childNodes);
  begin(place);
}

async function load(place, address) {
  place.setAttribute("aria-busy", "true");
  try {
    fill(place, await ask(place, address));
  } catch (error) {
    if (error.name !== "AbortError") failed(place, reason(error));
  }
  place.removeAttribute("aria-busy");
}

function reason(error) {
  return error instanceof TypeError ? "The studio does not answer: is it still running in the terminal?" : error.message;
}

function fields(form) {
  const pairs = [...new FormData(form)].filter(([, value]) => value !== "");
  return new URLSearchParams(pairs).toString();
}

async function send(form, address) {
  const whole = `${address}?${fields(form)}`;
  if (form.dataset.into !== "parts") {
    await load(document.getElementById(form.dataset.into), whole);
    return;
  }
  document.body.classList.add("busy");
  try {
    const body = await ask(form, whole);
    for (const part of [...body.querySelectorAll("[data-part]")]) {
      document.getElementById(part.dataset.part)?.replaceChildren(...part.childNodes);
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    failed(document.getElementById("evidence"), reason(error));
  }
  document.body.classList.remove("busy");
}

function later(form, address) {
  clearTimeout(form.timer);
  form.timer = setTimeout(() => send(form, address), 120);
}

function watch(place) {
  const source = new EventSource(place.dataset.events);
  source.onmessage = (event) => {
    const page = new DOMParser().parseFromString(JSON.parse(event.data), "text/html");
    place.replaceChildren(...page.body.childNodes);
  };
  source.addEventListener("end", () => source.close());
}

function begin(root) {
  for (const place of root.querySelectorAll("[data-load]")) load(place, place.dataset.load);
  for (const place of root.querySelectorAll("[data-events]")) watch(place);
  for (const form of root.querySelectorAll("[data-live]")) {
    for (const kind of ["input", "change"]) form.addEventListener(kind, () => later(form, form.dataset.live));
    form.addEventListener("reset", () => setTimeout(() => send(form, form.dataset.live), 0));
    form.addEventListener("submit", (event) => event.preventDefault());
    if ("now" in form.dataset) send(form, form.dataset.live);
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.ask) return;
  event.preventDefault();
  send(form, form.dataset.ask);
});

document.addEventListener("input", (event) => {
  const field = event.target;
  if (field.dataset?.mirror) field.form.elements[field.dataset.mirror].value = field.value;
  const slider = field.form?.querySelector(`[data-mirror="${CSS.escape(field.name ?? "")}"]`);
  if (slider && field.value !== "") slider.value = field.value;
}, true);

document.addEventListener("change", (event) => {
  if ("submit" in (event.target.dataset ?? {})) event.target.form.submit();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.set) {
    const form = document.querySelector("form[data-live]");
    form.elements[button.dataset.set].value = button.value;
    send(form, form.dataset.live);
  }
  if (button.dataset.again) {
    const number = 1 + Math.floor(Math.random() * 1e9);
    load(document.getElementById("deal"), button.dataset.again + number);
  }
});

document.addEventListener("DOMContentLoaded", () => begin(document));
