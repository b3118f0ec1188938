// Everything about one response, or of several to the same context side by side.

function bar(percent) {
  if (Number.isNaN(percent)) return null;
  return h("span", { class: "bar", vars: { "--share": `${percent}%` } }, h("i", { "aria-hidden": "true" }), h("small", {}, `${Math.round(percent)}`, h("span", { class: "unseen" }, " of 100 lie below")));
}

function eachRating(rating, where) {
  const given = rating.annotators.filter((one) => one.of.has(where));
  if (!given.length) return DASH;
  const mean = given.reduce((sum, one) => sum + one.of.get(where), 0) / given.length;
  const marks = rating.low === 0 && rating.high === 1;
  const digits = Math.max(...given.map((one) => one.of.decimals));
  return [h("strong", {}, marks ? `${given.filter((one) => one.of.get(where) === 1).length} of ${given.length}` : fixed(mean, 3)),
    h("span", { class: "each" }, given.map((one) => h("span", { class: "chip", title: one.id }, h("small", {}, one.id), " ", fixed(one.of.get(where), digits))))];
}

function sideBySide(at) {
  const { b, context, chosen } = at;
  const found = b.contexts[context];
  const dialogue = b.dialogues.indexOf(found.dialogue);
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
  const wanted = state.get("scores").toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (score) => wanted.every((word) => scoreName(score).toLowerCase().includes(word));
  const scoreRows = (list, key, percent) => list.filter(fits).filter((score) => columns.some((column) => score.of.has(column[key])))
    .map((score) => row(called(score.metric, score.output), (column) => [h("span", { class: "number" }, score.of.show(column[key])), percent && bar(score.percent.get(column[key]))],
      { "data-score": scoreName(score), class: at.score && score === at.score ? "current" : "" }));
  const judged = (list, key) => list.filter((one) => columns.some((column) => one.rationale?.[column[key]] || one.failure?.[column[key]] || one.value?.has(column[key])))
    .map((one) => row([D.labels[one.metric] || one.metric, h("small", {}, ` ${D.labels[one.metric] ? `${one.metric} ` : ""}${one.value ? `${one.output}, sample ${one.sample + 1}` : ""}`)], (column) => {
      const failure = one.failure?.[column[key]];
      return [one.value?.has(column[key]) && h("strong", {}, `${one.value.show(column[key])} `), failure ? h("em", {}, `no rating: ${failure}`) : one.rationale?.[column[key]] || (one.value ? "" : DASH)];
    }));
  const people = simulated() ? "simulated" : "";
  const restricted = b.all ? "" : "Only the scores that this page was told to carry.";
  const cut = b.cut === null ? "" : b.cut === 0 ? "Rationales are left out: they are too long for a page." : `Rationales are cut to ${b.cut} characters.`;
  return h("section", { "aria-labelledby": "side" }, h("h3", { id: "side" }, columns.length > 1 ? "Side by side" : columns[0].name),
    h("form", { class: "controls", on: { submit: (event) => event.preventDefault() } }, search("scores", "Scores with", state.get("scores"), (v) => state.set({ scores: v }))),
    h("div", { class: "scroll", id: "scroll-side", "data-scroll": "x", tabindex: "0", role: "region", "aria-label": "Scores and ratings" },
      h("table", { class: "side", id: "table-side" },
        h("caption", {}, `${found.dialogue}, turn ${found.turn}`),
        h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "label" }, "System"), columns.map((column) => h("th", { scope: "col", class: "label" }, column.name, h("small", {}, ` ${column.kind}`))))),
        h("tbody", {}, row("Response", (column) => h("q", { class: "response" }, b.response[column.cell]))),
        part("Ratings of the response", people, ratingRows(b.ratings, "cell")),
        part("Judges on the response", cut, judged(b.judgements, "cell")),
        part("Scores of the response", `bar: percentile among all responses. ${restricted}`, scoreRows(b.scores, "cell", true)),
        part("Ratings of the whole dialogue", people, ratingRows(b.dialogue_ratings, "whole")),
        part("Judges on the whole dialogue", cut, judged(b.dialogue_judgements, "whole")),
        part("Scores of the whole dialogue", restricted, scoreRows(b.dialogue_scores, "whole", false)))));
}
