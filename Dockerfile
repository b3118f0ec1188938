# Untried: docker could not be run where this was written.
#   docker build --tag comperdial .
#   docker run --rm comperdial --help
#   docker run --rm --volume "$PWD:/data" --workdir /data comperdial compare mine.csv --metrics f1 chrf
#   docker run --rm --entrypoint make --volume comperdial-results:/comperdial/results comperdial reproduce
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /comperdial
COPY . .
# As for `make setup`: name PyTorch's CPU index here for an image without CUDA.
ARG TORCH=torch==2.13.0
# DVC wants a repository of git's; the history stays outside.
RUN git init --quiet && make setup PYTHON=python3 TORCH="$TORCH"
ENV PATH=/comperdial/.venv/bin:$PATH
ENTRYPOINT ["comperdial"]
CMD ["--help"]
