// Which part of the page is shown.

const VIEWS = { overview: ["Overview", overview], systems: ["Systems", systemsView], pairs: ["Pairs", pairsView], figures: ["Figures", figuresView], dialogues: ["Dialogues", dialoguesView] };

// The controls are made anew with each view: whoever was typing goes on typing, and what was open or scrolled stays so.
function keepPlace(render) {
  const active = document.activeElement, caret = active?.type === "search" ? active.selectionStart : null;
  const places = [...document.querySelectorAll("[data-scroll]")].map((node) => [node.id, node.scrollLeft, node.scrollTop]);
  const opened = [...document.querySelectorAll("details[id][open]")].map((node) => node.id);
  render();
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  for (const [id, left, top] of places) document.getElementById(id)?.scrollTo(left, top);
  const again = active?.id && document.getElementById(active.id);
  if (again && again !== document.activeElement) {
    again.focus({ preventScroll: true });
    if (caret !== null) again.setSelectionRange(caret, caret);
  }
}

let shownView = "";
function show() {
  const view = state.pick("view", Object.keys(VIEWS), state.get("dialogue") === "" ? "overview" : "dialogues");
  const main = document.getElementById("main");
  keepPlace(() => {
    document.getElementById("nav").replaceChildren(...Object.entries(VIEWS).map(([name, [label]]) =>
      h("a", { href: state.link({ view: name, filter: "" }), id: `nav-${name}`, "aria-current": name === view ? "page" : null }, label)));
    main.replaceChildren(...[VIEWS[view][1]()].flat(Infinity).filter(Boolean));
  });
  document.title = `${VIEWS[view][0]}: ${D.title}`;
  const history = document.getElementById("history");
  if (history) history.scrollTop = history.scrollHeight;
  if (view !== shownView) window.scrollTo(0, 0);
  shownView = view;
}

const started = performance.now();
readData().then(() => {
  show();
  // A plain anchor of the page, such as the skip link, is no state.
  addEventListener("hashchange", () => location.hash === "#main" || show());
  document.documentElement.dataset.ready = Math.round(performance.now() - started);
}).catch((error) => {
  document.getElementById("main").replaceChildren(h("p", { role: "alert" }, `This page’s data cannot be read. ${error.message}`));
  throw error;
});
