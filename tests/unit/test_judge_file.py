"""A user's own file, judged: read as `comperdial score` reads it, through the same ledger as everything else."""

import json
import shlex

import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.cli import main
from comperdial.config.registry import completed
from comperdial.judges.files import file_task
from comperdial.judges.ledger import Ledger
from comperdial.judges.tasks import family_of, read_judging, signature
from faultserver import KEY, FaultServer, completion
from minijudging import count_requests

RECORDS = [
    {
        "response": "I swim in the sea every day!",
        "reference": "I love the sea.",
        "history": ["Hello, who are you?", "I am a sailor.", "Do you like the sea?"],
        "facts": ["i swim.", "i sail."],
    },
    {"response": "Well. Yes.", "history": ["Do you like tea?"], "facts": []},
]


@pytest.fixture
def params(tmp_path, root):
    """Return a params.yaml with the repository's judges and variants, and a ledger of its own."""
    content = completed(yaml.safe_load((root / "params.yaml").read_text()))
    content["judging"]["ledger"] = str(tmp_path / "ledger")
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def judging(params):
    content = yaml.safe_load(params.read_text())
    return read_judging(content["judges"], content["judging"])


def write(path, records):
    if path.suffix == ".csv":
        cells = [{k: v if isinstance(v, str) else json.dumps(v) for k, v in r.items()} for r in records]
        pd.DataFrame(cells).to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def mine(tmp_path):
    return write(tmp_path / "mine.jsonl", RECORDS)


@pytest.fixture
def command(params, tmp_path):
    def arguments(file, variant="cpds-d", judge="rules", *more):
        given = ["--variant", variant, "--judge", judge, "--params", params, "--output", tmp_path / "scores.csv"]
        return [str(argument) for argument in ["judge", "file", file, *given, *more]]

    return arguments


def prompts(judging, name="mine", variant="cpds-d"):
    """Return what the judge was sent."""
    task = file_task(judging, variant, "rules")
    frame = Ledger(judging.ledger).answers(name, family_of(judging, task)).frame()
    return [json.loads(messages)[0]["content"] for messages in frame["messages"]]


def test_a_file_is_judged_and_the_run_reported(command, mine, judging, tmp_path, capsys):
    assert main([*command(mine), "--judgements", str(tmp_path / "why.parquet")]) == 0
    assert "cpds-d_rules: 2 judged, 0 of them from the ledger; 2 new answers for 2 calls" in capsys.readouterr().out
    scores = schema.read(tmp_path / "scores.csv", "scores")
    assert set(scores["metric"]) == {"cpds-d_rules"} and set(scores["dataset"]) == {"mine"}
    assert scores["item_id"].tolist() == ["1", "2"] and set(scores["system_id"]) == {"system"}
    assert scores["value"].between(1, 5).all()
    assert set(scores["signature"]) == {signature(judging, file_task(judging, "cpds-d", "rules"))}
    why = schema.read(tmp_path / "why.parquet", "judgements")
    assert why["value"].tolist() == pytest.approx(scores["value"].tolist()) and why["rationale"].notna().all()


def test_a_csv_is_judged_like_jsonl(command, mine, tmp_path):
    other = write(tmp_path / "other.csv", RECORDS)
    values = []
    for file in (mine, other):
        assert main(command(file, "cpds-s")) == 0
        scores = schema.read(tmp_path / "scores.csv", "scores")
        values.append(scores.set_index(["item_id", "output"])["value"].to_dict())
    assert values[0] == values[1] and len(values[0]) == 12


def test_a_second_run_asks_nothing(command, mine, tmp_path, monkeypatch, capsys):
    assert main(command(mine)) == 0
    first, asked = (tmp_path / "scores.csv").read_bytes(), count_requests(monkeypatch)
    assert main(command(mine)) == 0 and not asked
    # Nor does one where the answers are in Parquet alone, as DVC keeps them.
    capsys.readouterr()
    assert main(["ledger", "export", "--ledger", str(tmp_path / "ledger")]) == 0
    assert capsys.readouterr().out.endswith(": 2 answers\n")
    (tmp_path / "ledger/ledger.sqlite").unlink()
    assert main(command(mine)) == 0 and not asked
    assert "2 judged, 2 of them from the ledger" in capsys.readouterr().out
    assert (tmp_path / "scores.csv").read_bytes() == first


def test_another_ledger_knows_nothing_of_the_first(command, mine, tmp_path, capsys):
    assert main(command(mine)) == 0
    assert main([*command(mine), "--ledger", str(tmp_path / "elsewhere")]) == 0
    assert "2 judged, 0 of them from the ledger" in capsys.readouterr().out.splitlines()[-2]
    assert (tmp_path / "elsewhere/ledger.sqlite").is_file()


def test_texts_have_speakers_that_take_turns_and_the_last_is_a(command, mine, judging):
    assert main(command(mine)) == 0
    long, short = sorted(prompts(judging), key=len, reverse=True)
    said = ["A: Hello, who are you?", "B: I am a sailor.", "A: Do you like the sea?"]
    assert "\n".join(said) in long and "- i swim.\n- i sail." in long
    assert "A: Do you like tea?" in short.splitlines() and "(none)" in short.splitlines()


def test_speakers_that_the_file_names_are_kept(command, judging, tmp_path):
    history = [{"speaker": "Ann", "text": "Hi."}, {"speaker": "Bob", "text": "Hello."}]
    assert main(command(write(tmp_path / "mine.jsonl", [{"response": "Yes.", "history": history}]))) == 0
    assert "Ann: Hi.\nBob: Hello." in prompts(judging)[0]


def test_the_columns_dataset_context_and_system_name_the_item(command, judging, tmp_path):
    names = {"dataset": "known", "context_id": "c7", "system_id": "s"}
    assert main(command(write(tmp_path / "a file.jsonl", [RECORDS[0] | names]))) == 0
    scores = schema.read(tmp_path / "scores.csv", "scores")
    assert scores[["dataset", "item_id", "system_id"]].to_numpy().tolist() == [["known", "c7", "s"]]
    assert len(prompts(judging, "known")) == 1


def test_a_record_without_reference_is_not_judged_and_counted(command, mine, tmp_path, capsys):
    assert main(command(mine, "cpds-d-ref")) == 0
    assert "cpds-d-ref_rules: 1 of 2 responses scored, 1 not judged: no reference; scores: " in capsys.readouterr().out
    assert schema.read(tmp_path / "scores.csv", "scores")["item_id"].tolist() == ["1"]


@pytest.mark.parametrize(
    ("records", "variant", "message"),
    [
        ([{"answer": "x"}], "cpds-d", "no column 'response'; expected response: the text to score"),
        ([{"response": "x", "histroy": []}], "cpds-d", "unknown column 'histroy'"),
        ([{"response": "x", "facts": ["y"]}], "cpds-d", "no column 'history'; expected one: the prompt cpds_detail"),
        ([{"response": "x", "history": ["y"]}], "cpds-s-ref", "no column 'references'"),
        ([{"response": "x", "history": ["y", " "]}], "cpds-d", "record 1: one of its history is ' '"),
        ([{"response": "x", "history": [{"text": "y"}]}], "cpds-d", "{'text': 'y'}; expected a text that is not empty"),
        ([{"response": "x", "history": ["y"], "reference": [7]}], "cpds-d", "record 1: one of its references is 7"),
        ([{"response": "x", "history": ["y"], "dataset": d} for d in "ab"], "cpds-d", "2 data sets, among them 'a'"),
        (RECORDS, "cpds", "--variant: unknown variant 'cpds'"),
        (RECORDS, "cpds-dial", "'cpds-dial' rates whole dialogues, and a file holds single responses; expected"),
    ],
)
def test_faults_are_named_before_anything_is_asked(command, tmp_path, capsys, records, variant, message):
    assert main(command(write(tmp_path / "mine.jsonl", records), variant)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "ledger").exists() and not (tmp_path / "scores.csv").exists()


@pytest.mark.parametrize("name", ["my file.jsonl", "größe.jsonl", "a|b.jsonl"])
def test_a_file_name_that_cannot_name_a_data_set(command, tmp_path, capsys, name):
    assert main(command(write(tmp_path / name, RECORDS))) == 1
    error = capsys.readouterr().err
    assert name in error and "cannot name a data set in the ledger" in error and "column 'dataset'" in error


def test_an_unknown_judge_and_a_place_that_is_no_table(command, mine, tmp_path, capsys):
    assert main(command(mine, "cpds-d", "ruls")) == 1
    assert "--judge: unknown judge 'ruls'" in capsys.readouterr().err
    assert main([*command(mine), "--judgements", str(tmp_path / "why.txt")]) == 1
    assert "why.txt: unknown kind of file" in capsys.readouterr().err and not (tmp_path / "ledger").exists()


@pytest.fixture
def own(mine, tmp_path, monkeypatch):
    """Return what has the file judged by a server of one's own, in a folder without params.yaml."""
    monkeypatch.chdir(tmp_path)

    def run(url, *more, model="Qwen/Qwen2.5:7b", variant="cpds-d"):
        given = ["--base-url", url, "--model", model, "--variant", variant, "--output", "scores.csv"]
        return main(["judge", "file", mine.name, *given, *map(str, more)])

    return run


def answering(text):
    return FaultServer(script=lambda number, body: completion(b"", text))


def test_the_recipe_of_the_docs_runs_as_it_stands(root, mine, tmp_path, monkeypatch, capsys):
    """Without params.yaml, without an entry for the judge, and with the address of a server that is there."""
    monkeypatch.chdir(tmp_path)
    page = (root / "docs/judges.md").read_text()
    block = page.partition("```bash\n")[2].partition("```")[0].replace("\\\n", "")
    commands = [line for line in block.splitlines() if line.startswith("comperdial")]
    ratings = [{"context_id": str(n), "system_id": "system", "rating": rating} for n, rating in ((1, 5), (2, 2))]
    write(tmp_path / "ratings.csv", ratings)
    with FaultServer(script=lambda number, body: completion(b"", "45"["Well." in str(body)])) as server:
        assert commands and "http://localhost:8000/v1" in commands[0]
        for line in commands:
            words = shlex.split(line.replace("http://localhost:8000/v1", server.url), comments=True)
            assert main(words[1:]) == 0, line
        assert {body["model"] for body in server.bodies} == {"Qwen/Qwen2.5-7B-Instruct"}
    out = capsys.readouterr().out
    assert "6 judged, 0 of them from the ledger" in out and "2 of 2 responses scored; scores: scores.csv" in out
    assert set(schema.read("scores.csv", "scores")["metric"]) == {"cpds-d_qwen-qwen2.5-7b-instruct"}


def test_a_server_and_its_model_never_share_answers_with_another(own, capsys):
    with answering("2") as one, answering("4") as other:
        for url, options, asked in (
            (one.url, {}, 6),
            (one.url + "/", {}, 0),
            (other.url, {}, 6),
            (other.url, {"model": "qwen/qwen2.5-7b"}, 6),
            (other.url, {}, 0),
        ):
            before = one.requests + other.requests
            assert own(url, "--name", "same", **options) == 0
            assert one.requests + other.requests - before == asked, (url, options)
            score = 4 if url == other.url else 2
            assert schema.read("scores.csv", "scores")["value"].tolist() == [score, score]


def test_options_reach_the_server_and_the_key_nothing_else(own, tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_KEY", KEY)
    with answering("3") as server:
        assert own(server.url, "--temperature", 0.2, "--max-tokens", 9, "--key", "LAB_KEY", "--name", "mine.1") == 0
        assert server.bodies[0] | {"messages": []} == {
            "messages": [], "model": "Qwen/Qwen2.5:7b", "temperature": 0.2, "max_tokens": 9,
        }  # fmt: skip
        assert f"Bearer {KEY}" in server.headers[0]
    assert set(schema.read("scores.csv", "scores")["metric"]) == {"cpds-d_mine.1"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_what_failed_is_counted(own, capsys):
    with FaultServer(script=lambda n, body: completion(b"", "Never." if "Well." in str(body) else "3")) as server:
        assert own(server.url) == 0
        assert "1 of 2 responses scored, 1 failed: no answer could be read" in capsys.readouterr().out
        asked = server.requests
        assert own(server.url) == 0
    assert "6 judged, 6 of them from the ledger; 0 new answers for 0 calls" in capsys.readouterr().out
    assert server.requests == asked


def test_a_refused_request_is_kept_as_such_until_it_is_to_be_asked_again(own, capsys):
    def script(number, body):
        refused = "Well." in str(body) and number <= 6
        return (400, b'{"error": {"message": "a bad word"}}') if refused else completion(b"", "3")

    with FaultServer(script=script) as server:
        for more, requests, scored in (((), 6, "1 of 2"), ((), 6, "1 of 2"), (("--retry-refused",), 9, "2 of 2")):
            assert own(server.url, *more) == 0
            assert server.requests == requests and f"{scored} responses scored" in capsys.readouterr().out


def test_a_server_that_refuses_everything_leaves_nothing_in_the_ledger(own, capsys):
    with FaultServer(script=lambda number, body: (400, b'{"error": {"message": "no"}}')) as server:
        assert own(server.url) == 1 and server.requests == 6
        assert "6 judgements are missing" in capsys.readouterr().err
        assert own(server.url) == 1 and server.requests == 12
        assert own(server.url, "--accept-refused") == 1 and server.requests == 18
        assert own(server.url) == 1 and server.requests == 18


def test_a_server_elsewhere_is_asked_when_it_is_free_or_has_a_price(own, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("comperdial.judges.services.openai.is_loopback", lambda url: False)
    free = "if it is free, say so (`--free` on the command line, `free: true` in params.yaml)"
    with answering("3") as server:
        for more, problem in (((), "the budget is 0"), (("--budget", 1), "the price of Qwen/Qwen2.5:7b is not known")):
            assert own(server.url, *more) == 1
            error = capsys.readouterr().err
            assert problem in error and free in error and "a price of Qwen/Qwen2.5:7b in data/prices.yaml" in error
        assert server.requests == 0 and not (tmp_path / "scores.csv").exists()
        assert own(server.url, "--free") == 0
        (tmp_path / "data/prices.yaml").write_text("priced: [{from: 2024-01-25, input: 1, output: 1, source: list}]\n")
        assert own(server.url, "--budget", 1, model="priced") == 0


def test_a_judge_that_costs_money_is_asked_within_a_budget_only_and_the_ledger_is_used_without(
    own, command, mine, params, tmp_path, capsys
):
    """A server on this machine too, where that is said."""
    content = yaml.safe_load(params.read_text())
    with answering("3") as server:

        def ask(free):
            content["judges"]["gateway"] = {"service": "openai", "model": "m", "base_url": server.url, "free": free}
            params.write_text(yaml.safe_dump(content))
            return main(command(mine, "cpds-d", "gateway"))

        assert own(server.url, "--no-free") == 1
        assert "costs money, and the budget is 0" in capsys.readouterr().err
        assert ask(free=False) == 1
        error = capsys.readouterr().err
        assert "6 judgements are missing, the first: 1, system, sample 0" in error
        assert "m costs money, and the budget is 0" in error and "--budget" in error
        assert server.requests == 0 and not (tmp_path / "scores.csv").exists()
        assert ask(free=True) == 0 and server.requests == 6
        capsys.readouterr()
        assert ask(free=False) == 0 and server.requests == 6
    assert "nothing was asked: m costs money, and the budget is 0" in capsys.readouterr().out
    assert schema.read(tmp_path / "scores.csv", "scores")["value"].tolist() == [3, 3]


@pytest.mark.parametrize(
    ("url", "more", "message"),
    [
        (
            "localhost:8000/v1",
            (),
            "--base-url: base_url is not a valid URL; expected one such as http://localhost:8000/v1",
        ),
        ("http://[::1/v1", (), "--base-url: base_url is not a valid URL"),
        ("http://me:secret@localhost:8000/v1", (), "--base-url: base_url has a user, a query or a fragment"),
        ("http://localhost:8000/v1", ("--name", "My Judge"), "--name: 'My Judge' cannot name a judge; expected lower"),
        ("http://localhost:8000/v1", ("--name", "rules"), "--name: 'rules' is a judge of params.yaml"),
        ("http://localhost:8000/v1", ("--key", "sk-12345678"), "--key: got a text that is not shown"),
        ("http://localhost:8000/v1", ("--key", "NOT_SET"), "the environment variable NOT_SET is not set"),
        ("http://localhost:8000/v1", ("--params", "none.yaml"), "none.yaml"),
    ],
)
def test_what_is_wrong_about_a_server_is_one_line(own, tmp_path, capsys, url, more, message):
    assert own(url, *more) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and "secret" not in error and "sk-1234" not in error
    assert not (tmp_path / "data").exists()


def test_a_server_that_does_not_answer_and_one_without_v1(own, capsys):
    assert own("http://127.0.0.1:1/v1") == 1
    error = capsys.readouterr().err
    assert "http://127.0.0.1:1/v1 cannot be reached" in error and "Is the server running, and" in error
    with FaultServer(script=lambda number, body: (404, b'{"detail": "Not Found"}')) as server:
        root = server.url.removesuffix("/v1")
        assert own(root) == 1
    error = capsys.readouterr().err
    assert f"{root}: status 404: Not Found" in error and f"is it {root}/v1?" in error and error.count("\n") == 1


def test_options_of_a_server_do_not_go_with_a_judge_of_params(command, mine, capsys):
    assert main(command(mine, "cpds-d", "rules", "--temperature", "0")) == 1
    assert "--temperature: given with --judge; expected --model" in capsys.readouterr().err


# --- answers that are not whole, and what servers say ----------------------------------------------------------------


def reply(text="Overall: 4", finish="stop", tokens=700, written=4, **more):
    """Return the body of a chat completion; ``more`` goes into its message."""
    message = {"role": "assistant", "content": text, **more}
    usage = {"prompt_tokens": tokens, "completion_tokens": written}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"model": "m-1", "choices": [choice], "usage": usage}).encode()


@pytest.mark.parametrize(
    ("finish", "why"),
    [
        ("length", "cut by the token limit"),
        ("max_tokens", "cut by the token limit"),
        ("MAX_TOKENS", "cut by the token limit"),
        ("FinishReason.MAX_TOKENS", "cut by the token limit"),
        ("model_length", "cut by the token limit"),
        ("content_filter", "withheld by the service"),
        ("SAFETY", "withheld by the service"),
        ("error", "broken off by the service"),
    ],
)
def test_an_answer_that_is_not_whole_is_asked_again_and_counted(own, capsys, finish, why):
    """Once for each sample of the first response; the second one's never are whole."""

    def script(number, body):
        whole = "Well." not in str(body) and number > 6
        return reply("Overall: 4" if whole else "Overall: 5 But wait,", "stop" if whole else finish)

    with FaultServer(script=script) as server:
        assert own(server.url, "--concurrency", 6, "--judgements", "why.csv") == 0
        assert server.requests == 3 * 2 + 3 * 4
        out = capsys.readouterr().out
        assert f"15 new answers without a rating (15 x {why}); 3 judgements have none" in out
        assert (
            f"1 of 2 responses scored, 1 failed: no answer could be read, judgements without a rating: 3 x {why}" in out
        )
        assert schema.read("scores.csv", "scores")["value"].tolist() == [4]
        made = schema.read("why.csv", "judgements")
        assert made["tries"].tolist() == [2] * 3 + [4] * 3 and made["failure"].tolist()[3:] == [why] * 3
        # The ledger holds them; nothing is asked again.
        assert own(server.url) == 0 and server.requests == 18
        assert f"judgements without a rating: 3 x {why}" in capsys.readouterr().out


def test_a_server_that_does_not_say_why_an_answer_ended(own, capsys):
    """One as long as it may be was cut."""
    with FaultServer(script=lambda n, body: reply("4", None, written=9 if "Well." in str(body) else 8)) as server:
        assert own(server.url, "--max-tokens", 9) == 0
    assert "judgements without a rating: 3 x cut by the token limit" in capsys.readouterr().out


def test_where_all_answers_are_cut_the_error_names_the_limit(own, capsys):
    with FaultServer(script=lambda number, body: reply("Hmm, Overall: 5 or", "length")) as server:
        assert own(server.url) == 1
    error = capsys.readouterr().err
    assert "none of 6 answers can be read, most of them for this reason: cut by the token limit" in error
    assert "--max-tokens, --parameter" in error


@pytest.mark.parametrize(
    "answer",
    [
        reply(None),
        reply(None, "tool_calls", tool_calls=[{"id": "t", "type": "function"}]),
        reply(None, reasoning_content="Overall: 5 at first sight."),
        reply(None, refusal="I will not give it a 5.\nOverall: 5"),
        reply([]),
    ],
)
def test_an_answer_without_content_stops_no_other(own, capsys, answer):
    with FaultServer(script=lambda number, body: answer if "Well." in str(body) else reply()) as server:
        assert own(server.url) == 0
        assert server.requests == 3 + 3 * 4
    out = capsys.readouterr().out
    assert "15 calls" in out and "sent again" not in out and "1 of 2 responses scored, 1 failed" in out
    assert schema.read("scores.csv", "scores")["value"].tolist() == [4]


def test_each_sample_and_each_fresh_one_has_a_seed_of_its_own(own, tmp_path):
    """And the first one that which is given."""
    with FaultServer(script=lambda n, body: reply("4" if body["seed"] in (40, 41, 45) else "x")) as server:
        assert own(server.url, "--parameter", "seed=40") == 0
        seeds = sorted(body["seed"] for body in server.bodies if "Well." in str(body))
        assert seeds == [40, 41, 42, 45]
    scores = schema.read("scores.csv", "scores")
    assert "|seed:40|" in scores["signature"][0] and "|seeds:seed + sample|" in scores["signature"][0]


def test_any_parameter_reaches_the_server(own, capsys):
    given = ["max_completion_tokens=4000", "reasoning_effort=low", 'stop=["\\n\\n"]', "top_p=0.5"]
    with answering("3") as server:
        assert own(server.url, *(word for text in given for word in ("--parameter", text))) == 0
        assert {name: value for name, value in server.bodies[0].items() if name not in ("messages", "model")} == {
            "max_completion_tokens": 4000, "reasoning_effort": "low", "stop": ["\n\n"], "top_p": 0.5,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--parameter", "max_tokens=9", "--max-tokens", "8"), "--parameter: max_tokens is given twice"),
        (("--parameter", "top_p=1", "--parameter", "top_p=1"), "--parameter: top_p is given twice"),
        (
            ("--parameter", "max_completion_tokens=9", "--max-tokens", "8"),
            "max_tokens and max_completion_tokens; expected",
        ),
        (("--parameter", "api_key=abc"), "'api_key' looks like a secret"),
        (("--parameter", "n=3"), "parameter 'n' of a judge cannot be set"),
    ],
)
def test_parameters_that_cannot_be(own, capsys, more, message):
    with answering("3") as server:
        assert own(server.url, *more) == 1
        assert server.requests == 0
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["max_tokens", "=4", "max_tokens=", "max_tokens=many", "max_completion_tokens=0", "a b=1"]
)
def test_what_is_no_parameter(own, capsys, text):
    with pytest.raises(SystemExit):
        own("http://localhost:8000/v1", "--parameter", text)
    assert "argument --parameter: " in capsys.readouterr().err


def test_a_prompt_that_the_server_cut_is_warned_of_once(own, mine, tmp_path, capfd, caplog):
    long = ["We walked along the river, and nobody spoke of it. " * 400]
    write(mine, [{"response": text, "history": long} for text in ("Yes.", "No.")])
    for tokens, warnings in ((2048, 1), (5100, 0), (0, 0)):
        caplog.clear()
        with FaultServer(script=lambda number, body, tokens=tokens: reply(tokens=tokens)) as server:
            assert own(server.url) == 0
        found = [record.getMessage() for record in caplog.records if "may have cut the prompt" in record.getMessage()]
        assert len(found) == warnings
        if found:
            assert (
                "the server counts 2048 tokens of a prompt of about " in found[0]
                and "OLLAMA_CONTEXT_LENGTH" in found[0]
            )
            assert 4800 < int(found[0].partition("prompt of about ")[2].partition(";")[0]) < 6000
            assert "6 answers to prompts that the server may have cut" in capfd.readouterr().out
            # Nor are they silent when they come from the ledger.
            assert own(server.url) == 0 and server.requests == 6
            assert "6 answers to prompts that the server may have cut" in capfd.readouterr().out


@pytest.mark.parametrize("where", ["model", "error", "answer"])
def test_what_a_server_says_reaches_no_terminal_raw(own, capfd, caplog, where):
    """A title of the window, colours, and a mark that turns the direction of the text."""
    wild = "m\x1b]0;owned\x07\x1b[31m\u202ered\x9b1m"

    def script(number, body):
        if where == "error":
            return (400, json.dumps({"error": {"message": wild}}).encode())
        if where == "answer" and "Well." in str(body):
            return reply(f"Overall: 1 {wild} 2")
        content = json.loads(reply())
        return json.dumps(content | {"model": f"{wild}{number}" if where == "model" else "m"}).encode()

    with FaultServer(script=script) as server:
        assert own(server.url, "--concurrency", 1) == (1 if where == "error" else 0)
    out, err = capfd.readouterr()
    shown = "".join([out, err, *(record.getMessage() for record in caplog.records)])
    assert not set("\x1b\x07\x9b\u202e") & set(shown)
    # Ratings are read without them.
    assert ("]0;owned" if where == "answer" else "\\x1b]0;owned") in shown


@pytest.mark.parametrize(("budget", "shown"), [(0.004, "$0.004"), (0.00003, "$0.00003"), (0.5, "$0.50")])
def test_a_budget_below_a_cent_is_shown_in_full(own, tmp_path, capsys, budget, shown):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/prices.yaml").write_text("dear: [{from: 2024-01-25, input: 9000, output: 9000, source: list}]\n")
    with answering("3") as server:
        assert own(server.url, "--no-free", "--budget", budget, model="dear") == 1
        assert server.requests == 0
    assert f"$0.0000 of the budget of {shown} is spent, and one more call can cost $" in capsys.readouterr().err
