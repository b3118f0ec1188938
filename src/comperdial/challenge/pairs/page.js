// One annotator's page. Texts are only ever set as text, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const FORMAT = "comperdial votes 1";
const KEY = `comperdial ${data.design} ${data.annotator}`;
const $ = (id) => document.getElementById(id);
const CHOICES = data.ties ? ["left", "right", "tie"] : ["left", "right"];

// What is kept: the votes so far, in the order of the tasks, and what is entered for the next one.
let state = empty();
let since = performance.now();
// While a vote is written: the next pair is shown once it is kept.
let busy = false;

function empty() {
  return { format: FORMAT, design: data.design, annotator: data.annotator, votes: [], draft: draft() };
}
function draft() {
  return { choice: null, reason: "", seconds: 0 };
}

// Nothing that is not a state of this page becomes one: a file may be another's, or damaged.
function problemOf(found) {
  if (found === null || typeof found !== "object" || found.format !== FORMAT || !Array.isArray(found.votes)) {
    return "That is no file of answers of this page.";
  }
  if (found.design !== data.design) return "That file belongs to another study.";
  if (found.annotator !== data.annotator) return `That file is of ${found.annotator}, this page is for ${data.annotator}.`;
  const right = found.votes.every((vote, i) => i < data.tasks.length && vote !== null && typeof vote === "object"
    && vote.item === data.tasks[i].item && CHOICES.includes(vote.choice)
    && typeof vote.reason === "string" && Number.isFinite(vote.seconds));
  return right ? null : "That file is damaged.";
}
function taken(found) {
  const kept = found.draft ?? {};
  return { ...empty(), votes: found.votes, draft: {
    choice: CHOICES.includes(kept.choice) ? kept.choice : null,
    reason: typeof kept.reason === "string" ? kept.reason : "",
    seconds: Number.isFinite(kept.seconds) ? kept.seconds : 0,
  } };
}

// Not localStorage: a browser may write that seconds later, and loses what was entered since when it is killed.
let store = null;
function openStore() {
  return new Promise((resolve) => {
    const request = indexedDB.open("comperdial", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("answers");
    request.onsuccess = () => { store = request.result; resolve(); };
    request.onerror = resolve;
  });
}
function restore() {
  return new Promise((resolve) => {
    const request = store.transaction("answers").objectStore("answers").get(KEY);
    request.onerror = resolve;
    request.onsuccess = () => {
      const found = request.result ?? null;
      if (found !== null && problemOf(found) === null) state = taken(found);
      resolve();
    };
  });
}
// Resolves once what was entered is on the disk, or cannot be.
function keep() {
  count();
  return new Promise((resolve) => {
    const fail = () => { lost(); resolve(); };
    try {
      const writing = store.transaction("answers", "readwrite", { durability: "strict" });
      writing.oncomplete = resolve;
      writing.onabort = fail;
      writing.objectStore("answers").put(state, KEY);
    } catch {
      fail();
    }
  });
}
function lost() {
  tell("This browser keeps nothing. Save your answers as a file before you close the page.");
}
// Time counts only while the page is in view.
function count() {
  const now = performance.now();
  if (document.visibilityState === "visible" && state.votes.length < data.tasks.length) {
    state.draft.seconds += (now - since) / 1000;
  }
  since = now;
}
function tell(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
}

function utterances(place, said) {
  place.replaceChildren(...said.map(([isJudged, text]) => {
    const line = document.createElement("p");
    line.className = isJudged ? "utterance judged" : "utterance partner";
    const who = document.createElement("span");
    who.className = "who";
    who.textContent = !isJudged ? "Partner" : place.id === "left" ? "Speaker 1" : "Speaker 2";
    line.append(who, document.createTextNode(text));
    return line;
  }));
}
function show() {
  const at = state.votes.length;
  const task = data.tasks[at];
  $("progress").max = data.tasks.length;
  $("progress").value = at;
  $("count").textContent = `${at} of ${data.tasks.length}`;
  for (const id of ["main", "vote"]) $(id).hidden = !task;
  $("end").hidden = Boolean(task);
  if (!task) return;
  utterances($("left"), task.left);
  utterances($("right"), task.right);
  $("reason").value = state.draft.reason;
  $("back").disabled = at === 0;
  press();
  window.scrollTo(0, 0);
}
function press() {
  for (const button of $("choices").children) {
    button.setAttribute("aria-pressed", String(button.dataset.choice === state.draft.choice));
  }
  $("next").disabled = state.draft.choice === null;
}
function choose(choice) {
  if (busy) return;
  state.draft.choice = choice;
  press();
  keep();
  $("reason").focus({ preventScroll: true });
}
async function confirmVote() {
  if (busy || state.draft.choice === null || state.votes.length >= data.tasks.length) return;
  count();
  const { choice, reason, seconds } = state.draft;
  const item = data.tasks[state.votes.length].item;
  state.votes.push({ item, choice, reason: reason.trim(), seconds: Math.round(seconds * 10) / 10 });
  state.draft = draft();
  busy = true;
  tell("");
  await keep();
  busy = false;
  $("guidelines").open = false;
  document.activeElement?.blur();
  show();
}
function back() {
  if (busy || !state.votes.length) return;
  count();
  const { choice, reason, seconds } = state.votes.pop();
  state.draft = { choice, reason, seconds };
  keep();
  show();
}
function saveFile() {
  keep();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(state, null, 1) + "\n"], { type: "application/json" }));
  link.download = `${data.annotator}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
async function loadFile(file) {
  let found = null;
  try {
    found = JSON.parse(await file.text());
  } catch {
    tell("That file is damaged.");
    return;
  }
  const problem = problemOf(found);
  if (problem !== null) {
    tell(problem);
  } else if (found.votes.length < state.votes.length) {
    tell(`That file has ${found.votes.length} answers and this page ${state.votes.length}: nothing was changed.`);
  } else {
    state = taken(found);
    since = performance.now();
    keep();
    tell(`${found.votes.length} answers taken from the file.`);
    show();
  }
}

for (const choice of CHOICES) {
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.choice = choice;
  button.textContent = choice === "tie" ? "No difference" : data.question[choice];
  button.addEventListener("click", () => choose(choice));
  $("choices").append(button);
}
for (const text of data.guidelines) {
  const line = document.createElement("p");
  line.textContent = text;
  $("guidelines").append(line);
}
$("question").textContent = data.question.text;
$("tie-key").hidden = !data.ties;
$("file").textContent = `${data.annotator}.json`;
$("reason").addEventListener("input", () => { if (busy) return; state.draft.reason = $("reason").value; keep(); });
$("vote").addEventListener("submit", (event) => { event.preventDefault(); confirmVote(); });
$("back").addEventListener("click", back);
$("again").addEventListener("click", back);
$("save").addEventListener("click", saveFile);
$("load").addEventListener("change", (event) => {
  if (event.target.files.length) loadFile(event.target.files[0]);
  event.target.value = "";
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || $("vote").hidden) return;
  const typing = event.target === $("reason");
  const choices = { 1: "left", ArrowLeft: "left", 2: "right", ArrowRight: "right", 0: "tie" };
  if (event.key === "Escape" && typing) {
    $("reason").blur();
  } else if (event.key === "Enter" && !event.shiftKey && (typing || event.target === document.body)) {
    event.preventDefault();
    // A key that is held down must not run through the tasks.
    if (!event.repeat) confirmVote();
  } else if (!typing && !event.repeat && CHOICES.includes(choices[event.key])) {
    event.preventDefault();
    choose(choices[event.key]);
  }
});
document.addEventListener("visibilitychange", async () => {
  if (document.visibilityState === "visible") {
    // The same page may have been filled in further in another tab.
    since = performance.now();
    if (store) await restore();
    show();
  } else {
    state.draft.seconds += (performance.now() - since) / 1000;
    since = performance.now();
    keep();
  }
});

(async () => {
  try {
    await openStore();
    await restore();
  } catch {
    lost();
  }
  $("guidelines").open = !state.votes.length;
  since = performance.now();
  show();
  document.body.dataset.ready = "true";
})();
