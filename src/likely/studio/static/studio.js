// Parts of pages are made on the server; this fetches them anew and puts them in their places. These marks are known:
//   data-load="/a"               the element is filled from the address when the page is shown
//   data-live="/a"               a form whose fields are sent with every change; the answer goes into data-into
//   data-ask="/a"                the same when the form is sent
//   data-events="/a"             server-sent events, each of which is the new inside of the element
//   data-pick="field"            a click puts data-value into that field of the live form; again, and it is empty
//   data-shift="other"           beside data-pick: what the field had before goes into another one
//   data-check="g1 g2"           a click ticks these boxes of the live form, and unticks others of its details
//   data-paint="field"           a canvas: each pixel is a sign of that field, ? open or 0 to 9, set by the field "brush"
//   data-fill="?"                a click makes all pixels this sign
//   data-clear="a b"             a click empties these fields
//   data-upload="/a"             a form whose file is sent as it is; then the page is shown anew, or data-into says why not
//   data-plane="form"            a drawing with ends data-left to data-top: clicks become the fields x0, y0, then x1, y1
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

function renew(place, part) {
  if (!place) return;
  const before = place.querySelector(".graph");  // A drawing that was scrolled stays where it was.
  const [left, top] = [before?.scrollLeft ?? 0, before?.scrollTop ?? 0];
  place.replaceChildren(...part.childNodes);
  place.querySelector(".graph")?.scrollTo(left, top);
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
    const held = document.activeElement?.dataset ?? {};  // What has the focus may be drawn anew: then it has it again.
    for (const part of [...body.querySelectorAll("[data-part]")]) {
      renew(document.getElementById(part.dataset.part), part);
    }
    if (held.pick) document.querySelector(`[data-pick="${held.pick}"][data-value="${CSS.escape(held.value)}"]`)?.focus();
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
  for (const canvas of root.querySelectorAll("[data-paint]")) paintable(canvas);
  for (const form of root.querySelectorAll("[data-live]")) {
    for (const kind of ["input", "change"]) form.addEventListener(kind, () => later(form, form.dataset.live));
    form.addEventListener("reset", () => setTimeout(() => send(form, form.dataset.live), 0));
    form.addEventListener("submit", (event) => event.preventDefault());
    if ("now" in form.dataset) send(form, form.dataset.live);
  }
}

async function upload(form) {
  const [file] = form.elements.file.files;
  const place = document.getElementById(form.dataset.into);
  const body = { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } };
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`${form.dataset.upload}?${new URLSearchParams({ name: file.name })}`, body);
    if (answer.ok) return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    failed(place, page.querySelector("main p")?.textContent || "The studio did not take it.");
  } catch (error) {
    failed(place, reason(error));
  }
  form.removeAttribute("aria-busy");
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.upload) {
    event.preventDefault();
    upload(form);
  }
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

function told(field) {
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function live() {
  return document.querySelector("form[data-live]");
}

function pick(mark) {
  const form = live();
  const field = form.elements[mark.dataset.pick];
  const value = mark.dataset.value;
  if (mark.dataset.shift && field.value !== value) form.elements[mark.dataset.shift].value = field.value;
  const again = field.value === value && !mark.dataset.shift;
  field.value = again ? "" : value;
  told(field);
}

function click(plane, event) {
  const form = document.getElementById(plane.dataset.plane);
  const box = plane.getBoundingClientRect();
  const { left, right, bottom, top } = plane.dataset;
  const x = Number(left) + ((event.clientX - box.left) / box.width) * (right - left);
  const y = Number(top) - ((event.clientY - box.top) / box.height) * (top - bottom);
  const second = form.elements.x0.value !== "" && form.elements.x1.value === "";
  const [across, up] = second ? ["x1", "y1"] : ["x0", "y0"];
  if (!second) form.elements.x1.value = form.elements.y1.value = "";
  form.elements[across].value = x.toPrecision(5);
  form.elements[up].value = y.toPrecision(5);
  told(form.elements[up]);
}

document.addEventListener("click", (event) => {
  const mark = event.target.closest("[data-pick]");
  if (mark) pick(mark);
  const plane = event.target.closest("[data-plane]");
  if (plane) click(plane, event);
});

document.addEventListener("keydown", (event) => {
  const mark = event.target.closest?.("g[data-pick]");
  if (!mark || (event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  pick(mark);
});

function shade(sign) {
  if (sign === "?") return [240, 160, 90];
  const level = Number(sign) / 9;
  return [255, 255, 255].map((paper, i) => Math.round(paper + level * ([22, 32, 44][i] - paper)));
}

function show(canvas) {
  const signs = live().elements[canvas.dataset.paint].value;
  const drawing = canvas.getContext("2d");
  const image = drawing.createImageData(canvas.width, canvas.height);
  [...signs].forEach((sign, i) => image.data.set([...shade(sign), 255], 4 * i));
  drawing.putImageData(image, 0, 0);
  if (canvas.cursor !== undefined && document.activeElement === canvas) {
    drawing.fillStyle = "rgba(180, 67, 15, .55)";
    drawing.fillRect(canvas.cursor % canvas.width, Math.floor(canvas.cursor / canvas.width), 1, 1);
  }
}

function paint(canvas, place) {
  const form = live();
  const field = form.elements[canvas.dataset.paint];
  const signs = [...field.value];
  if (place < 0 || place >= signs.length || signs[place] === form.elements.brush.value) return;
  signs[place] = form.elements.brush.value;
  field.value = signs.join("");
  show(canvas);
  told(field);
}

function under(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const x = Math.floor(((event.clientX - box.left) / box.width) * canvas.width);
  const y = Math.floor(((event.clientY - box.top) / box.height) * canvas.height);
  return x < 0 || y < 0 || x >= canvas.width || y >= canvas.height ? -1 : y * canvas.width + x;
}

function paintable(canvas) {
  show(canvas);
  canvas.addEventListener("pointerdown", (event) => paint(canvas, under(canvas, event)));
  canvas.addEventListener("pointermove", (event) => event.buttons && paint(canvas, under(canvas, event)));
  for (const kind of ["focus", "blur"]) canvas.addEventListener(kind, () => show(canvas));
  canvas.addEventListener("keydown", (event) => {
    const wide = canvas.width;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide };
    if (!(event.key in steps) && event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    const next = (canvas.cursor ?? 0) + (steps[event.key] ?? 0);
    if (next >= 0 && next < wide * canvas.height) canvas.cursor = next;
    if (!(event.key in steps)) paint(canvas, canvas.cursor);
    show(canvas);
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.set) {
    const form = document.querySelector("form[data-live]");
    form.elements[button.dataset.set].value = button.value;
    send(form, form.dataset.live);
  }
  if (button.dataset.fill) {
    const canvas = document.querySelector("[data-paint]");
    const field = live().elements[canvas.dataset.paint];
    field.value = button.dataset.fill.repeat(field.value.length);
    show(canvas);
    told(field);
  }
  if ("check" in button.dataset) {
    const wanted = button.dataset.check.split(" ");
    const boxes = [...live().querySelectorAll("details input[type=checkbox]")];
    for (const box of boxes) box.checked = wanted.includes(box.name);
    if (boxes.length) told(boxes[0]);
  }
  if (button.dataset.clear) {
    for (const name of button.dataset.clear.split(" ")) button.form.elements[name].value = "";
    told(button.form.elements[button.dataset.clear.split(" ")[0]]);
  }
  if (button.dataset.again) {
    const number = 1 + Math.floor(Math.random() * 1e9);
    load(document.getElementById("deal"), button.dataset.again + number);
  }
});

document.addEventListener("DOMContentLoaded", () => begin(document));
