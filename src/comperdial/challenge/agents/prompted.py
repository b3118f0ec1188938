"""An agent of the API track: it asks for a language model's answers and hands them on."""

from __future__ import annotations

from comperdial.challenge.agent import ApiAgent, ApiTurn, Conversation
from comperdial.challenge.agents._base import NOTHING_TO_SAY, whole

_SYSTEM = (
    "You are chatting with a stranger whom you have just met. Answer as the person described below, in one or two "
    "short, casual sentences. Stay in character, react to what was said last, and do not list facts.\n\nAbout you:\n{}"
)
_REVISE = (
    "Rewrite your reply so that it fits the last message, agrees with everything above and sounds like a person. "
    "Return the reply alone."
)


class PromptedAgent(ApiAgent):
    """Send persona B and the history to a model, and return its text.

    The answers are random only as far as the model is; ``seed`` is there because every kind takes one.

    Parameters
    ----------
    window
        How many of the last utterances the model is shown; more is better, None is all.
    calls
        1, or 2 for a draft and its revision, which is better.
    max_generated_tokens
        Limit of each call; too low cuts sentences.
    """

    def __init__(
        self, *, window: int | None = None, calls: int = 1, max_generated_tokens: int = 60, seed: int = 0
    ) -> None:
        super().__init__(seed=whole(self, "seed", seed, least=0))
        self.window = None if window is None else whole(self, "window", window, least=1)
        self.calls = whole(self, "calls", calls, least=1, most=2)
        self.max_generated_tokens = whole(self, "max_generated_tokens", max_generated_tokens, least=1)
        self._made = 0

    def generate_responses(self, test_data: list[Conversation], api_responses: list[str] | None) -> ApiTurn:  # type: ignore[override]
        """Return the calls to make, then, with their answers, the final responses."""
        if api_responses is None:
            self._made = 0
            return self._ask([self._messages(conversation) for conversation in test_data])
        texts = [" ".join(text.split()) or NOTHING_TO_SAY for text in api_responses]
        if self._made < self.calls:
            drafts = zip(test_data, texts, strict=True)
            return self._ask([_revision(self._messages(conversation), draft) for conversation, draft in drafts])
        return {"use_api": False, "prompts": [], "max_generated_tokens": [], "final_responses": texts}

    def _ask(self, prompts: list[list[dict[str, str]]]) -> ApiTurn:
        self._made += 1
        limits = [self.max_generated_tokens] * len(prompts)
        return {"use_api": True, "prompts": prompts, "max_generated_tokens": limits, "final_responses": []}

    def _messages(self, conversation: Conversation) -> list[dict[str, str]]:
        """Return the persona as the system's message, then the history with A as the user."""
        about = "\n".join(f"- {sentence}" for sentence in conversation.get("persona B", []))
        history = conversation["dialogue"][-self.window :] if self.window else conversation["dialogue"]
        roles = {"A": "user", "B": "assistant"}
        return [{"role": "system", "content": _SYSTEM.format(about)}] + [
            {"role": roles[utterance["persona_id"]], "content": utterance["text"]} for utterance in history
        ]


def _revision(messages: list[dict[str, str]], draft: str) -> list[dict[str, str]]:
    return [*messages, {"role": "assistant", "content": draft}, {"role": "user", "content": _REVISE}]
