// Which part of the page is shown.

const VIEWS = { overview: ["Overview", overview], systems: ["Systems", systemsView], pairs: ["Pairs", pairsView], figures: ["Figures", figuresView], dialogues: ["Dialogues", dialoguesView] };

function currentView() {
  const asked = state.get("view", state.get("dialogue") !== "" ? "dialogues" : "overview");
  return asked in VIEWS ? asked : "overview";
}

// Brings the chosen system into view in its list, when it is another one than before; the page itself stays where it is.
let marked = "";
function showMarked() {
  const list = document.getElementById("scroll-list"), row = list && list.querySelector("tr.marked");
  const now = row ? row.querySelector("button").id : "";
  if (now && now !== marked) {
    const head = list.querySelector("thead").offsetHeight, top = row.offsetTop - head, bottom = row.offsetTop + row.offsetHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
  }
  marked = now;
}

let shownView = "";
function show() {
  const view = currentView();
  const main = document.getElementById("main");
  const moved = view !== shownView;
  shownView = view;
  keepPlace(() => {
    document.getElementById("nav").replaceChildren(...Object.entries(VIEWS).map(([name, [label]]) =>
      h("a", { href: state.link({ view: name, filter: "" }), id: `nav-${name}`, "aria-current": name === view ? "page" : null }, label)));
    main.replaceChildren(...[VIEWS[view][1]()].flat(Infinity).filter(Boolean));
  });
  document.title = `${VIEWS[view][0]}: ${D.title}`;
  for (const node of document.querySelectorAll("[data-scroll=end]")) node.scrollTop = node.scrollHeight;
  if (moved) window.scrollTo(0, 0);
  showMarked();
}

document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input:not([type=checkbox]), select, textarea");
  if (D && !field && !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey && currentView() === "dialogues" && event.key.startsWith("Arrow") && browserKey(event)) event.preventDefault();
});

const started = performance.now();
readData().then(() => {
  show();
  addEventListener("hashchange", () => {
    // A plain anchor of the page, such as the skip link, is no state.
    if (location.hash === "#main") return;
    show();
  });
  document.documentElement.dataset.ready = Math.round(performance.now() - started);
}).catch((error) => {
  document.getElementById("main").replaceChildren(h("p", { role: "alert" }, `This page’s data cannot be read. ${error.message}`));
  throw error;
});
