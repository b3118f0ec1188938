// Elements, numbers, and what stands behind the "#": the page's whole state, so that every view has a link of its own.

// Text goes in as text nodes only: a response is data, whatever it looks like.
function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (name === "vars") for (const [key, v] of Object.entries(value)) node.style.setProperty(key, v);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const DASH = "–";

function fixed(value, digits, sign = false) {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  const text = value.toFixed(digits);
  const plain = Number(text) === 0 ? text.replace("-", "") : text;
  return (sign && Number(text) > 0 ? "+" : "") + plain.replace("-", "−");
}

const whole = (value) => value.toLocaleString("en-GB");
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const distinct = (values) => [...new Set(values)];

const state = {
  get(name, fallback = "") {
    return new URLSearchParams(location.hash.slice(1)).get(name) ?? fallback;
  },
  all(name) {
    return new URLSearchParams(location.hash.slice(1)).getAll(name);
  },
  link(changes) {
    const found = new URLSearchParams(location.hash.slice(1));
    for (const [name, value] of Object.entries(changes)) {
      found.delete(name);
      for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== "") found.append(name, one);
    }
    return `#${found}`;
  },
  set(changes) {
    const hash = state.link(changes);
    if (hash !== location.hash) location.replace(hash);
  },
};

// A labelled choice; with one option only there is nothing to choose, and it is said in words.
function choice(id, label, options, value, change) {
  const found = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  if (found.length === 1)
    return h("span", { class: "field" }, h("span", {}, label), h("output", { id }, found[0][1]));
  return h("label", { class: "field" }, h("span", {}, label),
    h("select", { id, on: { change: (event) => change(event.target.value) } },
      found.map(([key, text]) => h("option", { value: key, selected: key === value }, text))));
}

function search(id, label, value, change) {
  return h("label", { class: "field" }, h("span", {}, label),
    h("input", { id, type: "search", value, autocomplete: "off", on: { input: (event) => change(event.target.value) } }));
}

function box(id, label, checked, change) {
  return h("label", { class: "box" },
    h("input", { id, type: "checkbox", checked, on: { change: (event) => change(event.target.checked) } }), label);
}

// The controls are made anew with each view: whoever was typing goes on typing.
function keepPlace(render) {
  const active = document.activeElement;
  const id = active && active.id;
  const caret = active && active.type === "search" ? active.selectionStart : null;
  const scrolled = [...document.querySelectorAll("[data-scroll]")].map((e) => [e.id, e.scrollLeft, e.scrollTop]);
  const opened = [...document.querySelectorAll("details[id]")].map((e) => [e.id, e.open]);
  render();
  for (const [name, open] of opened) {
    const node = document.getElementById(name);
    if (node) node.open = open;
  }
  for (const [name, left, top] of scrolled) {
    const node = document.getElementById(name);
    if (node) { node.scrollLeft = left; if (node.dataset.scroll !== "x") node.scrollTop = top; }
  }
  const again = id && document.getElementById(id);
  if (again && again !== document.activeElement) {
    again.focus({ preventScroll: true });
    if (caret !== null) again.setSelectionRange(caret, caret);
  }
}
