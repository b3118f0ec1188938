// What the data set is, and how the metrics agree with the ratings.

const FEW = 10;
const COEFFICIENTS = { pearson: "Pearson", spearman: "Spearman", kendall: "Kendall", acc_eq: "acc_eq", spa: "SPA" };
const LEVELS = { turn: "Turn level", dialogue: "Dialogue level", system: "System level" };
const GROUPINGS = { pooled: "all together", item: "within each context or dialogue" };
const inOrder = (order, values) => Object.keys(order).filter((key) => values.includes(key));
const simulated = () => D.source === "simulated" || Boolean(D.note);
const raters = () => (simulated() ? "simulated raters" : D.source === "human" ? "human raters" : `raters of source “${D.source}”`);

function facts() {
  const { systems, dialogues, contexts, responses, ratings } = D.counts;
  const total = Object.values(systems).reduce((a, b) => a + b, 0);
  const kinds = Object.entries(systems).map(([kind, n]) => `${n} ${kind}${kind === "agent" && n > 1 ? "s" : ""}`).join(", ");
  const alpha = (level, dimension) => D.alpha.filter((row) => row.level === level && row.dimension === dimension && row.kind === "ordinal")[0];
  return [
    h("p", { class: "lead" }, `${whole(responses)} responses of ${whole(total)} systems (${kinds}) to ${whole(contexts)} contexts in ${whole(dialogues)} dialogues, rated by ${raters()}.`),
    ratings.length > 0 && h("div", { class: "scroll", id: "scroll-facts", "data-scroll": "x" }, h("table", { id: "table-facts" }, h("caption", {}, "What was rated, and how far the raters agree"),
      h("thead", {}, h("tr", {}, ["Rated", "Dimension"].map((t) => h("th", { scope: "col", class: "label" }, t)), ["Scale", "Raters", "Ratings"].map((t) => h("th", { scope: "col" }, t)),
        D.alpha.length > 0 && h("th", { scope: "col" }, "Krippendorff’s α (ordinal), 95 % interval"))),
      h("tbody", {}, ratings.map((row) => {
        const found = alpha(row.level, row.dimension);
        return h("tr", {}, h("th", { scope: "row", class: "label" }, `${row.level}s`), h("td", { class: "label" }, row.dimension), h("td", {}, row.low === 0 && row.high === 1 ? "0 or 1" : `${row.low} to ${row.high}`),
          h("td", {}, whole(row.raters)), h("td", {}, whole(row.ratings)), D.alpha.length > 0 && h("td", {}, found ? `${found.value} [${found.low}, ${found.high}]` : DASH));
      })))),
  ];
}

let cells = null;
function correlationCells() {
  if (!cells) cells = records(D.correlations);
  return cells;
}

function pickSample(rows, prefix) {
  const ratings = distinct(rows.map((row) => `${row.against}:${row.target}`));
  const preferred = [`turn:${D.target}`, `dialogue:${D.target}`].find((key) => ratings.includes(key)) || ratings[0];
  const asked = state.get("against");
  const target = state.get("target", D.target);
  const wanted = asked.includes(":") ? asked : `${asked}:${target}`;
  return { ratings, against: ratings.includes(wanted) ? wanted : preferred };
}

const ratingsLabel = (key) => { const [level, ...rest] = key.split(":"); return `${rest.join(":")} of ${level}s`; };

function whisker(row, low, high) {
  if (Number.isNaN(row.low)) return null;
  const at = (value) => `${(100 * (Math.max(low, Math.min(high, value)) - low)) / (high - low || 1)}%`;
  return h("span", { class: "whisker", "aria-hidden": "true", vars: { "--low": at(row.low), "--high": at(row.high), "--value": at(row.value), "--zero": at(0) } }, h("i"));
}

function correlationTable() {
  const all = correlationCells();
  if (!all.length) return h("p", {}, "No correlations: nobody rated, or no metric ran.");
  const { ratings, against } = pickSample(all);
  const ofRatings = all.filter((row) => `${row.against}:${row.target}` === against);
  const groupings = inOrder(GROUPINGS, distinct(ofRatings.map((row) => row.grouping)));
  const grouping = groupings.includes(state.get("grouping")) ? state.get("grouping") : groupings[0];
  const grouped = ofRatings.filter((row) => row.grouping === grouping);
  const levels = inOrder(LEVELS, distinct(grouped.map((row) => row.level)));
  const coefficients = inOrder(COEFFICIENTS, distinct(grouped.map((row) => row.coefficient)));
  const level = levels.includes(state.get("level")) ? state.get("level") : "all";
  const asked = state.get("coefficient", "spearman");
  const coefficient = asked === "all" || coefficients.includes(asked) ? asked : coefficients[0];
  const details = state.get("intervals", "1") === "1";
  const shown = grouped.filter((row) => (level === "all" || row.level === level) && (coefficient === "all" || row.coefficient === coefficient));
  const filter = state.get("filter");
  const everything = state.get("outputs") === "all" || !D.main.length;
  const isMain = (row) => row.metric === "human" || D.main.includes(`${row.metric}:${row.output}`);
  const others = shown.some((row) => !isMain(row));
  const rows = new Map();
  for (const row of shown.filter((one) => everything || filter || isMain(one))) {
    const key = `${row.metric}\n${row.output}`;
    if (!rows.has(key)) rows.set(key, { metric: row.metric, output: row.output, cells: {} });
    rows.get(key).cells[`${row.level}.${row.coefficient}`] = row;
  }
  const ceilings = records(D.ceilings).filter((row) => `${row.against}:${row.target}` === against && row.grouping === grouping);
  const ceiling = { ceiling: true, cells: {} };
  for (const row of ceilings) ceiling.cells[`${row.level}.${row.coefficient}`] = row;
  const label = (row) => {
    if (row.ceiling) return h("span", { title: "The mean over the raters of each one's ratings against the mean of the others'" }, "Ceiling: one rater against the others");
    if (row.metric === "human") return simulated() ? "Raters: mean of the turns" : "Human: mean of the turns";
    return h("span", { title: `${row.metric}:${row.output}` }, called(row.metric, row.output));
  };
  const columns = [{ key: "metric", label: "Metric", text: true, class: "name", cell: label, order: (row) => called(row.metric, row.output) }];
  const bounds = shown.flatMap((row) => [row.low, row.high]).filter((v) => !Number.isNaN(v));
  const least = Math.min(0, ...bounds), most = Math.max(0, ...bounds);
  for (const l of levels) for (const c of coefficients) {
    const key = `${l}.${c}`;
    if (!shown.some((row) => row.level === l && row.coefficient === c)) continue;
    const group = `${LEVELS[l]}, ${COEFFICIENTS[c]}`;
    const of = (row) => row.cells[key];
    columns.push({ key, group, label: "Value", order: (row) => of(row)?.value, cell: (row) => {
      const cell = of(row);
      if (!cell || Number.isNaN(cell.value)) return DASH;
      const few = !row.ceiling && cell.n <= FEW, exact = few && cell.p_exact === cell.p_exact;
      return [fixed(cell.value, few ? 2 : 3), h("span", { class: "marks" }, cell.starred && !exact && h("abbr", { title: "p of 0.05 or more" }, "*"),
        cell.coverage < 1 && h("abbr", { title: `${(100 * cell.coverage).toFixed(1)} % of the rated responses have a score` }, "†"),
        cell.loso_halved && h("abbr", { title: `${Number.isNaN(cell.loso_value) ? "No correlation" : fixed(cell.loso_value, 3)} without ${cell.loso_system}` }, "‡")),
        few && h("span", { class: "output" }, ` (n ${cell.n}${exact ? `, p ${fixed(cell.p_exact, cell.p_exact < 0.095 ? 3 : 2)}` : ""})`)];
    } });
    if (!details) continue;
    if (shown.some((row) => row.level === l && row.coefficient === c && !Number.isNaN(row.low)))
      columns.push({ key: `${key}.low`, group, label: "95 % interval", class: "interval", order: (row) => of(row)?.low,
        cell: (row) => { const cell = of(row); return cell && !row.ceiling && !Number.isNaN(cell.low) ? [`[${fixed(cell.low, 3)}, ${fixed(cell.high, 3)}]`, whisker(cell, least, most)] : DASH; } });
    if (shown.some((row) => row.level === l && row.coefficient === c && row.loso_system))
      columns.push({ key: `${key}.loso`, group, label: "Without one system", class: "without", order: (row) => of(row)?.loso_value,
        cell: (row) => { const cell = of(row); return cell?.loso_system ? [Number.isNaN(cell.loso_value) ? "none" : fixed(cell.loso_value, 3), " ", h("span", { class: "output" }, cell.loso_system)] : DASH; } });
    if (shown.some((row) => row.level === l && row.coefficient === c && !Number.isNaN(row.rank)))
      columns.push({ key: `${key}.rank`, group, label: "Rank", order: (row) => (of(row) && !Number.isNaN(of(row).rank) ? -of(row).rank : NaN),
        cell: (row) => { const cell = of(row); return cell && cell.rank === cell.rank && !row.ceiling ? h("span", { class: cell.rank === 1 ? "first" : "" }, String(cell.rank)) : DASH; } });
  }
  const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (row) => wanted.every((word) => `${called(row.metric, row.output)} ${row.metric}:${row.output}`.toLowerCase().includes(word));
  const first = columns.length > 1 ? `-${columns[1].key}` : "metric";
  return [
    h("form", { class: "controls", on: { submit: (event) => event.preventDefault() } },
      choice("pick-against", "Ratings", ratings.map((key) => [key, ratingsLabel(key)]), against, (v) => state.set({ against: v, target: "" })),
      choice("pick-level", "Level", [["all", "all levels"], ...levels.map((l) => [l, LEVELS[l]])], level, (v) => state.set({ level: v === "all" ? "" : v })),
      choice("pick-coefficient", "Coefficient", [...coefficients.map((c) => [c, COEFFICIENTS[c]]), ["all", "all coefficients"]], coefficient, (v) => state.set({ coefficient: v })),
      choice("pick-grouping", "Compared", groupings.map((g) => [g, GROUPINGS[g]]), grouping, (v) => state.set({ grouping: v })),
      search("filter", "Metrics with", filter, (v) => state.set({ filter: v })),
      box("pick-intervals", "intervals, ranks, leave one out", details, (v) => state.set({ intervals: v ? "" : "0" })),
      others && D.main.length > 0 && box("pick-outputs", "other outputs than the main ones", everything, (v) => state.set({ outputs: v ? "all" : "" }))),
    grid({ name: "metrics", caption: `Agreement with the ratings (${ratingsLabel(against)})`, columns, rows: [...rows.values()].filter(fits),
      pinned: ceilings.length ? [ceiling] : [], start: first, mark: (row) => (row.metric === "human" ? "human" : "") }),
    h("p", { class: "hint" }, "* p of 0.05 or more. † Part of the rated responses have a score. ‡ Falls by more than half when one of the systems is left out. Without one system: the lowest value that is left, and the system that was left out; with few systems there is none. Rank: the test finds no difference between metrics of one rank; 1 is best. Of 10 systems or fewer a value has two digits and says how many there are (n), with the exact p where there is one. acc_eq and SPA are shares of pairs (0 to 1)."),
  ];
}

function overview() {
  const missing = Object.entries(D.not_run);
  return [
    h("section", { "aria-labelledby": "about" }, h("h2", { id: "about" }, "The data set"), facts()),
    h("section", { "aria-labelledby": "agreement" }, h("h2", { id: "agreement" }, "Which metric agrees with the ratings"), correlationTable()),
    missing.length > 0 && h("section", { "aria-labelledby": "not-run" }, h("h2", { id: "not-run" }, "Not run"),
      h("dl", { class: "reasons" }, missing.map(([name, why]) => [h("dt", {}, D.labels[name] ? `${D.labels[name]} (${name})` : name), h("dd", {}, why)]))),
    D.signatures && h("details", { id: "signatures" }, h("summary", {}, "How each metric was made"),
      h("dl", { class: "reasons" }, Object.entries(D.signatures).map(([name, made]) => [h("dt", {}, D.labels[name] ? `${D.labels[name]} (${name})` : name), h("dd", {}, h("code", {}, made))]))),
  ];
}
