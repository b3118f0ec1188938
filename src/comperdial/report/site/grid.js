// A table that sorts by any of its columns.
// A column: {key, label, group, text: true for words, cell(row): text or element, order(row): number or text}.

function compare(a, b, falling) {
  const lacks = (v) => v === null || v === undefined || Number.isNaN(v);
  if (lacks(a) || lacks(b)) return lacks(a) - lacks(b);
  const order = typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return falling ? -order : order;
}

// `name` is the table's name in the link: #sort.<name>=key or -key (falling).
function grid({ name, caption, columns, rows, pinned = [], start = "", most = Infinity, mark = () => "" }) {
  const sort = state.get(`sort.${name}`, start);
  const falling = sort.startsWith("-");
  const by = columns.find((column) => column.key === sort.replace(/^-/, ""));
  const sorted = by ? [...rows].sort((a, b) => compare(by.order(a), by.order(b), falling)) : rows;
  const grouped = columns.some((column) => column.group);
  const starts = (column, index) => Boolean(column.group) && (index === 0 || columns[index - 1].group !== column.group);
  const head = (column, index) => {
    const active = by === column;
    // Numbers are most often wanted from the top.
    const next = active ? (falling ? column.key : `-${column.key}`) : (column.text ? "" : "-") + column.key;
    return h("th", { scope: "col", class: column.text ? "label" : "", "aria-sort": active ? (falling ? "descending" : "ascending") : null,
        "data-first": starts(column, index) },
      h("button", { type: "button", id: `sort-${name}-${column.key}`, class: "sort", on: { click: () => state.set({ [`sort.${name}`]: next }) } },
        column.label, h("span", { class: "arrow", "aria-hidden": "true" }, active ? (falling ? "▼" : "▲") : "")));
  };
  const groups = [];
  for (const column of columns) {
    const last = groups[groups.length - 1];
    if (last && last.group === (column.group || "")) last.width += 1;
    else groups.push({ group: column.group || "", width: 1 });
  }
  const line = (row, kind) => h("tr", { class: `${kind} ${mark(row)}` }, columns.map((column, index) => {
    const props = { class: `${column.text ? "label" : ""} ${column.class || ""}`, "data-first": starts(column, index) };
    return index === 0 ? h("th", { scope: "row", ...props }, column.cell(row)) : h("td", props, column.cell(row));
  }));
  return scrolled(`scroll-${name}`, caption,
    h("table", { id: `table-${name}` }, h("caption", {}, caption),
      h("thead", {},
        grouped && h("tr", {}, groups.map(({ group, width }) => h("th", { colspan: width, class: group ? "group" : "", scope: group ? "colgroup" : null }, group))),
        h("tr", {}, columns.map(head))),
      h("tbody", {}, pinned.map((row) => line(row, "pinned")), sorted.slice(0, most).map((row) => line(row, ""))),
      !rows.length && h("tfoot", {}, h("tr", {}, h("td", { colspan: columns.length, class: "label" }, "Nothing fits.")))));
}
