"""Studies: the tables and figures of papers. ``studies/NAME/study.yaml`` declares them; a module here has their functions."""

from pathlib import Path

from comperdial.config.studies import with_studies

__all__ = ["FOLDER", "with_studies"]

FOLDER = Path(__file__).parent
