// Systems, pairs of metrics, figures.

function systemsView() {
  const rows = records(D.systems.rows);
  const number = (key, label, group, digits = 3) => ({ key, label, group, order: (row) => row[key], cell: (row) => fixed(row[key], digits) });
  const any = (key) => rows.some((row) => row[key] !== "" && !Number.isNaN(row[key]));
  const filter = state.get("filter");
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (row) => words.every((word) => `${row.system_id} ${row.kind} ${row.track || ""} ${row.description || ""}`.toLowerCase().includes(word));
  const text = (key, label) => ({ key, label, text: true, class: key === "description" ? "wide" : "", order: (row) => row[key], cell: (row) => row[key] || DASH });
  const columns = [
    { ...text("system_id", "System"), class: "name", cell: (row) => h("a", { href: state.link({ view: "dialogues", system: [row.system_id], filter: "" }) }, row.system_id) },
    text("kind", "Kind"),
    any("track") && text("track", "Track"),
    number("responses", "Responses", "", 0),
    any("turn_rating") && number("turn_rating", "of turns", "Mean rating"),
    any("dialogue_rating") && number("dialogue_rating", "of dialogues", "Mean rating"),
    ...D.systems.scores.map((name, i) => ({ key: `score${i}`, label: name.replace(":", " "), group: "Mean score", order: (row) => row[name], cell: (row) => fixed(row[name], 3) })),
    any("description") && text("description", "What it is"),
  ].filter(Boolean);
  return h("section", { "aria-labelledby": "systems" }, h("h2", { id: "systems" }, "Systems"),
    h("p", {}, "Each system’s mean rating and mean scores over all turns that have one. Scores do not compare between columns."),
    h("form", { class: "controls", on: { submit: (event) => event.preventDefault() } }, search("filter", "Systems with", filter, (v) => state.set({ filter: v }))),
    grid({ name: "systems", caption: "Every system that is no reference", columns, rows: rows.filter(fits), start: any("turn_rating") ? "-turn_rating" : "system_id" }));
}

function pairsView() {
  const all = records(D.comparisons);
  const body = (...content) => h("section", { "aria-labelledby": "pairs" }, h("h2", { id: "pairs" }, "Which differences between metrics are real"), content);
  if (!all.length) return body(h("p", {}, "No two metrics were compared on this data set."));
  const { ratings, against } = pickSample(all);
  const ofRatings = all.filter((row) => `${row.against}:${row.target}` === against);
  const levels = inOrder(LEVELS, distinct(ofRatings.map((row) => row.level)));
  const level = levels.includes(state.get("level")) ? state.get("level") : levels[0];
  const ofLevel = ofRatings.filter((row) => row.level === level);
  const coefficients = inOrder(COEFFICIENTS, distinct(ofLevel.map((row) => row.coefficient)));
  const coefficient = coefficients.includes(state.get("coefficient")) ? state.get("coefficient") : coefficients.includes("spearman") ? "spearman" : coefficients[0];
  const rows = ofLevel.filter((row) => row.coefficient === coefficient);
  const name = (row, side) => called(row[`metric_${side}`], row[`output_${side}`]);
  const found = new Map();
  for (const row of rows) {
    found.set(`${name(row, "a")}\n${name(row, "b")}`, { ...row, better: true });
    found.set(`${name(row, "b")}\n${name(row, "a")}`, { ...row, difference: -row.difference, better: false });
  }
  const values = new Map(correlationCells().filter((row) => `${row.against}:${row.target}` === against && row.level === level && row.coefficient === coefficient && row.grouping === "pooled")
    .map((row) => [called(row.metric, row.output), row.value]));
  const names = distinct(rows.flatMap((row) => [name(row, "a"), name(row, "b")])).sort((a, b) => compare(values.get(a), values.get(b), true) || compare(a, b));
  const p = (value) => (Number.isNaN(value) ? DASH : value < 0.001 ? "< 0.001" : fixed(value, 3));
  const cell = (a, b) => {
    if (a === b) return h("td", { class: "self" }, "");
    const row = found.get(`${a}\n${b}`);
    if (!row) return h("td", {}, "");
    const up = row.difference > 0;
    const sign = row.found === 2 ? (up ? "▲" : "▼") : row.found === 1 ? (up ? "△" : "▽") : "·";
    const said = `${a} against ${b}: difference ${fixed(row.difference, 3, true)}, corrected p ${p(row.p_adjusted)}`;
    return h("td", { class: `found${row.found || 0} ${up ? "up" : "down"}`, title: said }, h("span", { "aria-hidden": "true" }, sign), h("span", { class: "unseen" }, said));
  };
  const columns = [
    { key: "a", label: "Better", text: true, class: "name", order: (row) => name(row, "a"), cell: (row) => name(row, "a") },
    { key: "b", label: "than", text: true, order: (row) => name(row, "b"), cell: (row) => name(row, "b") },
    { key: "difference", label: "Difference", order: (row) => row.difference, cell: (row) => fixed(row.difference, 3, true) },
    { key: "p", label: "p", order: (row) => row.p, cell: (row) => p(row.p) },
    { key: "p_adjusted", label: "Corrected p", order: (row) => row.p_adjusted, cell: (row) => h(row.found === 2 ? "strong" : "span", {}, p(row.p_adjusted)) },
    { key: "n", label: "n", order: (row) => row.n, cell: (row) => whole(row.n) },
  ];
  const different = rows.filter((row) => row.found === 2).length;
  const tests = rows.filter((row) => !Number.isNaN(row.p)).length;
  return body(
    h("form", { class: "controls", on: { submit: (event) => event.preventDefault() } },
      choice("pick-against", "Ratings", ratings.map((key) => [key, ratingsLabel(key)]), against, (v) => state.set({ against: v, target: "" })),
      choice("pick-level", "Level", levels.map((l) => [l, LEVELS[l]]), level, (v) => state.set({ level: v })),
      choice("pick-coefficient", "Coefficient", coefficients.map((c) => [c, COEFFICIENTS[c]]), coefficient, (v) => state.set({ coefficient: v }))),
    h("p", {}, `${different} of ${rows.length} pairs differ significantly at 5 % after correction for all of them.`),
    h("div", { class: "scroll", id: "scroll-matrix", "data-scroll": "x", tabindex: "0", role: "region", "aria-label": "Matrix of pairs" },
      h("table", { class: "matrix", id: "table-matrix" }, h("caption", {}, "Row against column, the best first: ▲ better, ▼ worse; △ ▽ only before the correction; · no difference found"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "label" }, "Metric"), h("th", { scope: "col" }, "Value"), names.map((b, i) => h("th", { scope: "col", title: b }, String(i + 1))))),
        h("tbody", {}, names.map((a, i) => h("tr", {}, h("th", { scope: "row", class: "label name" }, `${i + 1} ${a}`), h("td", {}, fixed(values.get(a), 3)), names.map((b) => cell(a, b))))))),
    h("details", { id: "all-pairs", open: state.get("sort.pairs") !== "" }, h("summary", {}, `All ${rows.length} pairs as a list`),
      grid({ name: "pairs", caption: "Each pair once, the better first", columns, rows, start: "p_adjusted" }),
      h("p", { class: "hint" }, "Test: ", distinct(rows.map((row) => row.test)).join("; "), `. Corrected by Holm over ${tests} ${tests === 1 ? "test" : "tests"}.`)));
}

function figuresView() {
  const gone = (figure) => (event) => event.target.replaceWith(h("p", { class: "gone" },
    `Not here: ${figure.src}. The figures lie in a folder beside this page’s own; this page has been moved without them, or they were not made.`));
  return h("section", { "aria-labelledby": "figures" }, h("h2", { id: "figures" }, "Figures"),
    !D.figures.length && h("p", {}, "There are no figures of this data set."),
    h("div", { class: "figures" }, D.figures.map((figure) => {
      const said = capital(figure.name.replace(`${D.dataset}_`, "").replaceAll("_", " "));
      return h("figure", {}, h("a", { href: figure.src }, h("img", { src: figure.src, alt: `Figure: ${said} (${D.title})`, loading: "lazy", on: { error: gone(figure) } })),
        h("figcaption", {}, said, D.note ? ". SIMULATED" : ""));
    })));
}
