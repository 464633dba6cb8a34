"""What every handler for flags must do, of uphold itself or of a plug-in.

Subclass `HandlerContract` and provide a fixture `handler`; and `params` if it takes any: some that
it accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from uphold.core.orders import Refusal
from uphold.inbox.flags import Flag
from uphold.inbox.handlers import HANDLERS, find_handler
from uphold.plugins import Handler, fault_of_handler
from uphold.wire.wishes import names_in, read_wish, wish_view

WORKER = "watcher"
ODD: tuple[object, ...] = (
    None,
    True,
    -1,
    10**18,
    1.5,
    "",
    "x" * 60_000,
    "\ud800",
    [],
    [[]],
    {},
    {"a": None},
)
"""What a stranger can write as the value of a parameter."""


def flag(handler: Handler, params: Mapping[str, Any], **changes: Any) -> Flag:
    """Make a flag for a handler, as it comes from an inbox."""
    made = Flag(
        file=f"supervisor_{handler.name}_{WORKER}.flag",
        task_id="task_20260205_143015_ab12",
        handler=handler.name,
        worker_id=WORKER,
        params=MappingProxyType(dict(params)),
    )
    return replace(made, **changes)


class HandlerContract:
    """Holds for every handler."""

    @pytest.fixture
    def params(self) -> Mapping[str, Any]:
        return {}

    def test_its_row_can_stand_in_the_table(self, handler: Handler) -> None:
        assert fault_of_handler(handler.name, handler) == ""

    def test_its_names_are_its_own(self, handler: Handler) -> None:
        own = find_handler(handler.name)
        others = tuple(each for each in HANDLERS if each is not own)
        names = (handler.name, *handler.aliases)
        assert own is None or own is handler
        assert len(set(names)) == len(names)
        assert not any(find_handler(name, others) for name in names)

    def test_it_accepts_what_it_says_it_accepts(
        self, handler: Handler, params: Mapping[str, Any]
    ) -> None:
        assert params.keys() <= handler.params.keys()
        assert [handler.params[key](value) for key, value in params.items()] == [""] * len(params)

    @pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:20])
    def test_its_checks_judge_whatever_they_are_given(
        self, handler: Handler, value: object
    ) -> None:
        assert all(isinstance(check(value), str) for check in handler.params.values())

    def test_it_wishes_for_its_worker(self, handler: Handler, params: Mapping[str, Any]) -> None:
        assert handler.wish is not None
        wish = handler.wish(flag(handler, params))
        assert not isinstance(wish, Refusal)
        assert WORKER in names_in(wish)

    def test_its_wish_can_be_told(self, handler: Handler, params: Mapping[str, Any]) -> None:
        assert handler.wish is not None
        wish = handler.wish(flag(handler, params))
        assert read_wish(wish_view(wish)) == wish

    def test_without_parameters_it_wishes_or_refuses(self, handler: Handler) -> None:
        assert handler.wish is not None
        answer = handler.wish(flag(handler, {}))
        assert isinstance(answer, Refusal) or wish_view(answer)

    def test_the_same_flag_is_the_same_wish(
        self, handler: Handler, params: Mapping[str, Any]
    ) -> None:
        """A flag that was interrupted is read again, and must mean what it meant."""
        assert handler.wish is not None
        asked = flag(handler, params)
        assert handler.wish(asked) == handler.wish(asked)

    def test_who_sent_it_and_its_label_are_no_obstacle(
        self, handler: Handler, params: Mapping[str, Any]
    ) -> None:
        assert handler.wish is not None
        asked = flag(handler, params, sender="console", label="disk swap 7")
        assert not isinstance(handler.wish(asked), Refusal)
