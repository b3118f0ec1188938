// Systems, pairs of metrics, figures.

// A mean rating with its interval, which a single dialogue has none of.
function ratingColumns(rows) {
  const ends = (row, key) => (Number.isNaN(row[`${key}_low`]) ? "" : ` [${fixed(row[`${key}_low`], 2)}, ${fixed(row[`${key}_high`], 2)}]`);
  return ["turn", "dialogue"].map((level) => [`${level}_rating`, `of ${level}s`]).filter(([key]) => rows.some((row) => !Number.isNaN(row[key])))
    .map(([key, label]) => ({ key, label, group: "Mean rating", order: (row) => row[key], cell: (row) => [fixed(row[key], 3), h("span", { class: "output" }, ends(row, key))] }));
}

const systemColumn = {
  key: "system_id", label: "System", text: true, class: "name", order: (row) => row.system_id,
  cell: (row) => h("a", { href: state.link({ view: "dialogues", system: [row.system_id], filter: "" }) }, row.system_id),
};

const RATED = 10;
function ratedSystems() {
  const rows = records(D.systems.rows), ratings = ratingColumns(rows);
  if (!ratings.length) return h("p", {}, "No system was rated.");
  return [
    grid({ name: "rated", caption: rows.length > RATED ? `The best rated ${RATED} of ${rows.length} systems` : "Every system that is no reference",
      columns: [systemColumn, ...ratings], rows, most: RATED, start: `-${ratings[0].key}` }),
    h("p", { class: "hint" }, "In brackets the 95 % interval of the mean, which takes dialogues as sampled and the raters as given. ",
      h("a", { href: state.link({ view: "systems", filter: "" }) }, "All systems, with their scores")),
  ];
}

function systemsView() {
  const rows = records(D.systems.rows), filter = state.get("filter"), fits = finder(filter), ratings = ratingColumns(rows);
  const any = (key) => rows.some((row) => row[key] && !Number.isNaN(row[key]));
  const number = (key, label, group, digits = 3) => ({ key, label, group, order: (row) => row[key], cell: (row) => fixed(row[key], digits) });
  const text = (key, label, more) => ({ key, label, text: true, order: (row) => row[key], cell: (row) => row[key] || DASH, ...more });
  const columns = [
    systemColumn,
    text("kind", "Kind"),
    any("track") && text("track", "Track"),
    number("responses", "Responses", "", 0),
    ...ratings,
    ...D.systems.scores.map((name) => number(name, called(...name.split(":")), "Mean score")),
    any("description") && text("description", "What it is", { class: "wide" }),
  ].filter(Boolean);
  return section("systems", "Systems",
    h("p", {}, "Each system’s mean rating and mean scores over all turns that have one. Scores do not compare between columns."),
    controls(search("filter", "Systems with", filter, (v) => state.set({ filter: v }))),
    grid({ name: "systems", caption: "Every system that is no reference", columns, start: ratings.length ? `-${ratings[0].key}` : "system_id",
      rows: rows.filter((row) => fits(`${row.system_id} ${row.kind} ${row.track || ""} ${row.description || ""}`)) }));
}

function pairsView() {
  const all = records(D.comparisons), heading = "Which differences between metrics are real";
  if (!all.length) return section("pairs", heading, h("p", {}, "No two metrics were compared on this data set."));
  const { chosen, field } = pickRatings(all);
  const levels = inOrder(LEVELS, chosen, "level"), level = state.pick("level", levels);
  const ofLevel = chosen.filter((row) => row.level === level);
  const coefficients = inOrder(COEFFICIENTS, ofLevel, "coefficient"), coefficient = state.pick("coefficient", coefficients, "spearman");
  const rows = ofLevel.filter((row) => row.coefficient === coefficient), fits = finder(state.get("filter"));
  const name = (row, side) => called(row[`metric_${side}`], row[`output_${side}`]);
  const p = (value) => (Number.isNaN(value) ? DASH : value < 0.001 ? "< 0.001" : fixed(value, 3));
  const text = (key, label, side) => ({ key, label, text: true, class: side === "a" ? "name" : "", order: (row) => name(row, side), cell: (row) => name(row, side) });
  const number = (key, label, cell) => ({ key, label, order: (row) => row[key], cell });
  const columns = [
    text("a", "Better", "a"),
    text("b", "than", "b"),
    number("difference", "Difference", (row) => fixed(row.difference, 3, true)),
    number("p", "p", (row) => p(row.p)),
    number("p_adjusted", "Corrected p", (row) => h(row.significant ? "strong" : "span", {}, p(row.p_adjusted))),
    number("n", "n", (row) => whole(row.n)),
  ];
  const tests = rows.filter((row) => !Number.isNaN(row.p)).length;
  return section("pairs", heading,
    controls(field,
      choice("pick-level", "Level", levels.map((l) => [l, LEVELS[l]]), level, (v) => state.set({ level: v })),
      choice("pick-coefficient", "Coefficient", coefficients.map((c) => [c, COEFFICIENTS[c]]), coefficient, (v) => state.set({ coefficient: v })),
      search("filter", "Metrics with", state.get("filter"), (v) => state.set({ filter: v }))),
    h("p", {}, `${rows.filter((row) => row.significant).length} of ${rows.length} pairs differ significantly at 5 % after correction for all of them.`),
    grid({ name: "pairs", caption: "Each pair once, the better first", columns, rows: rows.filter((row) => fits(`${name(row, "a")} ${name(row, "b")}`)), start: "p_adjusted" }),
    h("p", { class: "hint" }, "Test: ", distinct(rows.map((row) => row.test)).join("; "), `. Corrected by Holm over ${tests} ${tests === 1 ? "test" : "tests"}.`));
}

function figuresView() {
  const gone = (figure) => (event) => event.target.replaceWith(h("p", { class: "gone" },
    `Not here: ${figure.src}. The figures are in a folder beside this page’s own; this page has been moved without them, or they were not made.`));
  return section("figures", "Figures",
    !D.figures.length && h("p", {}, "There are no figures of this data set."),
    h("div", { class: "figures" }, D.figures.map((figure) => {
      const title = capital(figure.name.replaceAll("_", " "));
      return h("figure", {}, h("a", { href: figure.src }, h("img", { src: figure.src, alt: `Figure: ${title} (${D.title})`, loading: "lazy", on: { error: gone(figure) } })),
        h("figcaption", {}, title, D.note ? ". SIMULATED" : ""));
    })));
}
