// Whether a judge may stand in for a rater: the audit of each judge that scored these responses.

function judgesView() {
  const part = ([title, sentences, reason]) => [h("h3", {}, title), reason ? h("p", { class: "hint" }, `Left out: ${reason}.`) : sentences.map((text) => h("p", {}, text))];
  const one = (audit, i) => h("details", { id: `audit-${i}`, open: i === 0 ? "" : null },
    h("summary", {}, `${audit.judge}, ${audit.dimension} of ${audit.level}s: ${audit.short}`), audit.sections.map(part));
  return section("judges", "Can these judges be trusted?",
    h("p", {}, `Each judge's labels and those of ${raters()}, by the alternative annotator test and beside it: no single number makes a verdict.`),
    D.audits.map(one));
}
