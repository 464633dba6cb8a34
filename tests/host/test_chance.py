from __future__ import annotations

from uuid import RFC_4122, UUID

from uphold.host.chance import any_number, new_id, new_nonce


def test_no_two_nonces_are_alike_and_each_can_stand_in_an_environment():
    made = {new_nonce() for _ in range(1000)}
    assert len(made) == 1000
    assert all(len(nonce) == 32 and nonce.isalnum() for nonce in made)


def test_no_two_ids_are_alike_and_each_is_a_random_uuid():
    made = {new_id() for _ in range(1000)}
    assert len(made) == 1000
    assert {str(UUID(each)) for each in made} == made
    assert {(UUID(each).version, UUID(each).variant) for each in made} == {(4, RFC_4122)}


def test_numbers_differ():
    assert len({any_number() for _ in range(100)}) > 90
