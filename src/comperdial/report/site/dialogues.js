// Dialogues: which response to look at, and everything about it.

let B = null;
const scoreName = (score) => `${score.metric}:${score.output}`;

// Where we are: the context, the score that is shown, the responses that are listed, and the systems that are side by side.
function place() {
  B ||= { ...D.browser, width: D.browser.systems.length, dialogues: distinct(D.browser.contexts.map((one) => one.dialogue)) };
  const b = B, everywhere = state.get("scope") === "all", fits = finder(state.get("find"));
  b.rows ||= b.response.flatMap((response, cell) => (response === null ? [] : [{ cell, response, context: Math.floor(cell / b.width), system: b.systems[cell % b.width] }]));
  const ofDialogue = (one) => one.dialogue === state.get("dialogue"), ofTurn = (one) => ofDialogue(one) && String(one.turn) === state.get("turn");
  let context = [ofTurn, ofDialogue].map((fit) => b.contexts.findIndex(fit)).find((found) => found >= 0) ?? 0;
  const rows = b.rows.filter((row) => (everywhere || row.context === context) && fits(`${row.system} ${row.response}`));
  // A search of everything that names no dialogue opens with what it finds.
  if (everywhere && state.get("dialogue") === "" && rows.length) context = rows[0].context;
  const score = b.scores.find((one) => scoreName(one) === state.get("by")) || b.scores.find((one) => D.systems.scores.includes(scoreName(one))) || b.scores[0] || null;
  const here = b.rows.filter((row) => row.context === context).map((row) => row.system);
  const first = rows.find((row) => row.context === context)?.system || here[0];
  const chosen = state.all("system").filter((name) => here.includes(name));
  return { b, context, score, everywhere, rows, chosen: chosen.length ? chosen : first ? [first] : [] };
}

function go(context, changes = {}) {
  state.set({ view: "dialogues", dialogue: B.contexts[context].dialogue, turn: String(B.contexts[context].turn), ...changes });
}

function responseList({ b, rows, score, context, chosen, everywhere }) {
  const marked = (row) => row.context === context && chosen.includes(row.system);
  const gap = (row) => score.percent.get(row.cell) - b.mean_percent.get(row.cell);
  const toggle = (row) => {
    const next = row.context !== context ? [] : marked(row) ? chosen.filter((name) => name !== row.system) : [...chosen, row.system];
    go(row.context, { system: next.length ? next : [row.system] });
  };
  const system = (row) => [
    h("input", { type: "checkbox", id: `side-${row.cell}`, checked: marked(row), "aria-label": `Show ${row.system} side by side`, on: { change: () => toggle(row) } }), " ",
    h("button", { type: "button", class: "plain", id: `open-${row.cell}`, "aria-current": marked(row) ? "true" : null, on: { click: () => go(row.context, { system: [row.system] }) } }, row.system),
    everywhere && h("small", {}, ` ${b.contexts[row.context].dialogue}, turn ${b.contexts[row.context].turn}`)];
  const columns = [
    { key: "system", label: "System", text: true, class: "name", order: (row) => row.system, cell: system },
    { key: "response", label: "Response", text: true, class: "answer", order: (row) => row.response, cell: (row) => row.response },
    b.mean && { key: "rating", label: "Mean rating", order: (row) => b.mean.get(row.cell), cell: (row) => b.mean.show(row.cell) },
    score && { key: "score", label: called(score.metric, score.output), order: (row) => score.of.get(row.cell), cell: (row) => score.of.show(row.cell) },
    score && b.mean && { key: "gap", label: "Gap", order: (row) => Math.abs(gap(row)), cell: (row) => fixed(gap(row), 0, true) },
  ].filter(Boolean);
  const most = everywhere ? 100 : rows.length, more = rows.length > most ? `, the first ${most} shown` : "";
  const caption = `${whole(rows.length)} responses ${everywhere ? `of the whole data set${more}` : "to this context"}`;
  return [
    grid({ name: "responses", caption, columns, rows, most, start: b.mean ? "-rating" : "system", mark: (row) => (marked(row) ? "marked" : "") }),
    h("p", { class: "hint" }, "Gap: the score’s percentile less the mean rating’s, among all responses: above 0 the metric likes a response more than people do; sorted without the sign. Tick systems to see them side by side."),
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
  const at = place(), { b, context } = at, shown = b.contexts[context];
  const turns = b.contexts.filter((one) => one.dialogue === shown.dialogue).map((one) => String(one.turn));
  const step = (by, label, sign) => h("button", { type: "button", id: `step${by}`, disabled: !b.contexts[context + by], "aria-label": label, on: { click: () => go(context + by) } }, sign);
  return section("dialogues", "Dialogues",
    controls(
      choice("pick-dialogue", "Dialogue", b.dialogues, shown.dialogue, (v) => state.set({ view: "dialogues", dialogue: v, turn: "" })),
      turns.length > 1 && choice("pick-turn", "Turn", turns, String(shown.turn), (v) => go(context, { turn: v })),
      h("span", { class: "steps" }, step(-1, "Previous context", "◀"), step(1, "Next context", "▶")),
      search("find", "Find in responses", state.get("find"), (v) => state.set({ find: v })),
      choice("pick-scope", "in", [["", "this context"], ["all", "the whole data set"]], state.get("scope"), (v) => state.set({ scope: v })),
      b.scores.length > 0 && choice("pick-by", "Score", b.scores.map((one) => [scoreName(one), called(one.metric, one.output)]), at.score && scoreName(at.score), (v) => state.set({ by: v }))),
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
  const cut = `Rationales are cut to ${b.cut} characters.`;
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
