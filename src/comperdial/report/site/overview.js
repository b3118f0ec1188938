// What the data set is, and how the metrics agree with the ratings.

const FEW = 10;
const COEFFICIENTS = { pearson: "Pearson", spearman: "Spearman", kendall: "Kendall", acc_eq: "acc_eq", spa: "SPA" };
const LEVELS = { turn: "Turn level", dialogue: "Dialogue level", system: "System level" };
const GROUPINGS = { pooled: "all together", item: "within each context or dialogue" };
const inOrder = (order, rows, name) => Object.keys(order).filter((key) => rows.some((row) => row[name] === key));
const simulated = () => D.source === "simulated" || Boolean(D.note);
const raters = () => (simulated() ? "simulated raters" : D.source === "human" ? "human raters" : `raters of source “${D.source}”`);

function facts() {
  const { systems, dialogues, contexts, responses, ratings } = D.counts;
  const total = Object.values(systems).reduce((a, b) => a + b, 0);
  const kinds = Object.entries(systems).map(([kind, n]) => `${n} ${kind}${kind === "agent" && n > 1 ? "s" : ""}`).join(", ");
  const alpha = (row) => D.alpha.find((one) => one.level === row.level && one.dimension === row.dimension);
  const heads = ["Rated", "Dimension", "Scale", "Raters", "Ratings", "Krippendorff’s α (ordinal), 95 % interval"];
  const line = (row) => {
    const agreement = alpha(row);
    return h("tr", {}, h("th", { scope: "row", class: "label" }, `${row.level}s`), h("td", { class: "label" }, row.dimension),
      h("td", {}, row.low === 0 && row.high === 1 ? "0 or 1" : `${row.low} to ${row.high}`), h("td", {}, whole(row.raters)), h("td", {}, whole(row.ratings)),
      h("td", {}, agreement ? `${fixed(agreement.value, 3)} [${fixed(agreement.low, 3)}, ${fixed(agreement.high, 3)}]` : DASH));
  };
  return [
    h("p", {}, `${whole(responses)} responses of ${whole(total)} systems (${kinds}) to ${whole(contexts)} contexts in ${whole(dialogues)} dialogues, rated by ${raters()}.`),
    ratings.length > 0 && scrolled("scroll-facts", "What was rated", h("table", { id: "table-facts" }, h("caption", {}, "What was rated, and how far the raters agree"),
      h("thead", {}, h("tr", {}, heads.map((text, i) => h("th", { scope: "col", class: i < 2 ? "label" : "" }, text)))), h("tbody", {}, ratings.map(line)))),
  ];
}

// The ratings that are chosen, as "level:dimension", and the rows that are about them.
const ratingsOf = (row) => `${row.against}:${row.target}`;
const ratingsLabel = (key) => { const [level, ...rest] = key.split(":"); return `${rest.join(":")} of ${level}s`; };

function pickRatings(rows) {
  const ratings = distinct(rows.map(ratingsOf));
  const first = [`turn:${D.target}`, `dialogue:${D.target}`].find((key) => ratings.includes(key));
  const against = state.pick("against", ratings, first);
  return { against, chosen: rows.filter((row) => ratingsOf(row) === against),
    field: choice("pick-against", "Ratings", ratings.map((key) => [key, ratingsLabel(key)]), against, (v) => state.set({ against: v })) };
}

// The cell of a value: few systems are named with the exact p, which replaces the asterisk.
function valueCell(cell, ceiling) {
  if (!cell || Number.isNaN(cell.value)) return DASH;
  const few = !ceiling && cell.n <= FEW, exact = few && !Number.isNaN(cell.p_exact);
  const left = Number.isNaN(cell.loso_value) ? "No correlation" : fixed(cell.loso_value, 3);
  return [fixed(cell.value, few ? 2 : 3),
    h("span", { class: "marks" }, cell.starred && !exact && h("abbr", { title: "p of 0.05 or more" }, "*"),
      cell.coverage < 1 && h("abbr", { title: `${fixed(100 * cell.coverage, 1)} % of the rated responses have a score` }, "†"),
      cell.loso_halved && h("abbr", { title: `${left} without ${cell.loso_system}` }, "‡")),
    few && h("span", { class: "output" }, ` (n ${cell.n}${exact ? `, p ${fixed(cell.p_exact, cell.p_exact < 0.095 ? 3 : 2)}` : ""})`)];
}

// The columns of one level and coefficient: the value, and if asked for its interval, its rank, and the value without one system.
function valueColumns(level, coefficient, cells, details) {
  const key = `${level}.${coefficient}`, group = `${LEVELS[level]}, ${COEFFICIENTS[coefficient]}`;
  const of = (row) => row.cells[key];
  const more = (name, label, cell, order) => details && cells.some((one) => !Number.isNaN(one[name])) && { key: `${key}.${name}`, group, label, order,
    cell: (row) => (of(row) && !row.ceiling && !Number.isNaN(of(row)[name]) ? cell(of(row)) : DASH) };
  return [
    { key, group, label: "Value", order: (row) => of(row)?.value, cell: (row) => valueCell(of(row), row.ceiling) },
    more("low", "95 % interval", (cell) => `[${fixed(cell.low, 3)}, ${fixed(cell.high, 3)}]`, (row) => of(row)?.low),
    more("loso_system", "Without one system", (cell) => [Number.isNaN(cell.loso_value) ? "none" : fixed(cell.loso_value, 3), " ", h("span", { class: "output" }, cell.loso_system)], (row) => of(row)?.loso_value),
    more("rank", "Rank", (cell) => h("span", { class: cell.rank === 1 ? "first" : "" }, String(cell.rank)), (row) => (of(row) ? -of(row).rank : NaN)),
  ].filter(Boolean);
}

function correlationTable() {
  const all = records(D.correlations);
  if (!all.length) return h("p", {}, "No correlations: nobody rated, or no metric ran.");
  const { against, chosen, field } = pickRatings(all);
  const groupings = inOrder(GROUPINGS, chosen, "grouping"), grouping = state.pick("grouping", groupings);
  const grouped = chosen.filter((row) => row.grouping === grouping);
  const levels = inOrder(LEVELS, grouped, "level"), level = state.pick("level", ["all", ...levels]);
  const coefficients = inOrder(COEFFICIENTS, grouped, "coefficient"), coefficient = state.pick("coefficient", [...coefficients, "all"], "spearman");
  const details = state.get("intervals", "1") === "1", filter = state.get("filter"), fits = finder(filter);
  const isMain = (row) => row.metric === "human" || D.main.includes(`${row.metric}:${row.output}`);
  // Who looks for a metric looks among all outputs, unless the box says otherwise.
  const everything = state.get("outputs", filter ? "all" : "main") === "all" || !D.main.length;
  const shown = grouped.filter((row) => (level === "all" || row.level === level) && (coefficient === "all" || row.coefficient === coefficient));
  const rows = new Map(), ceiling = { ceiling: true, cells: {} };
  for (const row of shown.filter((one) => everything || isMain(one))) {
    const name = `${row.metric}:${row.output}`;
    if (!rows.has(name)) rows.set(name, { name, metric: row.metric, label: called(row.metric, row.output), cells: {} });
    rows.get(name).cells[`${row.level}.${row.coefficient}`] = row;
  }
  for (const row of records(D.ceilings)) if (ratingsOf(row) === against && row.grouping === grouping) ceiling.cells[`${row.level}.${row.coefficient}`] = row;
  const label = (row) => row.ceiling ? h("span", { title: "The mean over the raters of each one's ratings against the mean of the others'" }, "Ceiling: one rater against the others")
    : h("span", { title: row.name }, row.label);
  const columns = [{ key: "metric", label: "Metric", text: true, class: "name", cell: label, order: (row) => row.label }];
  for (const l of levels) for (const c of coefficients) {
    const cells = shown.filter((row) => row.level === l && row.coefficient === c);
    if (cells.length) columns.push(...valueColumns(l, c, cells, details));
  }
  return [
    controls(field,
      choice("pick-level", "Level", [["all", "all levels"], ...levels.map((l) => [l, LEVELS[l]])], level, (v) => state.set({ level: v === "all" ? "" : v })),
      choice("pick-coefficient", "Coefficient", [...coefficients.map((c) => [c, COEFFICIENTS[c]]), ["all", "all coefficients"]], coefficient, (v) => state.set({ coefficient: v })),
      choice("pick-grouping", "Compared", groupings.map((g) => [g, GROUPINGS[g]]), grouping, (v) => state.set({ grouping: v })),
      search("filter", "Metrics with", filter, (v) => state.set({ filter: v })),
      box("pick-intervals", "intervals, ranks, leave one out", details, (v) => state.set({ intervals: v ? "" : "0" })),
      D.main.length > 0 && !shown.every(isMain) && box("pick-outputs", "other outputs than the main ones", everything, (v) => state.set({ outputs: v ? "all" : "main" }))),
    grid({ name: "metrics", caption: `Agreement with the ratings (${ratingsLabel(against)})`, columns, rows: [...rows.values()].filter((row) => fits(`${row.label} ${row.name}`)),
      pinned: Object.keys(ceiling.cells).length ? [ceiling] : [], start: columns.length > 1 ? `-${columns[1].key}` : "metric", mark: (row) => (row.metric === "human" ? "human" : "") }),
    h("p", { class: "hint" }, "* p of 0.05 or more. † Part of the rated responses have a score. ‡ Falls by more than half when one of the systems is left out. Without one system: the lowest value that is left, and the system that was left out; with few systems there is none. Rank: the test finds no difference between metrics of one rank; 1 is best. Of 10 systems or fewer a value has two digits and says how many there are (n), with the exact p where there is one. acc_eq and SPA are shares of pairs (0 to 1)."),
  ];
}

function overview() {
  const list = (entries, cell) => h("dl", { class: "reasons" }, entries.map(([name, text]) => [h("dt", {}, named(name)), h("dd", {}, cell(text))]));
  const missing = Object.entries(D.not_run);
  return [
    section("agreement", "Which metric agrees with the ratings", correlationTable(),
      missing.length > 0 && h("details", { id: "not-run" }, h("summary", {}, D.not_run_line), list(missing, (why) => why))),
    section("best", "How the systems are rated", ratedSystems()),
    section("about", "The data set", facts()),
    D.signatures && h("details", { id: "signatures" }, h("summary", {}, "How each metric was made"), list(Object.entries(D.signatures), (made) => h("code", {}, made))),
  ];
}
