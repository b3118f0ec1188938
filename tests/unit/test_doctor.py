import importlib.metadata

import pytest

from comperdial.cli import main


def test_doctor_lists_what_is_installed_and_how_to_get_the_rest(capsys, monkeypatch):
    monkeypatch.setattr("comperdial.core.versions.installed", lambda package: "absent" if package == "torch" else "1.0")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert f"comperdial {importlib.metadata.version('comperdial')}" in shown
    assert "not installed: torch\n  to install: pip install 'comperdial[neural]'" in shown
    assert "keys in the environment: OPENAI_API_KEY" in shown
    assert "secret" not in shown
    assert "f1, bleu" in shown


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("torch", "pip install 'comperdial[neural]'"),
        ("openai.types", "pip install 'comperdial[judge]'"),
        ("sklearn.linear_model", "pip install 'comperdial[workflow]'"),
        ("xyz", "pip install xyz"),
    ],
)
def test_a_missing_package_is_one_line_that_installs_it(module, command, capsys, monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("comperdial.metrics.named.read_entries", missing)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == f"comperdial: error: not installed: {module}; expected {command}\n"
