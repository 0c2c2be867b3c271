from anonymizer.pipeline.id_shares import IdShares


def test_a_topic_names_no_more_devices_than_its_share() -> None:
    shares = IdShares(kept_s=10)
    admitted = [d for d in "abcab" if shares.admits(b"feed", d, share=2, at_s=0)]
    assert admitted == ["a", "b", "a", "b"]
    assert shares.admits(b"other feed", "c", share=2, at_s=0)


def test_ids_are_counted_anew_after_a_while() -> None:
    shares = IdShares(kept_s=10)
    assert shares.admits(b"feed", "a", share=1, at_s=5)
    assert not shares.admits(b"feed", "b", share=1, at_s=15)
    assert shares.admits(b"feed", "b", share=1, at_s=15.1)
    assert not shares.admits(b"feed", "a", share=1, at_s=20)
