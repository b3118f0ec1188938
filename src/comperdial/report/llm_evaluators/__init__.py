"""Tables and figures of the study of LLMs as dialogue evaluators: ours beside what Zhang et al. 2024 report."""
