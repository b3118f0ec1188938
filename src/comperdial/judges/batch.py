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
from openai.types import Batch as BatchObject

from comperdial.core.errors import ConfigError
from comperdial.judges.ask import DRIFT, Limits, check_budget, look, too_many
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


@dataclass(frozen=True)
class Status:
    """What the service says of a batch.

    Attributes
    ----------
    id, status
        As the service names them.
    created
        When: seconds since 1970, UTC.
    output, errors
        Files of the answers and of the requests that failed; None where there are none.
    done, failed
        How many requests so far; None where the service does not say.
    problem
        What is wrong with the batch as a whole.
    """

    id: str
    status: str
    created: int
    output: str | None = None
    errors: str | None = None
    done: int | None = None
    failed: int | None = None
    problem: str | None = None

    @property
    def ended(self) -> bool:
        """Return whether nothing more will come."""
        return self.status in _ENDED


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

        async def call() -> str:
            file = (f"{name}.jsonl", content)
            made = await self._api.files.create(file=file, purpose="batch", timeout=_FILE_TIMEOUT)
            found = getattr(made, "id", None)
            if not isinstance(found, str) or not found:
                raise _invalid("the file that was uploaded has no id")
            return found

        return await self._again(call)

    async def find(self, name: str, since: int) -> Status | None:
        """Look for the batch that has this name of ours, made at this time or later."""

        async def call() -> Status | None:
            async for batch in self._api.batches.list(limit=100):
                made = self._read(batch)
                if isinstance(batch.metadata, dict) and batch.metadata.get(_TAG) == name:
                    return made
                # The newest come first.
                if made.created < since - _SLACK:
                    return None
            return None

        return await self._again(call)

    async def create(self, name: str, file: str) -> Status:
        """Make a batch of an uploaded file. This is what costs money.

        Raises
        ------
        JudgeError, Refused
            When it is not made.
        Transient
            When nobody knows; :meth:`find` tells.
        """

        async def call() -> Status:
            return self._read(
                await self._api.batches.create(
                    input_file_id=file,
                    endpoint=ENDPOINT,
                    completion_window="24h",
                    metadata={_TAG: name},
                )
            )

        return await self._once(call)

    async def retrieve(self, batch: str) -> Status:
        """Ask how far a batch is."""

        async def call() -> Status:
            return self._read(await self._api.batches.retrieve(batch))

        return await self._again(call)

    async def download(self, file: str) -> bytes:
        """Return a file's content."""

        async def call() -> bytes:
            return (await self._api.files.content(file, timeout=_FILE_TIMEOUT)).content

        return await self._again(call)

    def _read(self, batch: object) -> Status:
        if not isinstance(batch, BatchObject) or not all(
            isinstance(text, str) and text for text in (batch.id, batch.status)
        ):
            raise _invalid("it is no batch")
        counts = batch.request_counts
        problems = (batch.errors.data if batch.errors else None) or []
        said = "; ".join(dict.fromkeys(str(problem.message or problem.code) for problem in problems[:_NAMED]))
        return Status(
            id=batch.id,
            status=batch.status,
            created=batch.created_at if type(batch.created_at) is int else 0,
            output=batch.output_file_id or None,
            errors=batch.error_file_id or None,
            done=counts.completed if counts else None,
            failed=counts.failed if counts else None,
            problem=self._service.clean(said) or None,
        )

    async def _again(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call until there is an answer, or no hope of one."""
        limits, where = self._limits, address(self._service.base_url)

        def hopeful(error: BaseException) -> bool:
            return isinstance(error, Transient) and (error.after or 0.0) <= limits.patience

        def pause(state: tenacity.RetryCallState) -> float:
            fault = state.outcome.exception() if state.outcome else None
            return limits.pause(state.attempt_number) + (getattr(fault, "after", None) or 0.0)

        stop = tenacity.stop_after_attempt(limits.attempts)
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(hopeful), stop=stop, wait=pause, reraise=True
        )
        try:
            return await retrying(self._once, call)
        except Refused as refused:
            raise JudgeError(str(refused), where=where) from None
        except Transient as fault:
            raise LaterError(str(fault), where=where, hint="Run the command again later") from None

    async def _once(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call()
        except openai.APIConnectionError as error:
            raise self._service.lost(error) from None
        except openai.APIStatusError as error:
            self._service.fail(error)
        except httpx2.HTTPError as error:
            said = self._service.clean(f"the connection was cut ({type(error).__name__}: {error})")
            raise Transient("cut", said) from None
        except (ValueError, openai.OpenAIError) as error:
            # The openai client lets it pass when a body is not the JSON that it says.
            raise _invalid(self._service.clean(f"{type(error).__name__}: {error}")) from None


def _invalid(reason: str) -> Transient:
    return Transient("invalid answer", f"invalid answer: {reason}")


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
        lacking = _lacking(writer, wanted, samples, stride or samples, retries, read)
        for part in _files(_requests(service, family, lacking, price)):
            name = f"{dataset}_{family.judge}_{variant}_{secrets.token_hex(6)}"
            requests = [(request.key, request.messages, request.sample, request.worst) for request in part]
            (reserved,) = writer.transact([(writer.do_reserve, (name, variant, requests))])
            if isinstance(reserved, Broke):
                raise ConfigError(
                    f"${reserved.spent:,.4f} of the budget of ${reserved.limit:,.2f} is spent, or reserved by calls and "
                    f"batches that are under way, and this batch of {len(part):,} requests can cost "
                    f"${sum(request.worst for request in part):,.4f}",
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


def _lacking(
    writer: Writer,
    wanted: Iterable[str],
    samples: int,
    stride: int,
    retries: int,
    read: Callable[[Completion], Parsed],
) -> Iterator[tuple[str, str, int]]:
    """Yield key, messages and sample of what is to ask."""
    seen = set[str]()
    for messages in wanted:
        for index in range(samples):
            known = look(writer, messages, index, stride, retries, read)
            sample = index + len(known.tries) * stride
            name = key(writer.family.id, messages, sample)
            if not known.ended and name not in seen:
                seen.add(name)
                yield name, messages, sample


def _requests(
    service: OpenAI, family: Family, lacking: Iterable[tuple[str, str, int]], price: Price | None
) -> Iterator[_Request]:
    parameters = {name: value for name, value in family.parameters.items() if name not in service.identity()}
    longest = most_output(parameters) or 0
    for name, messages, sample in lacking:
        chat: list[Message] = json.loads(messages)
        worst = 0.0 if price in (None, FREE) else price.of(most_input(chat), longest, batch=True)
        body = service.body(chat, parameters)
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
    writer.transact([(writer.do_note, (name, made.created or int(time.time()), made.id))])


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
                writer.transact([(writer.do_note, (name, found.created or now.tried, found.id))])
    return next((made for made in ledger.submissions() if made.name == submission.name), None)


async def _find(service: OpenAI, submission: Submission, tried: int, limits: Limits | None) -> Status | None:
    async with BatchApi(service, limits) as api:
        if (wait := min(tried + SETTLING - time.time(), SETTLING)) > 0:
            log.warning("%s: %d s until the service is asked whether it has this batch", submission.name, wait)
            await asyncio.sleep(wait)
        return await api.find(submission.name, tried)


# --- collect ---------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came of a batch.

    Attributes
    ----------
    name, requests
        The batch's name of ours, and how many requests it had.
    status
        As the service names it.
    ended
        Whether nothing more will come.
    done, failed_so_far
        Requests, as the service counts them while it works; None where it does not.
    answers, known
        Answers that came; of these, those that the ledger had already.
    unparsed
        Answers that hold no rating: the next batch draws fresh samples for them.
    refused
        Requests that the service refused for good, kept as such: they are not asked again.
    suspicious
        Requests that it refused, and so many that something else must be wrong: nothing of it is kept.
    failures
        Requests without an answer, by the service's word for it: ``batch_expired``, ``400``, ….
    reasons
        To each such word what the service said first.
    missing
        Requests of which it says nothing.
    broken
        Lines of its files that nobody can read, and why.
    cost
        US dollars of the answers that are new.
    overcharged
        Answers that cost more than they could.
    models
        The model versions that it reports.
    problem
        What is wrong with the batch as a whole.
    """

    name: str
    requests: int
    status: str
    ended: bool = False
    done: int | None = None
    failed_so_far: int | None = None
    problem: str | None = None
    answers: int = 0
    known: int = 0
    unparsed: int = 0
    refused: int = 0
    suspicious: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    missing: int = 0
    broken: list[str] = field(default_factory=list)
    cost: float = 0.0
    overcharged: int = 0
    models: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        if not self.ended:
            so_far = f", {self.done:,} of {self.requests:,} requests done" if self.done is not None else ""
            failed = f", {self.failed_so_far:,} failed" if self.failed_so_far else ""
            return f"{self.name}: {self.status}{so_far}{failed}"
        lines = [
            f"{self.name}: {self.status}; {self.answers:,} of {self.requests:,} requests answered, ${self.cost:,.4f}"
        ]
        if self.problem:
            lines.append(f"the service says: {self.problem}")
        if self.known:
            lines.append(f"{self.known:,} of them the ledger had already")
        if self.overcharged:
            lines.append(f"{self.overcharged:,} answers cost more than the length that was asked for allows")
        if self.unparsed:
            lines.append(
                f"{self.unparsed:,} answers without a rating; the next batch asks again, as far as `retries` allows"
            )
        if self.refused:
            said = "; ".join(text for kind, text in self.reasons.items() if kind in FOR_GOOD and text)
            lines.append(f"{self.refused:,} refused for good" + (f": {said}" if said else ""))
        for kind, count in self.failures.most_common():
            lines.append(f"{count:,} x {kind}" + (f": {self.reasons[kind]}" if self.reasons.get(kind) else ""))
        if self.missing:
            lines.append(f"{self.missing:,} of which it says nothing")
        if self.failures or self.missing:
            lines.append("what has no answer can be submitted again")
        return "\n  ".join(lines)


class BrokenLineError(ValueError):
    """A line of results that cannot be read; says why."""


class Result(NamedTuple):
    """What came of one request.

    Attributes
    ----------
    key
        The request's key.
    completion
        The answer; None if there is none.
    created
        When it was made: seconds since 1970, UTC; None where it does not say.
    kind, problem
        Why there is no answer: in a word (``batch_expired``, ``400``), and as the service says it.
    refused
        Whether the request's content may be why.
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

    A batch with lines that cannot be read stays: what the others say is kept, and it can be collected again. Requests
    that are refused for good are kept as such if the service answers others of their family, and those are few.

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
    if submission.id is None:
        return progress(service, submission)
    status, files = asyncio.run(_fetch(service, submission.id, limits))
    outcome = _outcome(submission, status, ended=status.ended)
    if status.ended:
        with ledger.open(submission.dataset, submission.family, paid=service.paid) as writer:
            _keep(service, writer, _results(service, files, outcome.broken), outcome, read, price, accept_refused)
            if skip_broken or not outcome.broken:
                writer.transact([(writer.do_end, (submission.name,))])
    return outcome


def progress(service: OpenAI, submission: Submission, *, limits: Limits | None = None) -> Outcome:
    """Ask once how far a batch is; nothing else happens."""
    if submission.id is None:
        return Outcome(submission.name, submission.requests, UNKNOWN)
    status, _ = asyncio.run(_fetch(service, submission.id, limits, download=False))
    return _outcome(submission, status, ended=False)


def _outcome(submission: Submission, status: Status, *, ended: bool) -> Outcome:
    name, requests = submission.name, submission.requests
    return Outcome(name, requests, status.status, ended, status.done, status.failed, status.problem)


async def _fetch(
    service: OpenAI, batch: str, limits: Limits | None, *, download: bool = True
) -> tuple[Status, Mapping[str, bytes]]:
    """Return what the service says of a batch, and the files of one that has ended."""
    async with BatchApi(service, limits) as api:
        status = await api.retrieve(batch)
        names = {"output": status.output, "errors": status.errors} if status.ended and download else {}
        return status, {role: await api.download(file) for role, file in names.items() if file}


def _results(
    service: OpenAI, files: Mapping[str, bytes], broken: list[str]
) -> Iterator[tuple[Result, Callable[[str], None]]]:
    """Yield what files say of requests, each with what notes that it cannot be used; note lines that cannot be read."""
    for role, content in files.items():
        # Not text: a line may hold any character that Python takes for the end of one.
        for number, line in enumerate(content.split(b"\n"), start=1):

            def note(reason: str, where: str = f"{role}, line {number}", line: bytes = line) -> None:
                broken.append(f"{where}: {reason}: {service.clean(line[:200].decode(errors='replace'))!r:.80}")

            if not line.strip():
                continue
            try:
                yield read_result(service.without_key(line.decode())), note
            except UnicodeDecodeError:
                note("it is not JSON")
            except BrokenLineError as error:
                note(str(error))


def _keep(
    service: OpenAI,
    writer: Writer,
    results: Iterator[tuple[Result, Callable[[str], None]]],
    outcome: Outcome,
    read: Callable[[Completion], Parsed],
    price: Price | None,
    accept_refused: bool,
) -> None:
    """Keep the answers of a batch, each instead of its call; count everything else."""
    asked = writer.asked_in(outcome.name)
    versions = writer.models()
    answered = set[str]()
    failed: dict[str, str] = {}
    refused: dict[str, Answer] = {}
    price = price if service.paid else FREE
    while group := list(itertools.islice(results, _GROUP)):
        new: list[tuple[Answer, Callable[[str], None]]] = []
        for result, note in group:
            request = asked.get(result.key)
            if request is None and result.key not in writer:
                note(f"{result.key!r:.60} is none of the batch's requests")
            elif result.completion is None:
                failed[result.key], said = result.kind, service.clean(result.problem)
                outcome.reasons.setdefault(result.kind, said)
                if result.refused and request:
                    reason = f"status {result.kind}: {said}" if said else f"status {result.kind}"
                    refused[result.key] = refusal(*request[:2], reason, result.created)
            elif result.key not in answered:
                answered.add(result.key)
                if request is None:
                    outcome.answers, outcome.known = outcome.answers + 1, outcome.known + 1
                else:
                    messages, sample, worst = request
                    cost = _cost(price, result.completion, worst)
                    outcome.overcharged += cost > worst * (1 + 1e-9)
                    # Nobody knows how long it took.
                    new.append((Answer(messages, sample, result.completion, cost, None, result.created), note))
        operations = [(writer.do_collect, (outcome.name, _key(writer, answer), answer)) for answer, _ in new]
        for (answer, note), kept in zip(new, writer.transact(operations), strict=True):
            if isinstance(kept, Exception):
                note(str(kept))
                answered.discard(_key(writer, answer))
                continue
            outcome.answers += 1
            outcome.known += not kept
            outcome.cost += (answer.cost or 0.0) if kept else 0.0
            outcome.unparsed += read(answer.completion).failure is not None
            if answer.completion.model:
                outcome.models[answer.completion.model] += 1
    if versions and (other := sorted(outcome.models.keys() - versions)):
        log.warning(DRIFT, writer.path, ", ".join(other), ", ".join(sorted(versions)))
    lost = [name for name in refused if name not in answered]
    # Where nothing at all was ever answered, or next to nothing, something else than the requests may be wrong.
    if not accept_refused and (not len(writer) or too_many(len(lost), outcome.requests)):
        outcome.suspicious, lost = len(lost), []
    writer.transact([(writer.do_collect, (outcome.name, name, refused[name])) for name in lost])
    outcome.refused = len(lost)
    outcome.failures.update(kind for name, kind in failed.items() if name not in {*answered, *lost})
    outcome.missing = len(asked.keys() - answered - failed.keys())


def _key(writer: Writer, answer: Answer) -> str:
    return key(writer.family.id, answer.messages, answer.sample)


def _cost(price: Price | None, completion: Completion, worst: float) -> float:
    """Return what an answer cost; the most it can have cost, if the service does not count or the price is gone."""
    if price is FREE:
        return 0.0
    if price is None or completion.input_tokens is None or completion.output_tokens is None:
        return worst
    return price.of(completion.input_tokens, completion.output_tokens, batch=price.batch is not None)
