// Dialogues: which response to look at.

let B = null;

// What is looked up again and again, made once.
function browserData() {
  if (B) return B;
  const found = D.browser;
  B = { ...found, width: found.systems.length, dialogues: distinct(found.contexts.map((context) => context.dialogue)) };
  B.cells = found.response.flatMap((text, cell) => (text === null ? [] : [cell]));
  return B;
}

const scoreName = (score) => `${score.metric}:${score.output}`;
const ORDERS = { rating: "mean rating", score: "score", disagreement: "disagreement", name: "system" };

// Where we are: the context, the score that is shown, and the systems in the chosen order.
function place() {
  const b = browserData();
  const asked = b.contexts.findIndex((context) => context.dialogue === state.get("dialogue") && (state.get("turn") === "" || String(context.turn) === state.get("turn")));
  let context = asked >= 0 ? asked : Math.max(0, b.contexts.findIndex((context) => context.dialogue === state.get("dialogue")));
  const score = b.scores.find((one) => scoreName(one) === state.get("by")) || b.scores.find((one) => D.systems.scores.includes(scoreName(one))) || b.scores[0] || null;
  const orders = Object.keys(ORDERS).filter((key) => key === "name" || (key === "rating" && b.mean) || (key === "score" && score) || (key === "disagreement" && b.mean && score));
  const order = orders.includes(state.get("order")) ? state.get("order") : orders[0];
  const everywhere = state.get("scope") === "all";
  const words = state.get("find").toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [];
  for (const cell of everywhere ? b.cells : b.cells.filter((cell) => Math.floor(cell / b.width) === context)) {
    const system = b.systems[cell % b.width], response = b.response[cell];
    if (words.length) { const text = `${system} ${response}`.toLowerCase(); if (!words.every((word) => text.includes(word))) continue; }
    rows.push({ cell, context: Math.floor(cell / b.width), system, response, rating: b.mean ? b.mean.get(cell) : NaN });
  }
  for (const row of rows) {
    row.score = score ? score.of.get(row.cell) : NaN;
    row.gap = score && b.mean ? score.percent.get(row.cell) - b.mean_percent.get(row.cell) : NaN;
  }
  const key = { rating: (row) => row.rating, score: (row) => row.score, disagreement: (row) => Math.abs(row.gap), name: (row) => row.system }[order];
  const falling = (state.get("falling", order === "name" ? "0" : "1")) === "1";
  rows.sort((one, other) => compare(key(one), key(other), falling) || one.cell - other.cell);
  // A list of everything that names no dialogue opens with its own first response, not with the first of the data.
  if (everywhere && state.get("dialogue") === "" && rows.length) context = rows[0].context;
  const here = b.cells.filter((cell) => Math.floor(cell / b.width) === context).map((cell) => b.systems[cell % b.width]);
  const chosen = state.all("system").filter((name) => here.includes(name));
  const first = rows.find((row) => row.context === context)?.system || here[0];
  return { b, context, score, orders, order, falling, everywhere, rows, chosen: chosen.length ? chosen : first ? [first] : [] };
}

function go(context, changes = {}) {
  const found = B.contexts[context];
  state.set({ view: "dialogues", dialogue: found.dialogue, turn: String(found.turn), ...changes });
}

function responseList(at) {
  const { b, rows, score, context, chosen, everywhere } = at;
  const most = everywhere ? 100 : rows.length;
  const marked = (row) => row.context === context && chosen.includes(row.system);
  const open = (row) => go(row.context, { system: [row.system] });
  const toggle = (row) => {
    if (row.context !== context) return open(row);
    const next = chosen.includes(row.system) ? chosen.filter((name) => name !== row.system) : [...chosen, row.system];
    go(context, { system: next.length ? next : [row.system] });
  };
  const line = (row) => h("tr", { class: marked(row) ? "marked" : "" },
    h("td", {}, h("input", { type: "checkbox", id: `side-${row.cell}`, checked: marked(row), "aria-label": `Show ${row.system} side by side`, on: { change: () => toggle(row) } })),
    h("th", { scope: "row", class: "label name" }, h("button", { type: "button", class: "plain", id: `open-${row.cell}`, "aria-current": marked(row) ? "true" : null, on: { click: () => open(row) } }, row.system),
      everywhere && h("small", {}, ` ${b.contexts[row.context].dialogue}, turn ${b.contexts[row.context].turn}`)),
    h("td", { class: "label said" }, row.response), b.mean && h("td", {}, fixed(row.rating, 3)),
    score && h("td", {}, score.of.show(row.cell)), score && b.mean && h("td", {}, fixed(row.gap, 0, true)));
  return [
    h("div", { class: "scroll list", id: "scroll-list", "data-scroll": "xy", tabindex: "0", role: "region", "aria-label": "Responses" },
      h("table", { id: "table-list" },
        h("caption", {}, everywhere ? `${whole(rows.length)} responses of the whole data set${rows.length > most ? `, the first ${most} shown` : ""}` : `${whole(rows.length)} responses to this context`),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Side by side")), ["System", "Response"].map((t) => h("th", { scope: "col", class: "label" }, t)),
          b.mean && h("th", { scope: "col" }, "Mean rating"), score && h("th", { scope: "col" }, called(score.metric, score.output)),
          score && b.mean && h("th", { scope: "col" }, h("abbr", { title: "Percentile of the score less the percentile of the mean rating, among all responses: above 0 the metric likes it more than people do" }, "Gap")))),
        h("tbody", {}, rows.slice(0, most).map(line)))),
    h("p", { class: "hint" }, "Gap: the score’s percentile less the mean rating’s, among all responses. Tick systems to see them side by side."),
  ];
}

function contextPanel(at) {
  const { b } = at;
  const found = b.contexts[at.context];
  const personas = Object.entries(b.personas[found.dialogue] || {});
  const list = (sentences) => h("ul", { class: "sentences" }, sentences.map((sentence) => h("li", {}, sentence)));
  return h("div", { class: "context" },
    personas.map(([speaker, sentences]) => h("details", { id: `persona-${speaker}`, open: false }, h("summary", {}, `Persona of ${speaker} (${sentences.length} sentences)`), list(sentences))),
    found.facts.length > 0 && h("details", { id: "facts" }, h("summary", {}, `Facts given to the metrics (${found.facts.length})`), list(found.facts)),
    h("h3", {}, `The dialogue so far (${found.history.length} ${found.history.length === 1 ? "utterance" : "utterances"})`),
    h("ol", { class: "history", id: "history", "data-scroll": "end", tabindex: "0", "aria-label": "History" },
      found.history.map(([speaker, text]) => h("li", { class: speaker === found.history[0][0] ? "" : "other" }, h("b", {}, speaker), " ", text)),
      at.chosen.length === 1 && h("li", { class: "answer" }, h("b", {}, at.chosen[0]), " ", b.response[at.context * b.width + b.systems.indexOf(at.chosen[0])])),
    found.references.length > 0 && h("div", { class: "reference" }, h("h3", {}, found.references.length > 1 ? "References" : "Reference"), found.references.map((text) => h("p", {}, text))));
}

function dialoguesView() {
  const at = place();
  const { b, context } = at;
  const found = b.contexts[context];
  const turns = b.contexts.map((one, i) => [one, i]).filter(([one]) => one.dialogue === found.dialogue);
  const step = (by, label, sign) => h("button", { type: "button", id: `step${by}`, disabled: context + by < 0 || context + by >= b.contexts.length, "aria-label": label, on: { click: () => go(context + by) } }, sign);
  return h("section", { "aria-labelledby": "dialogues" }, h("h2", { id: "dialogues" }, "Dialogues"),
    h("form", { class: "controls", on: { submit: (event) => event.preventDefault() } },
      choice("pick-dialogue", "Dialogue", b.dialogues, found.dialogue, (v) => state.set({ view: "dialogues", dialogue: v, turn: "" })),
      turns.length > 1 && choice("pick-turn", "Turn", turns.map(([one]) => String(one.turn)), String(found.turn), (v) => go(context, { turn: v })),
      h("span", { class: "steps" }, step(-1, "Previous context", "◀"), step(1, "Next context", "▶")),
      search("find", "Find in responses", state.get("find"), (v) => state.set({ find: v })),
      choice("pick-scope", "in", [["", "this context"], ["all", "the whole data set"]], state.get("scope"), (v) => state.set({ scope: v })),
      b.scores.length > 0 && choice("pick-by", "Score", b.scores.map((one) => [scoreName(one), called(one.metric, one.output)]), at.score && scoreName(at.score), (v) => state.set({ by: v })),
      choice("pick-order", "Sorted by", at.orders.map((key) => [key, ORDERS[key]]), at.order, (v) => state.set({ order: v, falling: "" })),
      h("button", { type: "button", id: "turn-order", on: { click: () => state.set({ falling: at.falling ? "0" : "1" }) } }, at.falling ? "highest first" : "lowest first")),
    h("p", { class: "hint keys" }, "Keys: ← → another turn, ↑ ↓ another system."),
    h("div", { class: "two" }, contextPanel(at), h("div", {}, responseList(at))),
    sideBySide(at));
}

function browserKey(event) {
  const steps = { ArrowLeft: -1, ArrowRight: 1 }, moves = { ArrowUp: -1, ArrowDown: 1 };
  const at = place();
  if (event.key in steps) {
    const next = at.context + steps[event.key];
    if (next < 0 || next >= at.b.contexts.length) return false;
    go(next);
    return true;
  }
  if (!(event.key in moves) || !at.rows.length) return false;
  const shown = at.everywhere ? at.rows.slice(0, 100) : at.rows;
  const current = shown.findIndex((row) => row.context === at.context && row.system === at.chosen[0]);
  const row = shown[Math.max(0, Math.min(shown.length - 1, current + moves[event.key]))];
  go(row.context, { system: [row.system] });
  return true;
}
