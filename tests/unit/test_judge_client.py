"""The one place that talks to a service: what is sent, what each answer means, and that no key gets out."""

import asyncio
import json
import logging
import time
import traceback

import httpx2
import pytest
from comperdial.judges.client import Client, Connection, JudgeError, Refused, Transient

import faultserver
from comperdial.core.errors import ConfigError
from comperdial.judges.services.base import Service
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
        async with Client(service) as client:
            return await client.complete(messages, parameters or {})

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
        Client(service)
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
        Client(faultserver.service(url))


def test_a_key_that_cannot_be_one(monkeypatch):
    monkeypatch.setenv("LOOPBACK_KEY", "two words")
    with pytest.raises(JudgeError, match="what LOOPBACK_KEY holds cannot be a key") as caught:
        Client(faultserver.service("http://127.0.0.1:1/v1", key_variable="LOOPBACK_KEY"))
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
        (body(message={"content": None}), "invalid answer", "no text"),
        (body(message={"content": [{"type": "text", "text": "5"}]}), "invalid answer", "no text"),
        (body(message="5"), "invalid answer", "no message"),
        ("cut", "cut", "connection was cut"),
        ("half", "cut", "connection was cut"),
        ("hang", "timed out", "no answer within 0.2 s"),
    ],
)
def test_faults_for_which_there_may_be_a_charge(plan, kind, problem):
    with pytest.raises(Transient, match=problem) as caught:
        against(plan, timeout=0.2)
    assert (caught.value.kind, caught.value.charged, caught.value.after) == (kind, True, None)


def test_an_answer_that_drips_is_timed_out_too():
    class Drip(httpx2.AsyncByteStream):
        async def __aiter__(self):
            for _ in range(100):
                await asyncio.sleep(0.03)
                yield b" "

    class Dripping(Service):
        name = "dripping"

        def transport(self):
            return httpx2.MockTransport(lambda _: httpx2.Response(200, stream=Drip()))

    start = time.monotonic()
    with pytest.raises(Transient, match=r"no answer within 0\.2 s"):
        ask(Dripping(Connection("dripping", timeout=0.2)))
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_statuses_to_try_again_on(status):
    with pytest.raises(Transient, match=f"status {status}: busy") as caught:
        against((status, b'{"error": {"message": "busy"}}'))
    assert (caught.value.kind, caught.value.charged, caught.value.after) == (str(status), False, None)


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


def test_the_first_tokens_probabilities():
    top = [{"token": " 4", "logprob": -0.1}, {"token": "5", "logprob": -2}, {"token": "x", "logprob": float("-inf")}]
    logprobs = {"content": [{"token": " 4", "logprob": -0.1, "top_logprobs": top}, {"token": ".", "top_logprobs": []}]}
    assert against(body(logprobs=logprobs)).logprobs == {" 4": -0.1, "5": -2.0}


@pytest.mark.parametrize("logprobs", [None, [], {"content": None}, {"content": [{"top_logprobs": [3]}]}])
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


def test_in_process():
    """A service of ours is served through the same client; what identifies it is not sent, and nothing is timed."""
    seen = []

    class Local(Service):
        name = "local"

        def identity(self):
            return {"local": 3}

        def transport(self):
            def answer(request):
                seen.append(json.loads(request.content))
                return httpx2.Response(200, content=body())

            return httpx2.MockTransport(answer)

    assert ask(Local(Connection("local")), {"local": 3, "temperature": 0}).text == "5"
    assert seen == [{"model": "local", "messages": MESSAGES, "temperature": 0}]
    assert Local(Connection("local")).paid is False


def test_nothing_is_logged_for_each_request(caplog):
    caplog.set_level(logging.INFO)
    with FaultServer() as server:
        ask(faultserver.service(server.url))
    assert not caplog.records
