"""The Kubernetes profile without a cluster: requests to a server that imitates one."""

import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kubernetes_validate
import pytest
import yaml

from comperdial.data.sources import MIRROR_VARIABLE

pytest.importorskip("snakemake_executor_plugin_kubernetes", reason="the extra `cluster` is not installed")
pytestmark = pytest.mark.ci

JOBS = "/apis/batch/v1/namespaces/default/jobs"
TARGET = "results/usr_persona/scores/f1.parquet"


class Answers(BaseHTTPRequestHandler):
    """Take a job's specification, run its command here, and say how it ended."""

    def log_message(self, *_):
        pass

    def answer(self, body):
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        if self.path == JOBS:
            (container,) = body["spec"]["template"]["spec"]["containers"]
            command = [*container["command"], *container["args"]]
            done = subprocess.run(
                command, cwd=self.server.empty, capture_output=True, text=True, env=self.server.variables
            )
            self.server.ended[body["metadata"]["name"]] = done
        self.answer(body)

    def do_GET(self):
        name = self.path.removeprefix(f"{JOBS}/").removesuffix("/status")
        if done := self.server.ended.get(name):
            self.answer({"status": {"succeeded": int(done.returncode == 0), "failed": int(done.returncode != 0)}})
        else:
            self.answer({"items": []})

    def do_DELETE(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answer({})


@pytest.fixture
def server(fresh, tmp_path):
    """Return a server that imitates a cluster's, with the environment that names it to snakemake."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as found:
        found.asked, found.ended = [], {}
        # A pod starts in an empty folder.
        found.empty = tmp_path / "empty"
        found.empty.mkdir()
        path = f"{fresh.path / 'src'}{os.pathsep}{fresh.path / 'profiles/kubernetes/plugin'}"
        inherited = {name: value for name, value in os.environ.items() if name != MIRROR_VARIABLE}
        found.variables = inherited | {"PYTHONPATH": path, "COMPERDIAL_MODELS": str(tmp_path / "models")}
        entry = {"server": f"http://127.0.0.1:{found.server_address[1]}"}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "here", "users": [{"name": "me", "user": {}}],
            "clusters": [{"name": "here", "cluster": entry}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        }  # fmt: skip
        (tmp_path / "kube.yaml").write_text(yaml.safe_dump(config))
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def run(workdir, server, *options, **variables):
    profile = ("--workflow-profile", "profiles/kubernetes", "--cores", "2", "--latency-wait", "5")
    environment = server.variables | {"KUBECONFIG": str(workdir.path.parent / "kube.yaml")} | variables
    done = subprocess.run(
        ["snakemake", *profile, *options], cwd=workdir.path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout + done.stderr


def jobs(server):
    return [body for path, body in server.asked if path == JOBS]


def valid(kind, version, body):
    """Check a body against the API's schema: every field is known, has its type, and is there if required."""
    kubernetes_validate.validate({"apiVersion": version, "kind": kind, **body}, "1.32", strict=True)


def test_dry_run_does_not_contact_the_cluster(fresh, server):
    assert "This was a dry-run" in run(fresh, server, "--dry-run", TARGET)
    assert server.asked == []


def test_jobs_run_in_shared_folder_with_profile_resources(fresh, server):
    (fresh.path / "params.yaml").write_text((fresh.path / "params.yaml").read_text() + "shards: {default: 2}\n")
    options = ("--envvars", "OPENAI_API_KEY", "--set-resources", "score_part:gpu=1", "score_part:mem_mb=800")
    text = run(fresh, server, TARGET, *options, OPENAI_API_KEY="the key")
    assert (fresh.path / TARGET).is_file(), text[-4000:]
    assert list(server.empty.iterdir()) == []
    asked = jobs(server)
    # The tables, each part, what merges them.
    assert len(asked) == 4
    for body in asked:
        valid("Job", "batch/v1", body)
        pod = body["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert f"cd {fresh.path}" in container["args"][1]
        assert {"name": "comperdial", "mountPath": "/comperdial"} in container["volumeMounts"]
        assert {"name": "comperdial", "persistentVolumeClaim": {"claimName": "comperdial"}} in pod["volumes"]
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", body["metadata"]["name"])
        (variable,) = container["env"]
        assert variable["name"] == "OPENAI_API_KEY"
        assert "the key" not in json.dumps(body)
    scores = next(body for body in asked if "score_part:" in json.dumps(body))
    resources = scores["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == "1"
    assert resources["limits"]["memory"] == resources["requests"]["memory"] == "800M"
    (secret,) = [body for path, body in server.asked if path.endswith("/secrets")]
    valid("Secret", "v1", secret)


def test_driver_manifest_is_valid(root):
    manifests = list(yaml.safe_load_all((root / "profiles/kubernetes/driver.yaml").read_text()))
    for manifest in manifests:
        kubernetes_validate.validate(manifest, "1.32", strict=True)
    # The image and the claim are the profile's.
    profile = yaml.safe_load((root / "profiles/kubernetes/config.yaml").read_text())
    (pod,) = [manifest["spec"] for manifest in manifests if manifest["kind"] == "Pod"]
    assert pod["containers"][0]["image"] == profile["container-image"]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert profile["kubernetes-shared-persistent-volumes"] == [f"{mount['name']}:{mount['mountPath']}"]
