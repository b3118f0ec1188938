"""The one place that talks to a server: what is sent, what each answer means, and that no key gets out."""

import asyncio
import gzip
import json
import logging
import math
import traceback

import pytest

import faultserver
from comperdial.core.errors import ConfigError
from comperdial.judges.base import JudgeError, Refused, Transient
from comperdial.judges.services.base import Connection
from comperdial.judges.services.openai import OpenAI
from faultserver import KEY, FaultServer, completion

MESSAGES = [{"role": "user", "content": "How humane is « this »?"}]


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOOPBACK_KEY", KEY)


def ask(service, parameters=None, messages=MESSAGES):
    async def once():
        async with service:
            return await service.complete(messages, parameters or {})

    return asyncio.run(once())


def against(plan, **options):
    """Ask a server that answers as planned."""
    with FaultServer(script=lambda *_: plan) as server:
        return ask(faultserver.service(server.url, key_variable="LOOPBACK_KEY", **options))


def body(**choice):
    choice = {"message": {"role": "assistant", "content": "5"}, "finish_reason": "stop"} | choice
    return json.dumps({"choices": [choice], "model": "m-1"}).encode()


def test_what_is_sent_and_what_comes_back():
    parameters = {"temperature": 0.7, "top_p": 1, "max_tokens": 20, "seed": 3}
    with FaultServer(script=lambda *_: None) as server:
        found = ask(faultserver.service(server.url, key_variable="LOOPBACK_KEY"), parameters)
        assert server.bodies == [{"model": "loopback", "messages": MESSAGES, **parameters}]
        assert f"authorization: bearer {KEY}" in server.headers[0].lower()
        assert server.headers[0].startswith("POST /v1/chat/completions ")
    assert found.text.startswith("Overall: ") or found.text.startswith("I would")
    assert (found.finish, found.model, found.input_tokens, found.output_tokens) == ("stop", "loopback-1", 700, 4)
    assert found.logprobs is None


def test_keys_of_another_service_stay_here(monkeypatch):
    """With an address of its own, a judge gets no key but the one it names, nor whose account it is."""
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "sk-of-openai-alone")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-of-openai-alone")
    with FaultServer(script=lambda *_: None) as server:
        ask(faultserver.service(server.url))
        assert "sk-of-openai-alone" not in server.headers[0]
        assert "openai-organization" not in server.headers[0].lower()


def test_openai_itself_needs_its_key(monkeypatch):
    service = OpenAI(Connection("openai", "gpt-4-turbo-2024-04-09"))
    assert service.base_url == "https://api.openai.com/v1"
    assert service.paid
    assert service.unavailable() == "the environment variable OPENAI_API_KEY is not set"
    with pytest.raises(JudgeError, match="OPENAI_API_KEY is not set"):
        ask(service)
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    assert service.unavailable() is None
    assert service.api_key == KEY
    assert OpenAI(Connection("openai", "")).unavailable() == "no model is named"
    named = Connection("openai", "m", base_url="https://example.org/v1", key_variable="NOT_SET")
    assert OpenAI(named).unavailable() == "the environment variable NOT_SET is not set"


@pytest.mark.parametrize(
    ("url", "paid"),
    [("http://localhost:11434/v1", False), ("http://[::1]:80/v1", False), ("https://api.example.org/v1", True)],
)
def test_what_answers_on_this_machine_is_not_paid(url, paid):
    assert OpenAI(Connection("openai", "m", base_url=url)).paid is paid


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "ftp://x/v1", "http://", "http://h:port/v1", "nonsense", "http://[::1/v1"]
)
def test_an_invalid_url(url):
    with pytest.raises(ConfigError, match="base_url is not a valid URL"):
        ask(faultserver.service(url))


def test_a_key_that_cannot_be_one(monkeypatch):
    monkeypatch.setenv("LOOPBACK_KEY", "two words")
    with pytest.raises(JudgeError, match="what LOOPBACK_KEY holds cannot be a key") as caught:
        ask(faultserver.service("http://127.0.0.1:1/v1", key_variable="LOOPBACK_KEY"))
    assert "two words" not in str(caught.value)


@pytest.mark.parametrize("name", ["n", "stream", "model", "messages"])
def test_parameters_that_are_not_a_judges_to_set(name):
    with pytest.raises(ConfigError, match=f"parameter '{name}' of a judge cannot be set"):
        ask(faultserver.service("http://127.0.0.1:1/v1"), {name: 2})


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (body(), "5"),
        (body(message={"content": ""}), ""),
        (body(message={"content": None, "refusal": "I cannot."}), "I cannot."),
        (body(message={"content": None}, finish_reason="length"), ""),
        (body(message={"content": None}, finish_reason="content_filter"), ""),
        (body(message={"content": None}), ""),
        (body(message={}), ""),
        (body(message={"content": None, "tool_calls": [{"id": "t"}]}, finish_reason="tool_calls"), ""),
        (body(message={"content": [{"type": "thinking", "thinking": "1"}, {"type": "text", "text": "5"}]}), "5"),
        (body(message={"content": "4 \ud83d"}), "4 \N{REPLACEMENT CHARACTER}"),
        (body(message={"content": "４ 🙂"}), "４ 🙂"),
    ],
)
def test_answers(answer, text):
    found = against(answer)
    assert found.text == text
    assert found.input_tokens is None
    assert found.model == "m-1"


@pytest.mark.parametrize(
    ("plan", "kind", "problem"),
    [
        ("not JSON", "invalid answer", "it is not JSON"),
        ("shape", "invalid answer", "no list of choices"),
        ("empty", "invalid answer", "it has no message"),
        (b"[1]", "invalid answer", "no list of choices"),
        (b"\xff\xfe", "invalid answer", "not JSON"),
        (completion(b"")[:-9], "invalid answer", "not JSON"),
        (b'{"error": {"message": "overloaded"}}', "invalid answer", "it says 'overloaded'"),
        (body(message={"content": {"text": "5"}}), "invalid answer", "no text"),
        (body(message="5"), "invalid answer", "no message"),
        ("cut", "cut", "connection was cut"),
        ("half", "cut", "connection was cut"),
        ("hang", "timed out", "no answer within 0.2 s"),
        # Bytes come all the time, but no end.
        ("drip", "timed out", "no answer within 0.2 s"),
    ],
)
def test_faults_for_which_there_may_be_a_charge(plan, kind, problem):
    with pytest.raises(Transient, match=problem) as caught:
        against(plan, timeout=0.2 if kind == "timed out" else 20)
    assert (caught.value.kind, caught.value.charged, caught.value.after) == (kind, True, None)


def used(**counts):
    return json.dumps({"choices": [{"message": {"content": "5"}}], "usage": counts}).encode()


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (b"[" * 200_000, "it is not JSON"),
        (b'{"choices": ' * 100_000, "it is not JSON"),
        (b'{"error": ' * 500 + b'"deep"' + b"}" * 500, "it says 'deep'"),
        (b'{"choices": [' + b"1" * 5000 + b"]}", "it is not JSON"),
        (used(prompt_tokens=10**30), "it counts 10000000000000000000… tokens"),
        (used(completion_tokens=1e300), "it counts 1e.300… tokens"),
        (b'{"choices": [{"message": {"content": "5"}}], "usage": {"prompt_tokens": 1e999}}', "it counts inf… tokens"),
        ((200, gzip.compress(b" " * 10_000_000), {"content-encoding": "gzip"}), "it is encoded .'gzip'."),
        ((500, gzip.compress(b" " * 10_000_000), {"content-encoding": "gzip"}), "it is encoded .'gzip'."),
        ((200, completion(b""), {"content-encoding": "gzip"}), "it is encoded .'gzip'."),
        ((200, b" " * (20 << 20)), "it has more than 16 MiB"),
        ((500, b" " * (20 << 20)), "it has more than 16 MiB"),
        ((400, b" " * (20 << 20)), "it has more than 16 MiB"),
    ],
)
def test_an_attack_is_an_invalid_answer_and_no_more(plan, problem):
    """One after the other, so that what follows shows that the service goes on."""
    with FaultServer(script=lambda number, _: plan if number == 1 else None) as server:

        async def twice():
            async with faultserver.service(server.url) as service:
                with pytest.raises(Transient, match=f"invalid answer: {problem}") as caught:
                    await service.complete(MESSAGES, {})
                assert (caught.value.kind, caught.value.charged) == ("invalid answer", True)
                return await service.complete(MESSAGES, {})

        assert asyncio.run(twice()).input_tokens == 700


@pytest.mark.parametrize(
    "counts",
    [{"prompt_tokens": -1, "completion_tokens": True}, {"prompt_tokens": "7", "completion_tokens": [7]}, {}, [], None],
)
def test_counts_that_are_none_are_unknown(counts):
    found = against(json.dumps({"choices": [{"message": {"content": "5"}}], "usage": counts}).encode())
    assert (found.text, found.input_tokens, found.output_tokens) == ("5", None, None)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_statuses_to_try_again_on(status):
    with pytest.raises(Transient, match=f"status {status}: busy") as caught:
        against((status, b'{"error": {"message": "busy"}}'))
    # What a gateway gave up may have been answered, and billed, behind it.
    assert (caught.value.kind, caught.value.charged, caught.value.after) == (str(status), status in (408, 502), None)


def test_a_server_that_is_not_there():
    with FaultServer() as server:
        url = server.url
    with pytest.raises(Transient, match=r"127\.0\.0\.1:.* cannot be reached") as caught:
        ask(faultserver.service(url))
    assert (caught.value.kind, caught.value.charged) == ("not reached", False)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_requests_that_are_refused(status):
    with pytest.raises(Refused, match=f"status {status}: too long") as caught:
        against((status, b'{"error": {"message": "too\\nlong"}}'))
    assert caught.value.kind == str(status)


def test_half_a_character_in_a_prompt():
    with pytest.raises(Refused, match="half of a character"):
        ask(faultserver.service("http://127.0.0.1:1/v1"), messages=[{"role": "user", "content": "\ud800"}])


@pytest.mark.parametrize(
    ("status", "error", "hint"),
    [
        (401, {"message": "no"}, "Is the key in LOOPBACK_KEY right?"),
        (403, {"message": "no"}, "Is the key in LOOPBACK_KEY right?"),
        (404, {"message": "no"}, "base_url and model right?"),
        (301, {"message": "no"}, "base_url and model right?"),
        (402, {"message": "no"}, "no quota left"),
        (429, {"message": "no", "code": "insufficient_quota"}, "no quota left"),
        (429, {"message": "no", "type": "insufficient_quota"}, "no quota left"),
        (400, {"message": "no", "code": "billing_hard_limit_reached"}, "no quota left"),
    ],
)
def test_errors_that_end_a_run(status, error, hint):
    with pytest.raises(JudgeError, match=f"status {status}: no") as caught:
        against((status, json.dumps({"error": error}).encode()))
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after": "0.5"}, 0.5, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25, 0.25),
        ({"retry-after": "-3"}, 0, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}, 1e9, 4e9),
        ({"retry-after": "soon"}, None, None),
        ({"retry-after": "nan"}, None, None),
    ],
)
def test_how_long_a_service_asks_to_wait(headers, low, high):
    with pytest.raises(Transient) as caught:
        against((429, b"{}", headers))
    after = caught.value.after
    assert after is None if low is None else low <= after <= high


def tokens(*places):
    """Return log probabilities of an answer's tokens; the first of each place is the answer's."""
    tops = [[{"token": token, "logprob": math.log(value)} for token, value in place] for place in places]
    return {"content": [{**top[0], "top_logprobs": top} for top in tops]}


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([[("4", 0.5), ("5", 0.2), ("4", 0.1)]], {"4": 0.6, "5": 0.2}),
        ([[("1", 0.9), ("9", 0.1)], [("0", 0.8), (".", 0.2)]], {"9": 0.1, "1 ": 0.9 * 0.2, "10": 0.9 * 0.8}),
        ([[("10", 0.3), ("1", 0.6)], [(" x", 1.0)]], {"10 ": 0.3, "1": 0.6}),
        ([[("Y", 0.7), ("NO", 0.3)], [("ES", 0.9), ("O", 0.1)], [("!", 1.0)]], {"NO": 0.3, "YO": 0.07, "YES ": 0.63}),
        ([[("4", 1.0)], [(" of", 0.9), ("/", 0.1)]], {"4 ": 1.0}),
    ],
)
def test_the_first_words_probabilities(places, expected):
    found = against(body(logprobs=tokens(*places))).logprobs
    assert {text: math.exp(log) for text, log in found.items()} == pytest.approx(expected)


def test_a_model_that_refuses_says_so_in_its_finish():
    found = against(body(message={"content": None, "refusal": "I give it a 5, and refuse."}))
    assert (found.text, found.finish) == ("I give it a 5, and refuse.", "refusal")


def test_the_first_tokens_probabilities():
    top = [{"token": " 4", "logprob": -0.1}, {"token": "5", "logprob": -2}, {"token": "x", "logprob": float("-inf")}]
    logprobs = {"content": [{"token": " 4", "logprob": -0.1, "top_logprobs": top}, {"token": ".", "top_logprobs": []}]}
    assert against(body(logprobs=logprobs)).logprobs == {" 4": -0.1, "5": -2.0}


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        {"content": None},
        {"content": [{"top_logprobs": [3]}]},
        {"content": [{"top_logprobs": [{"token": "5", "logprob": -(10**400)}]}]},
    ],
)
def test_probabilities_that_are_not_there(logprobs):
    assert against(body(logprobs=logprobs)).logprobs is None


ECHOES = [
    (status, b'{"error": {"message": "Bearer %s and sk-an-other.one are wrong"}}' % KEY.encode())
    for status in (400, 401, 429, 500)
]


@pytest.mark.parametrize("plan", [*ECHOES, (502, KEY.encode()), b'{"error": "%s"}' % KEY.encode()])
def test_no_error_holds_a_key(plan, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises((Transient, Refused, JudgeError)) as caught:
        against(plan)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
    assert "sk-an" not in shown
    assert KEY not in shown
    assert "[key]" in str(caught.value)


def test_a_key_of_any_form_is_hidden(monkeypatch):
    monkeypatch.setenv("LOOPBACK_KEY", "tok.en/of+another=form")
    with pytest.raises(JudgeError, match=r"status 401: wrong: \[key\]\.") as caught:
        against((401, b'{"detail": "wrong: tok.en\\/of+another=form."}'))
    assert "another" not in str(caught.value)


def test_no_answer_holds_the_key():
    """What comes back goes to the ledger, and the ledger to everybody."""
    choice = {"message": {"content": f"You are {KEY}: 5"}, "finish_reason": KEY}
    found = against(json.dumps({"choices": [choice], "model": KEY}).encode())
    assert (found.text, found.finish, found.model) == ("You are [key]: 5", "[key]", "[key]")


def test_nothing_is_logged_for_each_request(caplog):
    caplog.set_level(logging.INFO)
    with FaultServer() as server:
        ask(faultserver.service(server.url))
    assert not caplog.records
