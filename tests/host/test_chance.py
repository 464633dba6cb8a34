from __future__ import annotations

from uphold.host.chance import any_number, new_nonce


def test_no_two_nonces_are_alike_and_each_can_stand_in_an_environment():
    made = {new_nonce() for _ in range(1000)}
    assert len(made) == 1000
    assert all(len(nonce) == 32 and nonce.isalnum() for nonce in made)


def test_numbers_differ():
    assert len({any_number() for _ in range(100)}) > 90
