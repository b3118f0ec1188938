// The page's data: JSON, and columns of numbers as planes of bytes (packing.py says how).

let D = null;

class Numbers {
  constructor(spec, bytes) {
    this.length = spec.n;
    this.decimals = spec.decimals;
    this.least = spec.least;
    this.missing = 256 ** spec.width - 1;
    this.codes = new Uint32Array(spec.n);
    for (let plane = 0; plane < spec.width; plane++) {
      const start = spec.at + plane * spec.n;
      for (let i = 0; i < spec.n; i++) this.codes[i] += bytes[start + i] * 256 ** plane;
    }
  }
  has(i) { return this.codes[i] !== this.missing; }
  get(i) { return this.has(i) ? (this.codes[i] + this.least) / 10 ** this.decimals : NaN; }
  show(i) { return fixed(this.get(i), this.decimals); }
}

class Texts {
  constructor(spec, bytes) {
    this.list = spec.texts;
    this.of = new Numbers(spec.of, bytes);
    this.length = this.of.length;
  }
  get(i) { return this.of.has(i) ? this.list[this.of.get(i)] : null; }
}

// Replaces every description of a column by the column itself, unpacked when it is first asked for.
function revive(value, bytes) {
  if (Array.isArray(value)) return value.map((item) => revive(item, bytes));
  if (value === null || typeof value !== "object") return value;
  if ("at" in value && "width" in value) return new Numbers(value, bytes);
  if ("texts" in value && "of" in value) return new Texts(value, bytes);
  const out = {};
  for (const [key, item] of Object.entries(value)) {
    let made;
    Object.defineProperty(out, key, { enumerable: true, get: () => (made === undefined ? (made = revive(item, bytes)) : made) });
  }
  return out;
}

async function readData() {
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser is too old for this page: it cannot unpack its data (DecompressionStream, 2023).");
  const raw = atob(document.getElementById("data").textContent);
  const packed = Uint8Array.from(raw, (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const body = new Uint8Array(await new Response(stream).arrayBuffer());
  const end = 4 + new DataView(body.buffer).getUint32(0, true);
  const content = JSON.parse(new TextDecoder().decode(body.subarray(4, end)));
  D = revive(content, body.subarray(end));
}

// The rows of a packed table as plain objects.
function records(table) {
  if (!table) return [];
  const names = Object.keys(table).filter((name) => table[name] instanceof Numbers || table[name] instanceof Texts);
  const length = names.length ? table[names[0]].length : 0;
  return Array.from({ length }, (_, i) => Object.fromEntries(names.map((name) => [name, table[name].get(i)])));
}

// What an output is called: the label of its metric in params.yaml, and its own name where that says more.
const called = (metric, output) => {
  if (D.labels[`${metric}:${output}`]) return D.labels[`${metric}:${output}`];
  const alike = metric === output || metric.startsWith(`${output}_`) || metric.startsWith(`${output}-`);
  if (D.labels[metric]) return alike ? D.labels[metric] : `${D.labels[metric]}, ${output}`;
  return alike ? metric : output.startsWith(metric) ? output : `${metric} ${output}`;
};
