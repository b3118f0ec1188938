"""OpenAI's Batch API: the requests of a file, answered within a day at a lower price.

A batch is calls of the ledger under a name of ours. They are reserved, within the budget, before anything is sent, so
that a process that dies leaves the name: the next one asks the service whether it has a batch of that name, and takes
that up or frees the calls. Other services that speak the protocol, at an address of their own, may have it too.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self, TypeVar

import httpx2
import openai
import tenacity
from openai.types import Batch

from comperdial.core.errors import ConfigError
from comperdial.core.terminal import money
from comperdial.judges.ask import DRIFT, Limits, check_budget, look, seeded, too_many
from comperdial.judges.base import (
    FOR_GOOD,
    Answer,
    Completion,
    Family,
    JudgeError,
    Message,
    Parsed,
    Refused,
    Transient,
    key,
    refusal,
)
from comperdial.judges.ledger import Broke, Ledger, Submission, Writer
from comperdial.judges.prices import FREE, Price, most_input, most_output
from comperdial.judges.services.base import address
from comperdial.judges.services.openai import SPENT, OpenAI, read_codes, read_completion, read_error

log = logging.getLogger(__name__)

# What a file may hold: openai 3.52, `openai/resources/batches.py`, on `input_file_id`. All of one model [from memory].
MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
ENDPOINT: Final = "/v1/chat/completions"
# Seconds after which a batch that was made is on the service's list for certain [an assumption].
SETTLING = 30.0
UNKNOWN = "may be with the service; `comperdial judge batch submit` finds out"

# Under this name a batch says whose it is.
_TAG = "comperdial"
# Seconds. Files are large, and the service answers after it has read one.
_FILE_TIMEOUT = 600.0
# Answers may be longer than requests, with the probabilities of 20 tokens at each place.
_MOST_ANSWERED = 4 * MOST_BYTES
# The service's clock and ours may differ by so much.
_SLACK = 24 * 3600
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_NAMED = 3
# Answers that reach the disk together.
_GROUP = 1000

T = TypeVar("T")


class LaterError(JudgeError):
    """The service cannot be asked now; later it may."""


# --- the network -----------------------------------------------------------------------------------------------------


class BatchApi:
    """A service's Batch API; use it as an asynchronous context manager.

    What can be asked twice is asked again after a fault; a batch is created once, or not at all.
    """

    def __init__(self, service: OpenAI, limits: Limits | None = None) -> None:
        self._service = service
        self._limits = limits or Limits(attempts=6, backoff=1.0)

    async def __aenter__(self) -> Self:
        await self._service.__aenter__()
        self._api = self._service.client(_MOST_ANSWERED)
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self._service.__aexit__(*reason)

    async def upload(self, name: str, content: bytes) -> str:
        """Upload a file of requests; return the id that the service gives it."""
        file = (f"{name}.jsonl", content)
        files = self._api.files
        made = await self._again(lambda: files.create(file=file, purpose="batch", timeout=_FILE_TIMEOUT), "id")
        return made.id

    async def find(self, name: str, since: int) -> Batch | None:
        """Look for the batch that has this name of ours, made at this time or later."""

        async def call() -> Batch | None:
            pages = await self._api.batches.list(limit=100)
            # Nothing but a list says that a batch is not there.
            if not isinstance(getattr(pages, "data", None), list):
                raise _invalid("it is no list of batches")
            async for batch in pages:
                if isinstance(batch.metadata, dict) and batch.metadata.get(_TAG) == name:
                    return batch
                # The newest come first.
                if 0 < created(batch) < since - _SLACK:
                    return None
            return None

        return await self._again(call)

    async def create(self, name: str, file: str) -> Batch:
        """Make a batch of an uploaded file: once, as this is what costs money.

        Raises
        ------
        JudgeError, Refused
            When it is not made.
        Transient
            When nobody knows; :meth:`find` tells.
        """
        batches, metadata = self._api.batches, {_TAG: name}
        return await self._once(
            lambda: batches.create(input_file_id=file, endpoint=ENDPOINT, completion_window="24h", metadata=metadata),
            "id",
            "status",
        )

    async def retrieve(self, batch: str) -> Batch:
        """Ask how far a batch is."""
        return await self._again(lambda: self._api.batches.retrieve(batch), "id", "status")

    async def download(self, file: str) -> bytes:
        """Return a file's content."""
        return (await self._again(lambda: self._api.files.content(file, timeout=_FILE_TIMEOUT))).content

    async def _again(self, call: Callable[[], Awaitable[T]], *names: str) -> T:
        """Call until there is an answer that has these texts, or no hope of one."""
        limits, where = self._limits, address(self._service.base_url)

        def hopeful(error: BaseException) -> bool:
            return isinstance(error, Transient) and (error.after or 0.0) <= limits.patience

        def pause(state: tenacity.RetryCallState) -> float:
            fault = state.outcome.exception() if state.outcome else None
            return limits.pause(state.attempt_number) + (getattr(fault, "after", None) or 0.0)

        stop = tenacity.stop_after_attempt(limits.attempts)
        retry = tenacity.retry_if_exception(hopeful)
        try:
            return await tenacity.AsyncRetrying(retry=retry, stop=stop, wait=pause, reraise=True)(
                self._once, call, *names
            )
        except Refused as refused:
            raise JudgeError(str(refused), where=where) from None
        except Transient as fault:
            raise LaterError(str(fault), where=where, hint="Run the command again later") from None

    async def _once(self, call: Callable[[], Awaitable[T]], *names: str) -> T:
        clean = self._service.clean
        try:
            made = await call()
            # The openai client checks nothing.
            for name in names:
                if not getattr(made, name, None) or not isinstance(getattr(made, name), str):
                    raise _invalid(f"it has no {name}")
            return made
        except openai.APIConnectionError as error:
            raise self._service.lost(error) from None
        except openai.APIStatusError as error:
            self._service.fail(error)
        except httpx2.HTTPError as error:
            raise Transient("cut", clean(f"the connection was cut ({type(error).__name__}: {error})")) from None
        except (ValueError, openai.OpenAIError) as error:
            # The openai client lets it pass when a body is not the JSON that it says.
            raise _invalid(clean(f"{type(error).__name__}: {error}")) from None


def _invalid(reason: str) -> Transient:
    return Transient("invalid answer", f"invalid answer: {reason}")


def created(batch: Batch) -> int:
    """Return when a batch was made: seconds since 1970, UTC; 0 if the service does not say."""
    return batch.created_at if type(batch.created_at) is int else 0


# --- submit ----------------------------------------------------------------------------------------------------------


class _Request(NamedTuple):
    key: str
    messages: str
    sample: int
    worst: float
    line: bytes


def submit(
    service: OpenAI,
    ledger: Ledger,
    dataset: str,
    family: Family,
    variant: str,
    wanted: Iterable[str],
    *,
    read: Callable[[Completion], Parsed],
    samples: int = 1,
    stride: int | None = None,
    retries: int = 0,
    price: Price | None = None,
    budget: float | None = None,
    limits: Limits | None = None,
) -> Iterator[Submission]:
    """Have batches made of what the ledger lacks and nobody asks; yield each when it is made.

    Parameters
    ----------
    wanted
        Messages, encoded.
    read, samples, stride, retries
        As in :class:`~comperdial.judges.ask.Asker`: fresh samples are drawn for answers without a rating.
    price, budget
        As there. A batch that might pass the budget is not made.

    Raises
    ------
    ComperdialError
        When the budget does not suffice, or there is none for a service that costs money; when the service does not
        take the requests, or nobody knows whether it did.
    """
    if reason := service.unavailable():
        raise JudgeError(f"service {service.name!r} cannot answer: {reason}")
    price = price if service.paid else FREE
    if service.paid and not budget:
        raise ConfigError(f"{family.judge} costs money, and the budget is 0", expected="US dollars")
    if service.paid:
        check_budget(price, family.parameters, family.model)
    if price is not None and price.batch is None:
        raise ConfigError(f"no batch price is known for {family.model}", expected="`batch` in the price list, a share")
    with ledger.open(dataset, family, budget=budget if service.paid else None, paid=service.paid) as writer:
        lacking = _requests(service, writer, wanted, samples, stride or samples, retries, read, price)
        for part in _files(lacking):
            name = f"{dataset}_{family.judge}_{variant}_{secrets.token_hex(6)}"
            requests = [(request.key, request.messages, request.sample, request.worst) for request in part]
            (reserved,) = writer.transact([(writer.do_reserve, (name, variant, requests))])
            if isinstance(reserved, Broke):
                raise ConfigError(
                    f"{money(reserved.spent, 4)} of the budget of {money(reserved.limit)} is spent, or reserved by calls and "
                    f"batches that are under way, and this batch of {len(part):,} requests can cost "
                    f"{money(sum(request.worst for request in part), 4)}",
                    where=f"{dataset}, {family.judge}, {variant}",
                    expected="a higher budget (params.yaml, judging.budget, or --budget), or fewer requests",
                )
            if isinstance(reserved, Exception):
                raise reserved
            if reserved:
                lines = {request.key: request.line for request in part}
                content = b"".join(lines[name] for name in reserved)
                asyncio.run(_create(service, writer, name, content, limits))
                yield next(made for made in ledger.submissions() if made.name == name)


def _requests(
    service: OpenAI,
    writer: Writer,
    wanted: Iterable[str],
    samples: int,
    stride: int,
    retries: int,
    read: Callable[[Completion], Parsed],
    price: Price | None,
) -> Iterator[_Request]:
    """Yield what is to ask."""
    family, seen = writer.family, set[str]()
    parameters = {name: value for name, value in family.parameters.items() if name not in service.identity()}
    longest = most_output(parameters) or 0
    for messages, index in ((text, n) for text in wanted for n in range(samples)):
        known = look(writer, messages, index, stride, retries, read)
        sample = index + len(known.tries) * stride
        name = key(family.id, messages, sample)
        if not known.ended and name not in seen:
            seen.add(name)
            chat: list[Message] = json.loads(messages)
            worst = 0.0 if price in (None, FREE) else price.of(most_input(chat), longest, batch=True)
            body = service.body(chat, seeded(parameters, sample))
            line = {"custom_id": name, "method": "POST", "url": ENDPOINT, "body": body}
            # Halves of characters, which no file can hold, stay escaped.
            yield _Request(name, messages, sample, worst, json.dumps(line, separators=(",", ":")).encode() + b"\n")


def _files(requests: Iterable[_Request]) -> Iterator[list[_Request]]:
    """Yield requests, as many at a time as the service takes in one file."""
    part: list[_Request] = []
    size = 0
    for request in requests:
        if part and (len(part) >= MOST_REQUESTS or size + len(request.line) > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(request)
        size += len(request.line)
    if part:
        yield part


async def _create(service: OpenAI, writer: Writer, name: str, content: bytes, limits: Limits | None) -> None:
    """Have a batch made of calls that are reserved under its name."""
    try:
        async with BatchApi(service, limits) as api:
            file = await api.upload(name, content)
            # From now on nobody knows, unless the service is asked.
            writer.transact([(writer.do_note, (name, int(time.time()), None))])
            made = await api.create(name, file)
    except (JudgeError, Refused) as refused:
        writer.transact([(writer.do_end, (name,))])
        if isinstance(refused, JudgeError):
            raise
        raise JudgeError(str(refused), where=name) from None
    except Transient as fault:
        raise JudgeError(
            f"nobody knows whether the service made the batch: {fault}",
            where=name,
            hint="Submit again: the service is asked whether it has it, before anything else is asked",
        ) from None
    writer.transact([(writer.do_note, (name, created(made) or int(time.time()), made.id))])


def settle(
    service: OpenAI, ledger: Ledger, submission: Submission, *, limits: Limits | None = None
) -> Submission | None:
    """Find out about a batch that a process was about to have made: it is submitted, or it is not and forgotten.

    Returns
    -------
    Submission or None
        The batch, if the service has it; as it was, if its process is still at it.
    """
    with ledger.open(submission.dataset, submission.family, paid=service.paid) as writer:
        name = submission.name
        if writer.transact([(writer.do_adopt, (name,))]) == [True]:
            # What another process noted since counts.
            now = next(made for made in ledger.submissions() if made.name == name)
            found = None if now.tried is None else asyncio.run(_find(service, now, now.tried, limits))
            if found is None:
                writer.transact([(writer.do_end, (name,))])
            else:
                writer.transact([(writer.do_note, (name, created(found) or now.tried, found.id))])
    return next((made for made in ledger.submissions() if made.name == submission.name), None)


async def _find(service: OpenAI, submission: Submission, tried: int, limits: Limits | None) -> Batch | None:
    async with BatchApi(service, limits) as api:
        if (wait := min(tried + SETTLING - time.time(), SETTLING)) > 0:
            log.warning("%s: %d s until the service is asked whether it has this batch", submission.name, wait)
            await asyncio.sleep(wait)
        return await api.find(submission.name, tried)


# --- collect ---------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """How far a batch is, or what came of it.

    Attributes
    ----------
    submission, batch, problem
        As the ledger has it, what the service says (None: it was not asked), and what is wrong with it as a whole.
    collected
        Whether its answers are in the ledger; else only its status is known.
    answers, cost, models
        Answers that came, US dollars that new ones cost, and the model versions that they report.
    unparsed
        Answers that hold no rating: the next batch draws fresh samples for them.
    refused, suspicious
        Requests that the service refused for good, kept as such; and those that are not kept, because they are so many
        that something else must be wrong.
    failures, reasons
        Requests without an answer by the service's word for it (``batch_expired``, ``400``), and what it said first.
    missing
        Requests of which it says nothing.
    broken
        Lines of its files that cannot be read, and why.
    """

    submission: Submission
    batch: Batch | None = None
    problem: str = ""
    collected: bool = False
    answers: int = 0
    cost: float = 0.0
    models: set[str] = field(default_factory=set)
    unparsed: int = 0
    refused: int = 0
    suspicious: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    missing: int = 0
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        name, requests = self.submission.name, f"{self.submission.requests:,} requests"
        if self.batch is None:
            return f"{name}: {UNKNOWN}"
        if not self.collected:
            counts = self.batch.request_counts
            so_far = f", {counts.completed:,} of {requests} done" if counts else ""
            failed = f", {counts.failed:,} failed" if counts and counts.failed else ""
            return f"{name}: {self.batch.status}{so_far}{failed}"
        lines = [f"{name}: {self.batch.status}; {self.answers:,} of {requests} answered, {money(self.cost, 4)}"]
        if self.problem:
            lines.append(f"the service says: {self.problem}")
        why = "; ".join(text for kind, text in self.reasons.items() if kind in FOR_GOOD and text)
        for count, text, reason in (
            (self.unparsed, "answers without a rating", "the next batch asks again, as far as `retries` allows"),
            (self.refused, "refused for good", why),
            *((count, f"x {kind}", self.reasons.get(kind)) for kind, count in self.failures.most_common()),
            (self.missing, "of which it says nothing", None),
        ):
            if count:
                lines.append(f"{count:,} {text}" + (f": {reason}" if reason else ""))
        if self.failures or self.missing:
            lines.append("what has no answer can be submitted again")
        return "\n  ".join(lines)


class BrokenLineError(ValueError):
    """A line of results that cannot be read; says why."""


class Result(NamedTuple):
    """What came of one request: an answer and when it was made; or why there is none.

    ``kind`` is the service's word for it (``batch_expired``, ``400``), ``problem`` what else it says; ``refused`` says
    that the request's content may be the reason.
    """

    key: str
    completion: Completion | None = None
    created: int | None = None
    kind: str = ""
    problem: str = ""
    refused: bool = False


def read_result(line: str) -> Result:
    """Read a line of a batch's output or errors.

    Raises
    ------
    BrokenLineError
        When it does not say what came of a request.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise BrokenLineError("it is not JSON") from None
    name = found.get("custom_id") if isinstance(found, dict) else None
    if not isinstance(name, str):
        raise BrokenLineError("it has no custom_id")
    answer, error = found.get("response"), found.get("error")
    if isinstance(answer, dict) and answer.get("status_code") == 200:
        body = answer.get("body")
        try:
            completion = read_completion(json.dumps(body).encode())
        except Transient as fault:
            raise BrokenLineError(str(fault)) from None
        created = body.get("created") if isinstance(body, dict) else None
        return Result(name, completion, created if type(created) is int else None)
    if isinstance(answer, dict):
        kind, body = str(answer.get("status_code")), answer.get("body")
        refused = kind in FOR_GOOD and not read_codes(body) & SPENT
        return Result(name, kind=kind, problem=read_error(body) or "", refused=refused)
    if isinstance(error, dict):
        return Result(name, kind=str(error.get("code")), problem=read_error(error) or "")
    raise BrokenLineError("it has neither an answer nor an error")


def collect(
    service: OpenAI,
    ledger: Ledger,
    submission: Submission,
    *,
    read: Callable[[Completion], Parsed],
    price: Price | None = None,
    skip_broken: bool = False,
    accept_refused: bool = False,
    limits: Limits | None = None,
) -> Outcome:
    """Ask once how far a batch is; if it has ended, put its answers into the ledger.

    A batch with lines that cannot be read, or with fewer answers than the service says, stays: what the others say is
    kept, and it can be collected again. Requests that are refused for good are kept as such if the service answers
    others of their family, and those are few.

    Parameters
    ----------
    price
        Of the day when it was submitted.
    skip_broken
        Take lines that cannot be read for requests without an answer.
    accept_refused
        Keep refusals however many there are.

    Raises
    ------
    ComperdialError
        When the service cannot be asked, or the disk is full.
    """
    outcome, files = asyncio.run(_fetch(service, submission, limits))
    if outcome.batch is not None and outcome.batch.status in _ENDED:
        with ledger.open(submission.dataset, submission.family, paid=service.paid) as writer:
            outcome.collected = True
            _keep(service, writer, _results(service, files, outcome.broken), outcome, read, price, accept_refused)
            counts, found = outcome.batch.request_counts, outcome.answers + len(outcome.broken)
            if counts and type(counts.completed) is int and counts.completed > found:
                # They are paid for: to forget them now would be to ask, and to pay, again.
                outcome.broken.append(
                    f"{submission.name}: the service answered {counts.completed:,} requests, and its files hold {found:,}"
                )
            if skip_broken or not outcome.broken:
                writer.transact([(writer.do_end, (submission.name,))])
    return outcome


def progress(service: OpenAI, submission: Submission, *, limits: Limits | None = None) -> Outcome:
    """Ask once how far a batch is; nothing else happens."""
    return asyncio.run(_fetch(service, submission, limits, download=False))[0]


async def _fetch(
    service: OpenAI, submission: Submission, limits: Limits | None, *, download: bool = True
) -> tuple[Outcome, Mapping[str, bytes]]:
    """Return what the service says of a batch, and the files of one that has ended."""
    if submission.id is None:
        return Outcome(submission), {}
    async with BatchApi(service, limits) as api:
        batch = await api.retrieve(submission.id)
        names = [batch.output_file_id, batch.error_file_id] if download and batch.status in _ENDED else []
        problems = (batch.errors.data if batch.errors else None) or []
        said = dict.fromkeys(str(problem.message or problem.code) for problem in problems[:_NAMED])
        outcome = Outcome(submission, batch, service.clean("; ".join(said)))
        return outcome, {name: await api.download(name) for name in names if name}


def _results(service: OpenAI, files: Mapping[str, bytes], broken: list[str]) -> Iterator[tuple[str, Result]]:
    """Yield what files say of requests, and where; note lines that cannot be read."""
    for name, content in files.items():
        # Not text: a line may hold any character that Python takes for the end of one.
        for number, line in enumerate(content.split(b"\n"), start=1):
            where = f"{name}, line {number}"
            if not line.strip():
                continue
            try:
                yield where, read_result(service.without_key(line.decode()))
            except UnicodeDecodeError:
                broken.append(f"{where}: it is not JSON")
            except BrokenLineError as error:
                broken.append(f"{where}: {service.clean(str(error))}")


def _keep(
    service: OpenAI,
    writer: Writer,
    results: Iterator[tuple[str, Result]],
    outcome: Outcome,
    read: Callable[[Completion], Parsed],
    price: Price | None,
    accept_refused: bool,
) -> None:
    """Keep the answers of a batch, each instead of its call; count everything else."""
    batch, asked, versions = outcome.submission.name, writer.asked_in(outcome.submission.name), writer.models()
    answered = set[str]()
    failed: dict[str, str] = {}
    refused: dict[str, Answer] = {}
    while group := list(itertools.islice(results, _GROUP)):
        new: dict[str, tuple[str, Answer]] = {}
        for where, result in group:
            name, completion, request = result.key, result.completion, asked.get(result.key)
            if request is None:
                if name not in writer:
                    outcome.broken.append(f"{where}: {service.clean(name)!r:.60} is none of the batch's requests")
                elif completion is not None and name not in answered:
                    # Since an earlier look.
                    answered.add(name)
                    outcome.answers += 1
                continue
            messages, sample, worst = request
            if completion is None:
                failed[name], said = result.kind, service.clean(result.problem)
                outcome.reasons.setdefault(result.kind, said)
                if result.refused:
                    reason = f"status {result.kind}: {said}" if said else f"status {result.kind}"
                    refused[name] = refusal(messages, sample, reason, result.created)
            elif name not in answered:
                answered.add(name)
                cost = _cost(price if service.paid else FREE, completion, worst)
                # Nobody knows how long it took.
                new[name] = where, Answer(messages, sample, completion, cost, None, result.created)
        kept = writer.transact([(writer.do_collect, (batch, name, answer)) for name, (_, answer) in new.items()])
        for (name, (where, answer)), done in zip(new.items(), kept, strict=True):
            if isinstance(done, Exception):
                outcome.broken.append(f"{where}: {done}")
                answered.discard(name)
                continue
            outcome.answers += 1
            outcome.cost += (answer.cost or 0.0) if done else 0.0
            outcome.unparsed += read(answer.completion).failure is not None
            if answer.completion.model:
                outcome.models.add(answer.completion.model)
    if versions and (other := sorted(outcome.models - versions)):
        log.warning(DRIFT, writer.path, ", ".join(other), ", ".join(sorted(versions)))
    lost = [name for name in refused if name not in answered]
    # Where nothing at all was ever answered, or next to nothing, something else than the requests may be wrong.
    if not accept_refused and (not len(writer) or too_many(len(lost), outcome.submission.requests)):
        outcome.suspicious, lost = len(lost), []
    writer.transact([(writer.do_collect, (batch, name, refused[name])) for name in lost])
    outcome.refused = len(lost)
    outcome.failures.update(kind for name, kind in failed.items() if name not in {*answered, *lost})
    outcome.missing = len(asked.keys() - answered - failed.keys())


def _cost(price: Price | None, completion: Completion, worst: float) -> float:
    """Return what an answer cost; the most it can have cost, if the service does not count or the price is gone."""
    if price is FREE:
        return 0.0
    if price is None or completion.input_tokens is None or completion.output_tokens is None:
        return worst
    return price.of(completion.input_tokens, completion.output_tokens, batch=price.batch is not None)
