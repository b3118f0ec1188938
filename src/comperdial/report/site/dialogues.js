// Dialogues: which response to look at, and everything about it.

let B = null;

// What is looked up again and again, made once.
function browserData() {
  if (B) return B;
  const shown = D.browser;
  B = { ...shown, width: shown.systems.length, dialogues: distinct(shown.contexts.map((context) => context.dialogue)) };
  B.cells = shown.response.flatMap((text, cell) => (text === null ? [] : [cell]));
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
  const order = state.pick("order", orders);
  const everywhere = state.get("scope") === "all";
  const fits = finder(state.get("find"));
  const rows = [];
  for (const cell of everywhere ? b.cells : b.cells.filter((cell) => Math.floor(cell / b.width) === context)) {
    const system = b.systems[cell % b.width], response = b.response[cell];
    if (!fits(`${system} ${response}`)) continue;
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
  const shown = B.contexts[context];
  state.set({ view: "dialogues", dialogue: shown.dialogue, turn: String(shown.turn), ...changes });
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
    h("td", { class: "label answer" }, row.response), b.mean && h("td", {}, fixed(row.rating, 3)),
    score && h("td", {}, score.of.show(row.cell)), score && b.mean && h("td", {}, fixed(row.gap, 0, true)));
  return [
    h("div", { class: "scroll list", id: "scroll-list", "data-scroll": "", tabindex: "0", role: "region", "aria-label": "Responses" },
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
  const shown = b.contexts[at.context];
  const personas = Object.entries(b.personas[shown.dialogue] || {});
  const list = (sentences) => h("ul", { class: "sentences" }, sentences.map((sentence) => h("li", {}, sentence)));
  return h("div", { class: "context" },
    personas.map(([speaker, sentences]) => h("details", { id: `persona-${speaker}`, open: false }, h("summary", {}, `Persona of ${speaker} (${sentences.length} sentences)`), list(sentences))),
    shown.facts.length > 0 && h("details", { id: "facts" }, h("summary", {}, `Facts given to the metrics (${shown.facts.length})`), list(shown.facts)),
    h("h3", {}, `The dialogue so far (${shown.history.length} ${shown.history.length === 1 ? "utterance" : "utterances"})`),
    h("ol", { class: "history", id: "history", tabindex: "0", "aria-label": "History" },
      shown.history.map(([speaker, text]) => h("li", { class: speaker === shown.history[0][0] ? "" : "other" }, h("b", {}, speaker), " ", text)),
      at.chosen.length === 1 && h("li", { class: "answer" }, h("b", {}, at.chosen[0]), " ", b.response[at.context * b.width + b.systems.indexOf(at.chosen[0])])),
    shown.references.length > 0 && h("div", { class: "reference" }, h("h3", {}, shown.references.length > 1 ? "References" : "Reference"), shown.references.map((text) => h("p", {}, text))));
}

function dialoguesView() {
  const at = place();
  const { b, context } = at;
  const shown = b.contexts[context];
  const turns = b.contexts.map((one, i) => [one, i]).filter(([one]) => one.dialogue === shown.dialogue);
  const step = (by, label, sign) => h("button", { type: "button", id: `step${by}`, disabled: context + by < 0 || context + by >= b.contexts.length, "aria-label": label, on: { click: () => go(context + by) } }, sign);
  return section("dialogues", "Dialogues",
    controls(
      choice("pick-dialogue", "Dialogue", b.dialogues, shown.dialogue, (v) => state.set({ view: "dialogues", dialogue: v, turn: "" })),
      turns.length > 1 && choice("pick-turn", "Turn", turns.map(([one]) => String(one.turn)), String(shown.turn), (v) => go(context, { turn: v })),
      h("span", { class: "steps" }, step(-1, "Previous context", "◀"), step(1, "Next context", "▶")),
      search("find", "Find in responses", state.get("find"), (v) => state.set({ find: v })),
      choice("pick-scope", "in", [["", "this context"], ["all", "the whole data set"]], state.get("scope"), (v) => state.set({ scope: v })),
      b.scores.length > 0 && choice("pick-by", "Score", b.scores.map((one) => [scoreName(one), called(one.metric, one.output)]), at.score && scoreName(at.score), (v) => state.set({ by: v })),
      choice("pick-order", "Sorted by", at.orders.map((key) => [key, ORDERS[key]]), at.order, (v) => state.set({ order: v, falling: "" })),
      h("button", { type: "button", id: "turn-order", on: { click: () => state.set({ falling: at.falling ? "0" : "1" }) } }, at.falling ? "highest first" : "lowest first")),
    h("div", { class: "two" }, contextPanel(at), h("div", {}, responseList(at))),
    sideBySide(at));
}

// Of one response, or of several to the same context side by side.

function bar(percent) {
  if (Number.isNaN(percent)) return null;
  return h("span", { class: "bar", vars: { "--share": `${percent}%` } }, h("i", { "aria-hidden": "true" }), h("small", {}, `${Math.round(percent)}`, h("span", { class: "unseen" }, " of 100 lie below")));
}

function eachRating(rating, where) {
  const given = rating.annotators.filter((one) => one.of.has(where));
  if (!given.length) return DASH;
  const yes = given.filter((one) => one.of.get(where) === 1).length;
  return [h("strong", {}, rating.low === 0 && rating.high === 1 ? `${yes} of ${given.length}` : rating.mean.show(where)),
    h("span", { class: "each" }, given.map((one) => h("span", { class: "chip", title: one.id }, h("small", {}, one.id), " ", one.of.show(where))))];
}

function sideBySide(at) {
  const { b, context, chosen } = at;
  const shown = b.contexts[context];
  const dialogue = b.dialogues.indexOf(shown.dialogue);
  const columns = chosen.map((name) => {
    const system = b.systems.indexOf(name);
    const cell = context * b.width + system;
    return { name, kind: b.kinds[system], cell, whole: dialogue * b.width + system };
  });
  if (!columns.length) return h("p", {}, "No system answered here.");
  const row = (label, cell, props = {}) => h("tr", props, h("th", { scope: "row", class: "label name" }, label), columns.map((column) => h("td", { class: "label" }, cell(column))));
  const title = (text, note) => h("tr", { class: "part" }, h("th", { scope: "rowgroup", class: "label", colspan: columns.length + 1 }, text, note && h("small", {}, ` ${note}`)));
  const part = (heading, note, rows) => (rows.flat(Infinity).filter(Boolean).length ? h("tbody", {}, title(heading, note), rows) : null);
  const scale = (rating) => (rating.low === 0 && rating.high === 1 ? "marks" : `${rating.low} to ${rating.high}`);
  const ratingRows = (list, key) => list.filter((rating) => columns.some((column) => rating.annotators.some((one) => one.of.has(column[key]))))
    .map((rating) => row([rating.dimension, h("small", {}, ` ${scale(rating)}`)], (column) => eachRating(rating, column[key])));
  const fits = finder(state.get("scores"));
  const scoreRows = (list, key, percent) => list.filter((score) => fits(`${called(score.metric, score.output)} ${scoreName(score)}`)).filter((score) => columns.some((column) => score.of.has(column[key])))
    .map((score) => row(called(score.metric, score.output), (column) => [h("span", { class: "number" }, score.of.show(column[key])), percent && bar(score.percent.get(column[key]))],
      { "data-score": scoreName(score), class: at.score && score === at.score ? "current" : "" }));
  const judged = (list, key) => list.filter((one) => columns.some((column) => one.rationale?.[column[key]] || one.failure?.[column[key]] || one.value?.has(column[key])))
    .map((one) => row([D.labels[one.metric] || one.metric, h("small", {}, ` ${D.labels[one.metric] ? `${one.metric} ` : ""}${one.value ? `${one.output}, sample ${one.sample + 1}` : ""}`)], (column) => {
      const failure = one.failure?.[column[key]];
      return [one.value?.has(column[key]) && h("strong", {}, `${one.value.show(column[key])} `), failure ? h("em", {}, `no rating: ${failure}`) : one.rationale?.[column[key]] || (one.value ? "" : DASH)];
    }));
  const people = simulated() ? "simulated" : "";
  const restricted = b.all ? "" : "The main outputs only.";
  const cut = b.cut === null ? "" : `Rationales are cut to ${b.cut} characters.`;
  return h("section", { "aria-labelledby": "side" }, h("h3", { id: "side" }, columns.length > 1 ? "Side by side" : columns[0].name),
    controls(search("scores", "Scores with", state.get("scores"), (v) => state.set({ scores: v }))),
    scrolled("scroll-side", "Scores and ratings",
      h("table", { class: "side", id: "table-side" },
        h("caption", {}, `${shown.dialogue}, turn ${shown.turn}`),
        h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "label" }, "System"), columns.map((column) => h("th", { scope: "col", class: "label" }, column.name, h("small", {}, ` ${column.kind}`))))),
        h("tbody", {}, row("Response", (column) => h("q", { class: "response" }, b.response[column.cell]))),
        part("Ratings of the response", people, ratingRows(b.ratings, "cell")),
        part("Judges on the response", cut, judged(b.judgements, "cell")),
        part("Scores of the response", `bar: percentile among all responses. ${restricted}`, scoreRows(b.scores, "cell", true)),
        part("Ratings of the whole dialogue", people, ratingRows(b.dialogue_ratings, "whole")),
        part("Judges on the whole dialogue", cut, judged(b.dialogue_judgements, "whole")),
        part("Scores of the whole dialogue", restricted, scoreRows(b.dialogue_scores, "whole", false)))));
}
