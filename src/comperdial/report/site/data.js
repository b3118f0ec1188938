// The page's data: compressed JSON. A column of numbers is {decimals, values}, null where one is missing.

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

// What an output is called: the label of its metric in params.yaml, and its own name if that says more.
const called = (metric, output) => {
  if (D.labels[`${metric}:${output}`]) return D.labels[`${metric}:${output}`];
  const alike = metric === output || metric.startsWith(`${output}_`) || metric.startsWith(`${output}-`);
  if (D.labels[metric]) return alike ? D.labels[metric] : `${D.labels[metric]}, ${output}`;
  return alike ? metric : output.startsWith(metric) ? output : `${metric} ${output}`;
};
