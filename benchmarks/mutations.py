"""Supports: the tests notice at least 28 of 30 one-line faults in stats, metrics, judges and evaluation.

`python benchmarks/mutations.py [NUMBER …]` makes each change in a copy of the package, runs the tests named next to it,
and prints which changes no test noticed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# File, old text, new text, and which of tests/unit should fail.
MUTATIONS = [
    ("stats/agreement", "(marginals.sum(axis=1) - 1) * observed", "marginals.sum(axis=1) * observed", "agreement"),
    ("stats/agreement", "- marginals / 2 if level", "- marginals if level", "agreement"),
    ("stats/alternative_test", "of_judge >= of_annotator, of", "of_judge > of_annotator, of", "agreement audit"),
    ("stats/bradley_terry", "self.first), 1 - self.won", "self.first), self.won", "preferences"),
    ("stats/chance_agreement", "prevalence * (1 - prevalence)", "prevalence * prevalence", "agreement audit"),
    ("stats/classification", "axis=-1) - downs / 2)", "axis=-1))", "continuity"),
    ("stats/corrected_means", "(1 + n / len(others))", "(1 + len(others) / n)", "agreement audit"),
    ("stats/multiple", "np.arange(len(order), 0, -1)", "len(order)", "comparison"),
    ("stats/pairs", "n**2 * (fewest - 1)", "n**2 * fewest", "pair_statistics"),
    ("stats/pairs", "pairs - 2 * counts)", "pairs - counts)", "pair_statistics"),
    ("stats/coefficients", "x.total**2 - x.squares", "x.total**2", "coefficients"),
    ("stats/win_rate", "np.minimum(won, n - won)", "won", "preferences"),
    ("metrics/bleu", "math.exp(1 - closest / length)", "math.exp(1 - length / closest)", "metrics fast_metrics"),
    ("metrics/bleu", "max(1, length - before)", "max(1, length)", "metrics fast_metrics"),
    ("metrics/_ngrams", "max(count, most.get(gram, 0))", "count", "metrics fast_metrics"),
    ("metrics/rouge", "recall + weight * precision", "precision + weight * recall", "metrics fast_metrics"),
    ("metrics/distinct", "len(set(pairs)), below", "len(pairs), below", "metrics fast_metrics"),
    ("metrics/embedding", "high >= -low, high", "high >= low, high", "model_metrics"),
    ("metrics/bertscore", "/ (1 - baseline[name])", "/ (1 + baseline[name])", "model_metrics"),
    ("metrics/density", "-gaussian.euclidean", "gaussian.euclidean", "density"),
    ("judges/prices", "(len(piece) - 1) // 8", "len(piece) // 4", "judges"),
    ("judges/prices", "input_tokens * self.input +", "output_tokens * self.input +", "judges"),
    ("judges/probabilities", "value * math.exp(log - top) / total", "value * math.exp(log - top)", "judges"),
    ("judges/parsing", "form.low <= value <= self.form.high", "form.low <= value", "judges_parsing"),
    ("judges/parsing", "if len(different) > 1:", "if len(different) > 2:", "judges_parsing"),
    ("evaluation/ratings", "(own - theirs).mean()", "(theirs - own).mean()", "ratings"),
    ("evaluation/ratios", "share(mine > least", "share(mine >= least", "perturbations llm_evaluators"),
    ("evaluation/ensembles", "values.mean(axis=0)", "values.sum(axis=0)", "llm_evaluators"),
    ("evaluation/ceilings", "np.delete(sample.single, number, axis=0)", "sample.single", "evaluation"),
    ("evaluation/correlations", "(counts < FEWEST_SYSTEMS)", "(counts <= FEWEST_SYSTEMS)", "evaluation"),
]


def survives(name: str, old: str, new: str, tests: str, source: Path) -> bool:
    """Return whether the tests pass with the change."""
    path = source / "comperdial" / f"{name}.py"
    text = path.read_text()
    if text.count(old) < 1:
        raise SystemExit(f"{name}: no {old!r}")
    path.write_text(text.replace(old, new, 1))
    try:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            *(f"tests/unit/test_{one}.py" for one in tests.split()),
        ]
        made = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(source)}, capture_output=True)
        if made.returncode not in (0, 1):
            raise SystemExit(made.stdout.decode()[-2000:])
        return made.returncode == 0
    finally:
        path.write_text(text)


def main() -> None:
    """Make the changes one by one."""
    chosen = [MUTATIONS[int(number) - 1] for number in sys.argv[1:]] or MUTATIONS
    caught = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        shutil.copytree(ROOT / "src" / "comperdial", source / "comperdial")
        for name, old, new, tests in chosen:
            missed = survives(name, old, new, tests, source)
            caught += not missed
            print(f"{'NOT NOTICED' if missed else 'noticed'}: {name}: {old} -> {new}", flush=True)
    print(f"{caught} of {len(chosen)} noticed")


if __name__ == "__main__":
    main()
