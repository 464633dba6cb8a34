from __future__ import annotations

from uphold.engine.agendas import Agenda


def test_what_is_due_comes_in_order_and_once():
    agenda = Agenda()
    agenda.put("web", "live", 3.0)
    agenda.put("app", "ready", 1.0)
    agenda.put("web", "ready", 2.0)
    assert agenda.first == 1.0
    assert list(agenda.take(2.0)) == [("app", "ready"), ("web", "ready")]
    assert list(agenda.take(2.0)) == []
    assert list(agenda.take(3.0)) == [("web", "live")]
    assert agenda.first is None


def test_a_question_that_is_moved_is_asked_at_its_new_time_only():
    agenda = Agenda()
    agenda.put("web", "heartbeat", 5.0)
    agenda.put("web", "heartbeat", 9.0)
    agenda.put("app", "heartbeat", 9.0)
    agenda.put("app", "heartbeat", 5.0)
    assert agenda.when("web", "heartbeat") == 9.0
    assert list(agenda.take(8.0)) == [("app", "heartbeat")]
    assert list(agenda.take(99.0)) == [("web", "heartbeat")]


def test_what_is_struck_off_is_not_asked():
    agenda = Agenda()
    agenda.put("web", "live", 1.0)
    agenda.strike("web", "live")
    agenda.strike("web", "ready")
    assert agenda.when("web", "live") is None
    assert list(agenda.take(9.0)) == []


def test_what_is_put_on_it_while_it_is_taken_off_is_taken_too():
    agenda = Agenda()
    agenda.put("web", "ready", 1.0)
    taken = []
    for slot, what in agenda.take(2.0):
        taken.append(what)
        if what == "ready":
            agenda.put(slot, "live", 2.0)
    assert taken == ["ready", "live"]


def test_what_no_longer_counts_does_not_pile_up():
    agenda = Agenda()
    for number in range(10_000):
        agenda.put(f"web.{number % 10}", "live", 86_400.0 + number)
    assert len(agenda) < 100
    assert len(list(agenda.take(1e6))) == 10
