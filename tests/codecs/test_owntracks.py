"""Encrypted messages of OwnTracks, sealed here with libsodium as the apps seal them."""

import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.secret import SecretBox
from nacl.utils import random

from anonymizer.codecs import CODECS
from anonymizer.codecs.owntracks import decrypting
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.hostile import HOSTILE, assert_sound
from tests.examples import many

SECRET, OTHER = b"open sesame", b"thirty-two bytes are the longest"
LOCATION = {"_type": "location", "lat": 1.5, "lon": -2, "tst": 9}
ENCRYPTED = [Outcome.INVALID__ENCRYPTED]
decode = decrypting([OTHER, SECRET])


def sealed(message: object, secret: bytes = SECRET) -> bytes:
    # As in the booklet: the secret filled up with zeros, nonce and box in one, in base64.
    box = SecretBox(secret + bytes(SecretBox.KEY_SIZE - len(secret)))
    plain = message if isinstance(message, bytes) else json.dumps(message).encode()
    data = b64encode(box.encrypt(plain, random(SecretBox.NONCE_SIZE))).decode()
    return json.dumps({"_type": "encrypted", "data": data}).encode()


@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_a_message_is_opened_with_whichever_secret_fits(secret: bytes) -> None:
    assert decode(sealed(LOCATION, secret)) == [Fix(1.5, -2.0, 9.0)]


def test_without_a_key_it_is_refused_by_name() -> None:
    assert CODECS["owntracks"](sealed(LOCATION)) == ENCRYPTED
    assert decode(sealed(LOCATION, b"another")) == ENCRYPTED


def test_messages_that_are_not_encrypted_are_read_as_before() -> None:
    assert decode(json.dumps(LOCATION).encode()) == [Fix(1.5, -2.0, 9.0)]
    assert decode(b'{"_type":"lwt"}') == [Outcome.INVALID__NOT_A_POSITION]


def test_what_is_inside_is_judged_like_any_message() -> None:
    assert decode(sealed({"_type": "lwt"})) == [Outcome.INVALID__NOT_A_POSITION]
    assert decode(sealed(b"")) == [Outcome.INVALID__EMPTY]
    assert decode(sealed(b"\xff")) == [Outcome.INVALID__MALFORMED]
    # A box in a box is opened once: a sender could nest them without end.
    assert decode(sealed(sealed(LOCATION))) == ENCRYPTED


def test_a_box_that_was_tampered_with_is_not_opened() -> None:
    payload = sealed(LOCATION)
    for i in range(len(payload) - 20, len(payload) - 10):
        other = payload[:i] + (b"A" if payload[i : i + 1] != b"A" else b"B") + payload[i + 1 :]
        assert isinstance(decode(other)[0], Outcome)


@many(1.5)
@given(data=st.sampled_from(HOSTILE) | st.text(max_size=80) | st.binary(max_size=80))
def test_no_data_makes_it_raise(data: object) -> None:
    text = b64encode(data).decode() if isinstance(data, bytes) else data
    assert_sound(decode, json.dumps({"_type": "encrypted", "data": text}).encode())
    assert_sound(decode, sealed(json.dumps({"_type": "location", "lat": text}).encode()))


@pytest.mark.parametrize("secret", [b"", bytes(33)])
def test_a_secret_that_is_none_is_refused(secret: bytes) -> None:
    with pytest.raises(ValueError, match="1 to 32 bytes"):
        decrypting([secret])
