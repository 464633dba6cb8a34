from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from uphold.core.specs import (
    EARLIEST,
    NEVER,
    Backoff,
    Kind,
    Limits,
    Logs,
    Need,
    RestartPolicy,
    Settings,
    StopRule,
    SupervisorSpec,
    WorkerSpec,
)


def test_the_words_of_the_file_are_the_words_of_the_core():
    assert {*Kind} == {"process", "python", "mcp", "remote"}
    assert [kind for kind in Kind if WorkerSpec(name="web", kind=kind).remote] == [Kind.REMOTE]
    assert {*RestartPolicy} == {"no", "on-failure", "always"}
    assert {*Need} == {"started", "healthy", "completed"}


@pytest.mark.accepts("P8", "D-26")
def test_the_defaults_are_the_documented_ones():
    web = WorkerSpec(name="web")
    assert web.kind is Kind.PROCESS
    assert (web.enabled, web.autostart, web.quarantined, web.essential) == (
        True,
        True,
        False,
        False,
    )
    assert web.replicas == 1
    assert web.restart is RestartPolicy.ALWAYS
    assert web.backoff == Backoff(first=0.0, base=1.0, max=300.0, jitter=0.1)
    assert web.stable_after == 60.0
    assert web.max_restarts == 10
    assert web.success_exit_codes == (0,)
    assert web.stop == StopRule(signal="TERM", grace=30.0, command=())
    assert web.limits == Limits(nofile=None, nice=None)
    assert web.logs == Logs(
        mode="pump", max_size=10_000_000, keep=5, compress=True, split=False, overflow="block"
    )


def test_the_supervisor_looks_around_and_beats_every_30_s_and_takes_its_workers_along():
    assert SupervisorSpec(name="orion") == SupervisorSpec(
        name="orion", reconcile_every=30.0, heartbeat_every=30.0, on_exit="stop"
    )


def test_equal_terms_are_one_and_the_same_wish():
    one = WorkerSpec(name="web", command=("serve",), environment=(("A", "1"),))
    other = WorkerSpec(name="web", command=("serve",), environment=(("A", "1"),))
    assert one == other
    assert len({one, other}) == 1
    assert replace(one, shell=True) != one


@pytest.mark.accepts("M-33")
@pytest.mark.parametrize("field", [field.name for field in fields(WorkerSpec)])
def test_no_field_of_a_spec_can_be_changed_once_it_is_made(field):
    web = WorkerSpec(name="web")
    with pytest.raises(FrozenInstanceError):
        setattr(web, field, None)


@pytest.mark.accepts("M-34")
def test_nothing_inside_a_spec_can_be_changed_either():
    hash(WorkerSpec(name="web"))  # only a value of values can be hashed
    hash(Settings(supervisor=SupervisorSpec(name="orion"), workers=(WorkerSpec(name="web"),)))


def test_time_begins_at_the_earliest_and_never_comes_never():
    assert EARLIEST == 0.0
    assert NEVER > 1e300
