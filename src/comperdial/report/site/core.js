// The page's data, its state, and the elements that it is made of.

// The data: compressed JSON. A column of numbers is {decimals, values}, null where one is missing.

let D = null;

class Numbers {
  constructor({ decimals, values }) { this.decimals = decimals; this.values = values; }
  has(i) { return this.values[i] !== null; }
  get(i) { return this.has(i) ? this.values[i] : NaN; }
  show(i) { return fixed(this.get(i), this.decimals); }
}

async function readData() {
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser is too old for this page: it cannot unpack its data (DecompressionStream, 2023).");
  const raw = atob(document.getElementById("data").textContent);
  const packed = Uint8Array.from(raw, (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  D = JSON.parse(await new Response(stream).text(), (key, value) => (value && value.values && "decimals" in value ? new Numbers(value) : value));
}

// The rows of a table: what is missing is NaN.
const records = (rows) => (rows || []).map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value ?? NaN])));

const called = (metric, output) => D.called[`${metric}:${output}`] || `${metric} ${output}`;
// A metric's or judge's label with its name in params.yaml.
const named = (name) => (D.labels[name] ? `${D.labels[name]} (${name})` : name);

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

// What is behind the "#": the page's whole state, so that every view has a link of its own.
const state = {
  get(name, fallback = "") {
    return new URLSearchParams(location.hash.slice(1)).get(name) ?? fallback;
  },
  // A choice among what there is: the one asked for, or the first.
  pick(name, options, first = options[0]) {
    const asked = this.get(name);
    return options.includes(asked) ? asked : options.includes(first) ? first : options[0];
  },
  all(name) {
    return new URLSearchParams(location.hash.slice(1)).getAll(name);
  },
  link(changes) {
    const params = new URLSearchParams(location.hash.slice(1));
    for (const [name, value] of Object.entries(changes)) {
      params.delete(name);
      for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== "") params.append(name, one);
    }
    return `#${params}`;
  },
  set(changes) {
    const hash = state.link(changes);
    if (hash !== location.hash) location.replace(hash);
  },
};

// A labelled choice; a single option is a plain text.
function choice(id, label, options, value, change) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  if (pairs.length === 1)
    return h("span", { class: "field" }, h("span", {}, label), h("output", { id }, pairs[0][1]));
  return h("label", { class: "field" }, h("span", {}, label),
    h("select", { id, on: { change: (event) => change(event.target.value) } },
      pairs.map(([key, text]) => h("option", { value: key, selected: key === value }, text))));
}

function search(id, label, value, change) {
  return h("label", { class: "field" }, h("span", {}, label),
    h("input", { id, type: "search", value, autocomplete: "off", on: { input: (event) => change(event.target.value) } }));
}

function box(id, label, checked, change) {
  return h("label", { class: "box" },
    h("input", { id, type: "checkbox", checked, on: { change: (event) => change(event.target.checked) } }), label);
}

const controls = (...fields) => h("form", { class: "controls", on: { submit: (event) => event.preventDefault() } }, fields);
const section = (id, heading, ...content) => h("section", { "aria-labelledby": id }, h("h2", { id }, heading), content);
const scrolled = (id, label, ...content) => h("div", { class: "scroll", id, "data-scroll": "", tabindex: "0", role: "region", "aria-label": label }, content);
// Whether a text has all words of a search.
const finder = (words) => {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => wanted.every((word) => text.toLowerCase().includes(word));
};
